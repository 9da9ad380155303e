"""A source of your own, by position: Python reads its columns, and the engine's
kinds of fields make batches of them. docs/how-to/own_source.md shows one.

What `read` returns is laid out here as Arrow has it, column by column: which
rows are valid, where each begins, and their bytes.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Set
from typing import (TYPE_CHECKING, Any, Iterable, Mapping, Protocol, Sequence,
                    runtime_checkable)

from .. import _engine
from ..errors import SourceError, refused, said, worded
from .callables import source_text
from .table_fields import Declared, fields_of_columns

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Answer = tuple[Array | None, Array | None, Array | None]
    Problems = list[tuple[int, str]]

NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
           "uint32", "uint64", "float32", "float64")
_TEXTS = ("text", "json", "binary")
_DECLARED = re.compile(
    rf"(?P<name>{'|'.join((*NUMBERS, *_TEXTS))})"
    r"(\[(?P<item>\d+(\s*,\s*\d+)*)\])?"
    rf"|list\[(?P<element>{'|'.join(NUMBERS)})\]")
_MOST_SHOWN = 3


@runtime_checkable
class PositionSource(Protocol):
    """Rows that have a position, from 0 to `len(source)` - 1.

    `columns` says what there is, by name: a number ("float32", "int64",
    "bool"), a tensor of one shape ("float32[3, 4]"), an array of any length
    ("list[int64]"), "text", "json" (a text) or "binary".

    `read(positions)` takes an array [n] of int64 and returns a mapping of
    names to columns: arrays [n, ...] of the declared dtype, or lists of n
    values. In a list, None is a missing value, and an exception in the place
    of a value says why its row cannot be read: `on_bad` decides about it.
    What `read` raises ends the loop, in the turn of its batch.

    It is called on several threads, of which one at a time runs Python. With
    an attribute `global_lock = True`, one call must return before the next.
    Optional: `version` is part of the fingerprint; `lengths(column)` gives an
    array of the lengths of all rows, or None; `chunks`, the number of rows
    that are read together, or the positions at which such chunks end.
    """

    columns: Mapping[str, str]

    def __len__(self) -> int: ...

    def read(self, positions: Any) -> Mapping[str, Any]:
        """Rows by their positions, in that order."""


def rows_of(source: PositionSource) -> _engine.Rows:
    """The rows of a source, for one loader."""
    name = type(source).__name__
    rows = len(source)
    if rows < 1:
        raise worded(SourceError, "source.empty", "there are no rows to train on",
                     f"len({name})", f"found {rows}", "use a source with rows")
    columns = _declared(source)
    about = _engine.OwnSource(
        name, json.dumps({
            "kind": "python", "class": name, "rows": rows,
            "text": source_text(source, getattr(source, "version", "")),
            "columns": dict(source.columns)}),
        rows, _chunk_ends(source, rows),
        bool(getattr(source, "global_lock", False)))
    for column in columns.values():
        about.add_column(column.name, column.kind, column.dtype, column.item,
                         _lengths(source, column, rows))
    return _engine.source_rows(about, _Reading(source, columns, rows))


def fields_of(source: PositionSource) -> tuple[dict[str, Any], list[str]]:
    """The fields that its columns make by themselves, and why others do not."""
    def kind_of(column: Column) -> str:
        if column.kind == "number":
            return "boolean" if column.dtype == "bool" else column.dtype
        return {"fixed": "tensor", "list": "list"}.get(column.kind, "")

    rules, left_out = fields_of_columns(Declared([
        (column.name, column.kind, kind_of(column), column.dtype, False,
         column.item, 0, False, "") for column in _declared(source).values()]))
    if not rules:
        raise refused("fields.none", "no column can become a field "
                                     "automatically",
                      f"{type(source).__name__}.columns", "; ".join(left_out),
                      "set 'fields'")
    return rules, left_out


def _declared(source: PositionSource) -> dict[str, Column]:
    where = f"{type(source).__name__}.columns"
    if not isinstance(source.columns, Mapping) or not source.columns:
        raise refused("source.declared", "cannot use the source", where,
                      f"found {source.columns!r}", "map the name of each "
                      "column to its type: {\"x\": \"float32\"}")
    columns: dict[str, Column] = {}
    for name, text in source.columns.items():
        found = _DECLARED.fullmatch(text) if isinstance(text, str) else None
        if not isinstance(name, str) or found is None or (
                found["item"] and found["name"] in ("bool", *_TEXTS)) or \
                found["element"] == "bool":
            raise refused("source.declared", "cannot use the source", where,
                          f"{name!r} is {text!r}", "declare a number as "
                          "\"float32\", a tensor as \"float32[3, 4]\", an "
                          "array of any length as \"list[int64]\", or "
                          "\"text\", \"json\" or \"binary\"")
        columns[name] = Column(name, found)
    return columns


def _chunk_ends(source: object, rows: int) -> list[int]:
    chunks = getattr(source, "chunks", None)
    if chunks is None:
        return []
    try:
        if isinstance(chunks, bool):
            raise TypeError
        try:
            size = operator.index(chunks)
        except TypeError:
            ends = [operator.index(end) for end in chunks]
        else:
            ends = [*range(size, rows, size), rows] if size > 0 else []
    except (TypeError, ValueError):
        ends = []
    if not ends or ends[-1] != rows or any(
            end <= begin for begin, end in zip([0, *ends], ends)):
        raise refused("source.declared", "cannot use the source",
                      f"{type(source).__name__}.chunks", f"found {chunks!r}",
                      "return the number of rows of a chunk, or ascending "
                      f"positions at which chunks end, the last one {rows}")
    return ends


def _lengths(source: object, column: Column, rows: int) -> list[int] | None:
    lengths = getattr(source, "lengths", None)
    if lengths is None or column.kind not in ("list", *_TEXTS):
        return None
    import numpy

    found = lengths(column.name)
    if found is None:
        return None
    found = numpy.asarray(found)
    if found.shape != (rows,) or found.dtype.kind not in "iu" or \
            found.min() < 0 or found.max() >= 1 << 31:
        raise refused("source.declared", "cannot use the source",
                      f"{type(source).__name__}.lengths({column.name!r})",
                      f"found {found.dtype.name} {list(found.shape)}",
                      f"return {rows} lengths below 2^31, or None")
    ints: list[int] = found.tolist()
    return ints


class Unfit(Exception):
    """A column is not what its source declared, at a row or as a whole."""

    def __init__(self, why: str, row: int | None = None) -> None:
        super().__init__(why)
        self.row = row


class Column:
    """What a source declared of a column, and how its values are laid out."""

    def __init__(self, name: str, declared: re.Match[str]) -> None:
        self.name = name
        self.kind = self.dtype = ""
        self.item: list[int] = []
        if declared["element"]:
            self.kind, self.dtype = "list", declared["element"]
        elif declared["name"] in _TEXTS:
            self.kind = declared["name"]
        else:
            self.kind, self.dtype = "number", declared["name"]
            if declared["item"]:
                self.kind = "fixed"
                self.item = [int(n) for n in declared["item"].split(",")]

    def answer(self, values: Any, rows: int,
               dtype: str) -> tuple[Answer, Problems]:
        """The buffers of `rows` values; numbers are made `dtype`, if one is
        named. Raises Unfit."""
        import numpy

        missing: list[int] = []
        problems: Problems = []
        if hasattr(values, "detach"):  # torch
            values = values.detach().numpy()
        if isinstance(values, numpy.ma.MaskedArray):
            missing = numpy.flatnonzero(
                numpy.ma.getmaskarray(values).reshape(rows, -1).any(1)
                if len(values) == rows else []).tolist()
            values = values.filled(0)
        if not hasattr(values, "__len__") or isinstance(
                values, (str, bytes, Mapping, Set)):
            raise Unfit(f"is a {type(values).__name__}, expected an array or "
                        "a list")
        if len(values) != rows:
            raise Unfit(f"has {len(values)} rows for {rows} positions")
        if not isinstance(values, numpy.ndarray) or values.dtype.hasobject:
            values = list(values)
            for row, value in enumerate(values):
                if isinstance(value, numpy.generic):
                    values[row] = value.item()
                elif value is None or numpy.ma.is_masked(value):
                    missing.append(row)
                elif isinstance(value, BaseException):
                    missing.append(row)
                    problems.append((row, said(value)))
        offsets, laid_out = self._laid_out(values, set(missing), rows, dtype,
                                           problems)
        problems[:] = [(row, text.encode(errors="backslashreplace").decode())
                       for row, text in problems]
        missing += [row for row, _ in problems]
        valid = None
        if missing:
            present = numpy.ones(rows, "bool")
            present[missing] = False
            valid = numpy.packbits(present, bitorder="little")
        return (valid, offsets, laid_out), problems

    def _laid_out(self, values: Any, missing: set[int], rows: int, dtype: str,
                  problems: Problems) -> tuple[Array | None, Array]:
        import numpy

        if self.kind in _TEXTS:
            return self._texts(values, missing, problems)
        if self.kind == "list":
            return self._lists(values, missing)
        if isinstance(values, list):
            zero = numpy.zeros(self.item, self.dtype)
            values = numpy.stack([
                zero if row in missing else self._array(value, self.item, row)
                for row, value in enumerate(values)]) if self.item or missing \
                else self._array(values, [rows])
        values = self._array(values, [rows, *self.item])
        if self.dtype == "bool" and not dtype:
            return None, numpy.packbits(values, bitorder="little")
        if dtype == "int64" and values.dtype == numpy.uint64:
            large = values > numpy.iinfo("int64").max
            problems += [
                (int(row), f"holds {values[row].max()}, which does not fit "
                           "int64")
                for row in numpy.flatnonzero(large.reshape(rows, -1).any(1))]
        return None, numpy.ascontiguousarray(values, dtype=dtype or None)

    def _array(self, value: Any, shape: Sequence[int] | None,
               row: int | None = None) -> Array:
        """An array of the declared dtype; Python's own numbers become it where
        they fit."""
        import numpy

        own = not hasattr(value, "dtype")
        try:
            if hasattr(value, "detach"):
                value = value.detach()
            array: Array = numpy.asarray(value)
        except Exception as error:
            raise Unfit(f"is not an array: {said(error)}", row) from error
        if array.size == 0 and own:
            array = array.astype(self.dtype)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        wished = numpy.dtype(self.dtype)
        if array.dtype != wished and own and (
                array.dtype.kind in "iu" and wished.kind in "iuf"
                or array.dtype.kind == "f" and wished.kind == "f"):
            with numpy.errstate(over="ignore"):
                converted = array.astype(wished)
            if wished.kind == "f" or (converted == array).all():
                array = converted
            elif wished.kind in "iu":
                raise Unfit(f"holds {array.min()} to {array.max()}, which do "
                            f"not all fit {self.dtype}", row)
        if array.dtype.name != self.dtype or (
                shape is not None and array.shape != tuple(shape)):
            wanted = "" if shape is None else f" {list(shape)}"
            raise Unfit(f"is {array.dtype.name} {list(array.shape)}, expected "
                        f"{self.dtype}{wanted}", row)
        return array

    def _lists(self, values: Any, missing: set[int]) -> tuple[Array, Array]:
        import numpy

        arrays = [numpy.empty(0, self.dtype) if row in missing
                  else self._array(value, None, row)
                  for row, value in enumerate(values)]
        for row, array in enumerate(arrays):
            if array.ndim != 1:
                raise Unfit(f"is {array.dtype.name} {list(array.shape)}, "
                            f"expected {self.dtype} of one dimension", row)
        return _offsets(map(len, arrays)), numpy.concatenate(arrays)

    def _texts(self, values: Any, missing: set[int],
               problems: Problems) -> tuple[Array, Array]:
        import numpy

        if isinstance(values, numpy.ndarray) and values.dtype.kind in "SU":
            values = values.tolist()
        encoded = [b""] * len(values)
        for row, value in enumerate(values):
            if row in missing:
                continue
            try:
                encoded[row] = self._bytes(value, row)
            except UnicodeError as error:
                problems.append((row, f"is not UTF-8: {error.reason}"
                                 if hasattr(error, "reason") else str(error)))
        joined = numpy.frombuffer(b"".join(encoded), "uint8")
        return _offsets(map(len, encoded)), joined

    def _bytes(self, value: Any, row: int) -> bytes:
        if self.kind != "binary":
            if isinstance(value, str):
                return value.encode()
            if isinstance(value, bytes):
                value.decode()
                return value
            raise Unfit(f"is a {type(value).__name__}, expected a str", row)
        try:
            return bytes(memoryview(value))
        except TypeError:
            raise Unfit(f"is a {type(value).__name__}, expected bytes",
                        row) from None


def _offsets(lengths: Iterable[int]) -> Array:
    import numpy

    counted = [0, *lengths]
    return numpy.cumsum(numpy.array(counted, "int64"))


class _Reading:
    """A source's `read` as the engine calls it."""

    def __init__(self, source: PositionSource, columns: dict[str, Column],
                 rows: int) -> None:
        self.source, self.columns, self.rows = source, columns, rows
        self.doing = f"cannot read rows of {type(source).__name__}"

    def __call__(self, positions: Array, requested: list[tuple[str, str]]
                 ) -> tuple[list[Answer], list[tuple[int, int, str]]]:
        where = _shown(positions)
        found = self._found(positions, where)
        answers: list[Answer] = []
        problems: list[tuple[int, int, str]] = []
        for request, (name, dtype) in enumerate(requested):
            if name not in found:
                raise self._failed("returned", where, "the source returned no "
                                   f"'{name}': " + (", ".join(map(repr, found)) or
                                           "nothing"),
                                   "return all that 'columns' names")
            try:
                answer, bad = self.columns[name].answer(
                    found[name], len(positions), dtype)
            except Exception as error:
                if not isinstance(error, Unfit):
                    raise self._failed(
                        "returned", where, f"'{name}' cannot be read: "
                        f"{said(error)}", "return arrays of numpy, or lists"
                    ) from error
                at = (where if error.row is None
                      else f"position {positions[error.row]}")
                raise self._failed(
                    "returned", at, f"'{name}' {error}", "return the types of "
                    "'columns', with one row for each position") from None
            answers.append(answer)
            problems += [(row, request, why) for row, why in bad]
        return answers, problems

    def _found(self, positions: Array, where: str) -> Mapping[str, Any]:
        try:
            found: Any = self.source.read(positions)
            rows = len(self.source)
        except Exception as error:
            raise self._failed("failed", where, said(error), "correct the "
                               "source: its traceback is above") from error
        if rows != self.rows:
            raise self._failed(
                "length_changed", f"len({type(self.source).__name__})",
                f"the length was {self.rows}, and is now {rows}",
                "open the loader again when rows were added or removed")
        if not isinstance(found, Mapping):
            raise self._failed("returned", where,
                               f"the source returned {type(found).__name__}",
                               "return a mapping of names to columns")
        return found

    def _failed(self, code: str, where: str, why: str,
                next: str) -> SourceError:
        return worded(SourceError, f"source.{code}", self.doing, where, why,
                      next)


def _shown(positions: Array) -> str:
    """
    >>> import numpy
    >>> _shown(numpy.arange(5))
    'positions 0, 1, 2 and 2 more'
    """
    first = ", ".join(map(str, positions[:_MOST_SHOWN].tolist()))
    more = len(positions) - _MOST_SHOWN
    return ("position " if len(positions) == 1 else "positions ") + first + (
        f" and {more} more" if more > 0 else "")
