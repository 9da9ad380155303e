"""Tables in memory as rows of a loader: data frames of pandas and polars,
tables of pyarrow, data sets of Hugging Face, relations of DuckDB, and all else
that has `__arrow_c_stream__`.

Their bytes are read where they lie, by Arrow's C stream interface.
"""

from __future__ import annotations

import importlib
from typing import Any, Mapping, Protocol, cast, runtime_checkable

from . import _engine
from .callables import DTYPES, rows_of_arrays
from .errors import refused

_INTEGERS = ("int64", "int32", "int16", "int8", "uint32", "uint16", "uint8")
_ARRAYS = ("float32", "float64", *_INTEGERS)
_MOST_CLASSES = 1000  # of a text column that is a category by itself
# Where types of columns hold their classes.
_DECLARED_BY = {"CategoricalDtype": "categories", "Enum": "categories",
                "ClassLabel": "names"}


@runtime_checkable
class ArrowStream(Protocol):
    """What gives its rows as a stream of Arrow record batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def rows_of_table(table: object, fields: object, drawn_by: object) -> tuple[
        _engine.Rows, dict[str, Any] | None, list[str]] | None:
    """Rows of a table, the rules of its fields where none are given, and the
    columns that these leave out, with the reason; `drawn_by` as for
    rows_of_arrays(). None for what is no table."""
    name = type(table).__name__
    classes = _classes_of(table)
    table = _plain(table)
    if fields is None and (arrays := _arrays(table)) is not None:
        return rows_of_arrays(arrays, None, drawn_by), None, []
    index = _names_of_index(table)
    table = _without_index(table, name)
    if not isinstance(table, ArrowStream):
        return None
    found = _engine.Table(cast(Any, table).__arrow_c_stream__(), name, classes)
    if found.rows < 1:
        raise refused("source.empty", "there are no rows to train on", name,
                      "the table has no rows", "give it rows")
    if fields is not None:
        return found.source_rows(), None, []
    rules, left_out = _rules_of(found)
    left_out += [f"'{column}' is the index: reset_index() makes it a column"
                 for column in index]
    if not rules:
        raise refused("fields.none", "no column can be a field by itself", name,
                      "; ".join(left_out), "give 'fields'")
    return found.source_rows(), rules, left_out


def _plain(table: object) -> object:
    """The table behind an object that lends its rows in another way."""
    indices = getattr(table, "_indices", None)
    if hasattr(table, "_data") and hasattr(table, "with_format"):  # datasets
        transform = cast(Any, table).format.get("type")
        if transform == "custom":
            raise refused("source.transform", "cannot read the data set",
                          type(table).__name__,
                          "it has a transform of its own (set_transform), "
                          "which runs in Python for every row",
                          "remove it with reset_format(), and give "
                          "loader.map() the function")
        if indices is not None:
            table = cast(Any, table).flatten_indices()
        return cast(Any, table).data.table
    if not isinstance(table, ArrowStream) and hasattr(
            table, "fetch_arrow_table"):
        return cast(Any, table).fetch_arrow_table()  # DuckDB
    return table


def _classes_of(table: object) -> dict[str, list[str]]:
    """The classes that columns are declared to have, in their order: of
    Categorical of pandas, Enum of polars and ClassLabel of datasets."""
    kinds: Mapping[Any, Any] = {}
    if hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        kinds = dict(zip(cast(Any, table).columns, cast(Any, table).dtypes))
    elif hasattr(table, "get_column") and hasattr(table, "schema"):  # polars
        kinds = cast(Any, table).schema
    elif isinstance(getattr(table, "features", None), Mapping):  # datasets
        kinds = cast(Any, table).features
    classes: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        found = getattr(kind, _DECLARED_BY.get(type(kind).__name__, ""), None)
        if isinstance(name, str) and found is not None and len(found) and \
                all(isinstance(each, str) for each in found):
            classes[name] = list(found)
    return classes


def _names_of_index(table: object) -> list[str]:
    names = getattr(getattr(table, "index", None), "names", None)
    return [str(name) for name in names or () if name is not None]


def _without_index(table: object, name: str) -> object:
    """A frame of pandas as a table of its columns alone: the numbers of its
    rows are no field."""
    if (type(table).__module__.split(".")[0] != "pandas"
            or not hasattr(table, "columns")
            or not isinstance(table, ArrowStream)):
        return table
    # By name, since some releases of pyarrow come with types and others not.
    try:
        pyarrow: Any = importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise refused("source.part_missing", "cannot read the data frame", name,
                      "pyarrow is not installed, and reads its columns that "
                      "are not numbers", "pip install pyarrow") from error
    try:
        return pyarrow.Table.from_pandas(cast(Any, table),
                                         preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise refused("source.mixed", "cannot read the data frame", name,
                      str(error), "give the column one type, for example "
                      "with .astype(str), or leave it out: df.drop("
                      "columns=[...])") from error


def _arrays(table: object) -> dict[str, Any] | None:
    """The columns of a data frame that are numbers of numpy, all of them, and
    without a missing value: used where they lie. None where one is not."""
    columns = getattr(table, "columns", None)
    if columns is None or not hasattr(table, "to_numpy") or \
            not len(cast(Any, table)):
        return None
    arrays = {}
    for name in columns:
        column = cast(Any, table)[name]
        dtype = str(getattr(column, "dtype", ""))
        if hasattr(table, "iloc"):  # pandas: extension types are not numpy's
            if not isinstance(name, str) or dtype not in DTYPES or \
                    getattr(column, "ndim", 1) != 1 or \
                    not hasattr(column.dtype, "char"):
                return None
        elif dtype.lower() not in DTYPES or column.null_count() or \
                column.n_chunks() != 1:
            return None
        arrays[name] = column.to_numpy()
    return arrays or None


def _rules_of(table: _engine.Table) -> tuple[dict[str, Any], list[str]]:
    """A field of each column that can be one by itself: numbers in their own
    width, times as seconds since 1970, declared classes and texts of few values
    as categories, lists and tensors of numbers as arrays. Numbers that say which
    of declared classes a row has stay what they are."""
    rules: dict[str, Any] = {}
    left_out: list[str] = []
    for at, (name, declared, kind, dtype, nulls, shape, classes) in enumerate(
            table.columns):
        rule: Mapping[str, Any] | None = None
        if classes > _MOST_CLASSES and kind == "text":
            left_out.append(f"'{name}' declares more than {_MOST_CLASSES} "
                            "classes")
            continue
        if 0 < classes <= _MOST_CLASSES:
            rule = {"category": {"column": name, **(
                {} if kind == "text" else {"unknown": "error"})}}
        elif kind == "time":
            rule = {"column": name, "dtype": "float64",
                    **({"missing": "nan"} if nulls else {})}
        elif kind == "boolean":
            rule = {"column": name, "dtype": "float32", "missing": "nan"} \
                if nulls else {"column": name, "dtype": "bool"}
        elif kind in ("float32", "float64"):
            rule = {"column": name, "dtype": kind, "missing": "nan"}
        elif kind in _INTEGERS:
            rule = {"column": name, "dtype": "float64", "missing": "nan"} \
                if nulls else {"column": name, "dtype": kind}
        elif kind == "text":
            if table.distinct(at, _MOST_CLASSES) is not None:
                rule = {"category": {"column": name}}
            else:
                left_out.append(f"'{name}' holds more than {_MOST_CLASSES} "
                                "different texts")
                continue
        elif kind in ("list", "tensor") and dtype in _ARRAYS:
            if nulls:
                left_out.append(f"'{name}' holds lists, and NULL")
                continue
            rule = {"array": {"column": name, "dtype": dtype, **(
                {"shape": shape} if kind == "tensor" else
                {"lengths": "padded"})}}
        if rule is None:
            left_out.append(f"'{name}' holds {declared}")
        else:
            rules[name] = dict(rule)
    return rules, left_out
