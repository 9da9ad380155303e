"""Tables in memory as rows of a loader: data frames of pandas and polars,
tables of pyarrow, data sets of Hugging Face, relations of DuckDB, and all else
that has `__arrow_c_stream__`.

Their bytes are read where they lie, by Arrow's C stream interface.
"""

from __future__ import annotations

import importlib
import logging
import numbers
import re
from typing import Any, Callable, Mapping, Protocol, cast, runtime_checkable

from .. import _engine
from .arrow_shapes import with_shapes, with_tensors
from .callables import DTYPES, rows_of_arrays
from ..errors import refused
from .object_texts import MOST_CODES, coded, read_as_classes, texts_in
from .table_fields import MOST_CLASSES, fields_of_columns

# Where types of columns hold their classes.
_DECLARED_BY = {"CategoricalDtype": "categories", "Enum": "categories",
                "ClassLabel": "names"}


_WORTH_A_WARNING = 1 << 28  # bytes that another library copies


@runtime_checkable
class ArrowStream(Protocol):
    """What gives its rows as a stream of Arrow record batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def rows_of_table(table: object, fields: object, drawn_by: object,
                  about: Mapping[str, Any], naming: object = (),
                  keep: bool = False) -> tuple[
        _engine.Rows, dict[str, Any] | None, list[str]] | None:
    """Rows of a table, the rules of its fields where none are given, and the
    columns that these leave out, with the reason; `drawn_by` as for
    rows_of_arrays(), `about` as for sections_of_rows(), `naming`: other
    settings that may name columns, `keep` as for fields_of_columns(). None for what is no table."""
    name = type(table).__name__
    classes = _classes_of(table)
    # A condition numbers the rows of a table again.
    picked = None if about.get("where") else _picked_rows(table)
    table = _plain(table, picked is None)
    if fields is None and not about and picked is None and \
            (arrays := _arrays(table, keep)) is not None:
        return rows_of_arrays(arrays, None, drawn_by), None, []
    index = _names_of_index(table)
    unread: dict[str, str] = {}
    told: dict[str, list[str]] = {}  # classes that all rows tell
    if _is_pandas(table):
        table, unread, told = _arrow_of_pandas(
            table, name, _different_texts(fields, (drawn_by, naming), about))
    if not isinstance(table, ArrowStream):
        return None
    _refuse_unread(unread, (fields, drawn_by), about.get("where", ""), name)
    if unread and not cast(Any, table).num_columns:
        raise refused("fields.none", "no column of the table can be read", name,
                      "; ".join(f"'{column}' {why}"
                                for column, why in unread.items()),
                      _to_convert(next(iter(unread))))
    stream = cast(Any, table).__arrow_c_stream__
    found = _engine.Table(stream(), name, classes, None, picked)
    if told:
        found = _engine.Table(stream(), name, {**classes, **told}, found)
    if found.rows < 1:
        raise refused("source.empty", "there are no rows to train on", name,
                      "the table has no rows", "pass a table with rows")
    rows = found.source_rows(about.get("where", ""))
    if fields is not None:
        shaped = with_shapes(fields, table)
        return rows, None if shaped == fields else shaped, []
    rules, left_out = fields_of_columns(found, about.get("on_bad") == "skip",
                                        keep)
    rules, left_out = with_tensors(rules, left_out, table)
    left_out += [f"'{column}' {why}" for column, why in unread.items()]
    left_out += [f"'{column}' is the index: reset_index() makes it a column"
                 for column in index]
    if not rules:
        raise refused("fields.none", "no column can become a field "
                                     "automatically", name,
                      "; ".join(left_out), "set 'fields'")
    return rows, rules, left_out


def _picked_rows(table: object) -> Any:
    """The numbers of the rows that a data set of Hugging Face has of its table,
    after select(), shuffle() or filter(); None: all."""
    indices = getattr(table, "_indices", None)
    if indices is None or not hasattr(table, "with_format"):
        return None
    return indices.column(0).to_numpy().astype("uint64", copy=False)


def _plain(table: object, copies: bool = True) -> object:
    """The table behind an object that lends its rows in another way; `copies`:
    of rows that were picked a table of their own."""
    if hasattr(table, "_data") and hasattr(table, "with_format"):  # datasets
        transform = cast(Any, table).format.get("type")
        if transform == "custom":
            raise refused("source.transform", "cannot read the data set",
                          type(table).__name__,
                          "the data set has its own transform "
                          "(set_transform), which runs in Python for every "
                          "row",
                          "remove the transform with reset_format(), and pass "
                          "the function to loader.map()")
        return _of_datasets(cast(Any, table), copies)
    if isinstance(table, ArrowStream):
        return table
    if hasattr(table, "fetch_arrow_table"):
        return cast(Any, table).fetch_arrow_table()  # DuckDB
    if hasattr(table, "__dataframe__"):
        _pyarrow("cannot read the table", type(table).__name__, "its columns")
        interchange: Any = importlib.import_module("pyarrow.interchange")
        return interchange.from_dataframe(table)
    return table


def _of_datasets(data: Any, copies: bool) -> object:
    """The rows of a data set of Hugging Face, of the columns of its format."""
    columns = data.format.get("columns")
    if columns is not None and not data.format.get("output_all_columns") and \
            set(columns) != set(data.column_names):
        data = data.select_columns(list(columns))
    if data._indices is None or not copies:
        return data.data.table
    held = data.data
    size = held.nbytes * len(data) / max(1, held.num_rows)
    logging.getLogger("penstock").log(
        logging.WARNING if size > _WORTH_A_WARNING else logging.INFO,
        "datasets now copies %s rows, %.1f MiB, %s, since shuffle(), select() "
        "or train_test_split() picked them from %s, and `where` selects among "
        "them: leave it out, or pass the loader the original data set",
        f"{len(data):,}", size / 2**20,
        "on disk" if data.cache_files else "in memory", f"{held.num_rows:,}")
    return data.flatten_indices().data.table


def refuse_near(source: object) -> None:
    """Raises TypeError for an object that resembles a table, with the way
    to one."""
    why = ""
    if isinstance(source, Mapping) and source and all(
            hasattr(value, "with_format") or hasattr(value, "columns")
            for value in source.values()):
        why = ("the object holds several tables, "
               f"{', '.join(map(repr, source))}: pick one, "
               f"data[{next(iter(source))!r}]")
    elif hasattr(source, "with_format") and not hasattr(source, "_data"):
        why = ("a stream has no rows by their position: load the data set "
               "without streaming=True, or name the files that it reads, "
               "Loader(\"data/*.parquet\")")
    elif hasattr(source, "to_frame") and hasattr(source, "to_numpy"):
        why = ("the object is one column: pass a table, x.to_frame(\"x\"), or "
               "an array, {\"x\": x.to_numpy()}")
    elif hasattr(source, "collect") and hasattr(source, "with_columns"):
        why = "the object is a query that has not run: call collect()"
    if why:
        raise TypeError(f"Loader() cannot read a {type(source).__name__}: {why}")


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


def _is_pandas(table: object) -> bool:
    return (type(table).__module__.split(".")[0] == "pandas"
            and hasattr(table, "columns") and isinstance(table, ArrowStream))


def _different_texts(fields: object, naming: object,
                     about: Mapping[str, Any]) -> Callable[[object], int]:
    """How many different texts the objects of a column may be, so that they are
    read as codes; 0: as texts, which other fields and conditions take, and the
    settings in which it is one of the texts."""
    if about:
        return lambda column: 0
    others = set(texts_in(naming))
    if fields is None:
        return lambda column: 0 if column in others else MOST_CLASSES
    columns = read_as_classes(fields) - others
    return lambda column: MOST_CODES if column in columns else 0


def _arrow_of_pandas(frame: Any, name: str,
                     different: Callable[[object], int] = lambda column: 0
                     ) -> tuple[object, dict[str, str], dict[str, list[str]]]:
    """A frame of pandas as a table of its columns alone (the numbers of its
    rows are no field), which columns are not in it, with the reason, and the
    texts of those that are codes of them; `different` as of
    _different_texts()."""
    pyarrow = _pyarrow("cannot read the data frame", name,
                       "its columns that are not numbers")
    twice = frame.columns[frame.columns.duplicated()].unique()
    if len(twice):
        raise refused("source.mixed", "cannot read the data frame", name,
                      "the data frame has several columns " + ", ".join(
                          f"'{column}'" for column in twice),
                      "rename them, or keep the first ones: "
                      "df.loc[:, ~df.columns.duplicated()]")
    names = list(frame.columns)
    if not all(isinstance(column, str) for column in names):
        return *_converted(pyarrow, frame, names), {}
    lent: dict[str, object] = {}
    texts: dict[str, list[str]] = {}
    many: dict[str, str] = {}
    for at, column in enumerate(names):
        series, most = frame.iloc[:, at], different(column)
        if (array := _lent(pyarrow, series)) is not None:
            lent[column] = array
        elif most and (codes := coded(pyarrow, series.array, most)) is not None:
            if codes.texts is not None:
                lent[column], texts[column] = codes.array, codes.texts
            elif most == MOST_CLASSES:
                many[column] = f"holds more than {most} different texts"
    if not lent:
        return *_converted(pyarrow, frame, names), {}
    done = lent.keys() | many.keys()
    rest, unread = _converted(pyarrow, frame, [
        column for column in names if column not in done])
    unread |= many
    return pyarrow.table({
        column: lent[column] if column in lent else rest[column]
        for column in names if column not in unread}), unread, texts


def _lent(pyarrow: Any, column: Any) -> object | None:
    """A column of pandas as an array of Arrow over the same bytes: numbers with
    a fraction, of which NaN is missing as in pandas, integers with a mask, and
    a Categorical, which is codes; numbers in the other byte order as a copy.
    None for all others, which pyarrow takes over
    as fast, or has to convert."""
    import numpy
    held, dtype = column.array, column.dtype
    if dtype.name == "category":
        values = held.codes
        missing = values < 0
    elif isinstance(dtype, numpy.dtype) and (
            dtype.kind == "f" or dtype.kind in "iu" and not dtype.isnative):
        values = column.to_numpy()
        if not dtype.isnative:  # which Arrow does not have
            values = values.astype(dtype.newbyteorder("="))
        missing = numpy.isnan(values)
    elif getattr(dtype, "kind", "") in ("i", "u") and hasattr(held, "_mask"):
        values, missing = held._data, held._mask
    else:
        return None
    if not len(values) or not values.flags.c_contiguous or \
            not values.dtype.isnative or values.dtype.name not in DTYPES:
        return None
    nulls = int(numpy.count_nonzero(missing))
    valid = pyarrow.py_buffer(numpy.packbits(~missing, bitorder="little")) \
        if nulls else None
    try:
        array: object = pyarrow.Array.from_buffers(
            pyarrow.from_numpy_dtype(values.dtype), len(values),
            [valid, pyarrow.py_buffer(values)], nulls)
        if dtype.name == "category":
            array = pyarrow.DictionaryArray.from_arrays(
                array, pyarrow.array(held.categories, from_pandas=True),
                ordered=bool(held.ordered))
        return array
    except _unread(pyarrow):
        return None  # to be asked for, and told of, as all others


def _converted(pyarrow: Any, frame: Any, columns: list[Any]
               ) -> tuple[Any, dict[str, str]]:
    """These columns by pyarrow, which is asked for each of them where it
    refuses one."""
    def converted(of: list[Any]) -> object:
        return pyarrow.Table.from_pandas(frame, columns=of,
                                         preserve_index=False)

    try:
        return converted(columns), {}
    except _unread(pyarrow):
        unread = {}
        for column in columns:
            try:
                converted([column])
            except _unread(pyarrow) as error:
                unread[column] = _why_unread(pyarrow, frame[column], str(error))
        rest = [column for column in columns if column not in unread]
        return converted(rest), {str(column): why
                                 for column, why in unread.items()}


def _unread(pyarrow: Any) -> tuple[type[Exception], ...]:
    """What pyarrow raises for values that it cannot take over."""
    return (pyarrow.ArrowException, OverflowError, TypeError, ValueError)


def _why_unread(pyarrow: Any, column: Any, says: str) -> str:
    """Of a column of objects, the first row whose value is of another type
    than those before it, or is not a type of Arrow."""
    if type(column.dtype).__name__ == "SparseDtype":
        return (f"is sparse: {column.name!r} becomes a column for all readers "
                f"with df[{column.name!r}].sparse.to_dense()")
    if column.dtype.kind == "c":
        return "holds complex numbers"
    first: Any = None
    for row, (value, missing) in enumerate(zip(column, column.isna())):
        if missing:
            continue
        if first is None:
            first = value
        elif _sort_of(value) != _sort_of(first):
            return (f"holds values of several types: row {row} has the "
                    f"{type(value).__name__} {repr(value)[:60]}, and the rows "
                    f"before it {type(first).__name__}")
    for row, value in enumerate(column):
        try:
            pyarrow.array([value], from_pandas=True)
        except _unread(pyarrow) as error:
            return (f"cannot be a column of Arrow: row {row} has the "
                    f"{type(value).__name__} {repr(value)[:60]}: {error}")
    return f"cannot be a column of Arrow: {says}"


def _sort_of(value: object) -> type:
    """Integers and numbers with fractions are of one sort."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return numbers.Real if number else type(value)


def _to_convert(column: str) -> str:
    return (f"give the column one type, by df[{column!r}].astype(str) or, for "
            "complex numbers, numpy.real")


def _refuse_unread(unread: Mapping[str, str], asked: object, where: str,
                   name: str) -> None:
    """Where a column that cannot be read is wanted: it is one of the texts in
    what a loader was `asked` for, or a word of its condition."""
    wanted = set(texts_in(asked))
    for column, why in unread.items():
        if column in wanted or re.search(rf"(?<!\w){re.escape(column)}(?!\w)",
                                         where):
            raise refused("source.mixed", "cannot read the data frame",
                          f"column '{column}' of a {name}", f"it {why}",
                          f"{_to_convert(column)}; or name others as "
                          "'fields'")


def _pyarrow(doing: str, name: str, reads: str) -> Any:
    """By name, since some releases of pyarrow come with types and others
    not."""
    try:
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise refused("source.part_missing", doing, name,
                      "pyarrow is not installed, but is needed to read "
                      f"{reads}",
                      "pip install pyarrow") from error


def _arrays(table: object, keep: bool) -> dict[str, Any] | None:
    """The columns of a data frame that are numbers of numpy, all of them, and
    without a missing value: used where they lie. None where one is not, or is of
    a width that is not kept."""
    columns = getattr(table, "columns", None)
    if columns is None or not hasattr(table, "to_numpy") or \
            not len(cast(Any, table)):
        return None
    arrays = {}
    for name in columns:
        column = cast(Any, table)[name]
        dtype = str(getattr(column, "dtype", ""))
        if not keep and dtype.lower() == "float64":
            return None
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
