"""Python inside the engine's pipeline: rows that are arrays, a source of your
own, functions that map rows. The engine's threads call what is here.
"""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import (TYPE_CHECKING, Any, Callable, Mapping, Protocol, Sequence,
                    runtime_checkable)

from .. import _engine
from ..errors import SourceError, TransformError, refused, said, worded
from .masked import Masked, nan_where_masked

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Tensors = list[tuple[str, str, list[int]]]

Record = Mapping[str, Any]

DTYPES = ("float32", "float64", "int64", "bool", "uint8", "int8", "int16",
          "uint16", "int32", "uint32", "uint64", "float16")


@runtime_checkable
class Source(Protocol):
    """Rows of your own: `size` of them, and `read(ids)`.

    `size` is an int, or a method or property that gives one. `read` takes row
    numbers, an array [n] of int64, and returns a mapping of names to arrays
    [n, ...], of the same names, types and row shapes each time. It is called
    on several of the loader's threads at once. An attribute `version` is part
    of the fingerprint.
    """

    def read(self, ids: Any) -> Record:
        """Rows by their numbers, in that order."""


_PLAIN = type(None), bool, int, float, complex, str, bytes, type(...)


def source_text(piece: object, version: object = "") -> str:
    """A digest of what a function or an object of a class does, as far as its
    source text says, and of a version that you give. Of a lambda, which has
    no text by itself, and if none exists, the bytecode says it.

    >>> source_text(source_text) == source_text(source_text, version=2)
    False
    """
    function = piece
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    shown = function if inspect.isroutine(function) or inspect.isclass(
        function) else type(function)
    shown = inspect.unwrap(shown)  # as getsource() does
    code = getattr(shown, "__code__", None)
    try:
        text = textwrap.dedent(inspect.getsource(shown))
    except (OSError, TypeError):
        text = getattr(shown, "__qualname__", repr(shown)) + _bytecode(code)
    if isinstance(shown, FunctionType) and \
            shown.__code__.co_name == "<lambda>":
        named = sorted((shown.__kwdefaults__ or {}).items())
        text = f"{_bytecode(code)}{_bytecode((shown.__defaults__, *named))}"
    return hashlib.sha256(f"{text}\n{version}".encode()).hexdigest()


def _bytecode(value: object) -> str:
    """Of a function's code or of one of its constants: the same text in every
    process of one version of Python."""
    if isinstance(value, CodeType):
        names = value.co_names, value.co_varnames, value.co_freevars
        return f"{value.co_code.hex()}{names}{_bytecode(value.co_consts)}"
    if isinstance(value, tuple):
        return f"({','.join(map(_bytecode, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_bytecode, value)))}}}"
    # A default may be anything; the text of most objects holds an address.
    return repr(value) if isinstance(value, _PLAIN) else type(value).__qualname__


def rows_of_arrays(arrays: Mapping[str, Any],
                   fields: Any = None,
                   drawn_by: Any = None) -> _engine.Rows:
    """Rows of arrays in host memory; `fields` names those that a batch shall
    hold, or maps new names to theirs; `drawn_by` is an array, or names one, by
    which rows are drawn."""
    if fields is None:
        chosen = {name: name for name in arrays}
    elif isinstance(fields, Mapping):
        chosen = dict(fields)
    else:
        chosen = {name: name for name in
                  ([fields] if isinstance(fields, str) else fields)}
    def array(name: Any, argument: str, example: str) -> Any:
        if not isinstance(name, str) or name not in arrays:
            raise refused("arrays.field", f"cannot use '{argument}'",
                          repr(name), "no array has that name, but there are "
                          + ", ".join(map(repr, arrays)), example)
        return _in_memory(name, arrays[name])

    found = [array(name, "fields", "name arrays: fields=[\"x\"], or "
                   "{\"new\": \"x\"}") for name in chosen.values()]
    if isinstance(drawn_by, str):
        drawn_by = array(drawn_by, "weights' or 'balance",
                         "name an array; weights may also be one")
    elif drawn_by is not None:
        drawn_by = _in_memory("weights", drawn_by)
    return _engine.array_rows(list(chosen), found, drawn_by)


def _in_memory(name: str, array: Any) -> Any:
    """The array in C order, as a library that knows DLPack or buffers."""
    if hasattr(array, "detach"):  # torch
        return array.detach().contiguous()
    if not hasattr(array, "__array_interface__"):
        return array
    import numpy

    try:
        array = numpy.asarray(nan_where_masked(array))
    except Masked as error:
        raise refused("arrays.array", "cannot make rows from the arrays",
                      f"'{name}'", str(error), error.next) from None
    if array.dtype.name not in DTYPES:
        raise refused("arrays.array", "cannot make rows from the arrays",
                      f"'{name}'", f"the array has the dtype {array.dtype}, "
                      "which is not supported", "convert the array, for "
                      "example with .astype(\"float32\")")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return numpy.asarray(array, order="C")


def rows_of_source(source: Source, fields: Any = None) -> _engine.Rows:
    """Rows that `source.read` makes, of which the first one is read here."""
    import numpy

    size: Any = getattr(source, "size", None)
    if size is None:
        size = getattr(source, "__len__", None)
    if callable(size):
        size = size()
    if not hasattr(size, "__index__"):
        raise refused("source.size", "cannot use the source",
                      f"{type(source).__name__}.size", f"found {size!r}",
                      "give the source 'size', the number of its rows")
    count = int(size)
    if count < 1:
        raise worded(SourceError, "source.empty", "there are no rows to train on",
                     f"{type(source).__name__}.size", f"found {count}",
                     "use a source with rows")
    reads = _Reading(source, fields)
    reads.learn(numpy.zeros(1, "int64"))
    version = getattr(source, "version", "")
    return _engine.function_rows(count, reads, reads.tensors,
                                 source_text(source, version))


class _Writing:
    """Checks what a function returns and writes it to a batch."""

    kind: type[SourceError | TransformError] = TransformError
    code = "map"
    doing = "cannot map the rows"
    tensors: Tensors

    def failed(self, where: str, why: str, next: str,
               code: str = "returned") -> Exception:
        return worded(self.kind, f"{self.code}.{code}", self.doing, where, why,
                      next)

    def call(self, where: str, work: Callable[[], object]) -> Record:
        """What the user's code returns, or its exception as our cause."""
        try:
            found = work()
        except Exception as error:
            raise self.failed(where, said(error), "correct the function: its "
                              "traceback is above", "failed") from error
        if not isinstance(found, Mapping) or not found:
            raise self.failed(where, "the function returned "
                                     f"{type(found).__name__}",
                              "return a mapping of names to arrays")
        return found

    def array(self, where: str, name: str, value: object) -> Array:
        import numpy

        try:
            if hasattr(value, "detach"):  # torch
                value = value.detach()
            array: Array = numpy.asarray(nan_where_masked(value))
        except Masked as error:
            raise self.failed(where, f"'{name}': {error}", error.next) from None
        except Exception as error:
            raise self.failed(where, f"'{name}' is not an array: {said(error)}",
                              "return arrays of one shape that numpy knows"
                              ) from error
        if array.dtype.name not in DTYPES:
            raise self.failed(where, f"'{name}' has the dtype {array.dtype}, "
                              "which is not supported",
                              "convert the array, for example to float32")
        return array

    def tensor_of(self, where: str, name: str, row: Array) -> None:
        self.tensors.append((name, row.dtype.name, list(row.shape)))

    def write(self, where: str, found: Record, outputs: Sequence[Array],
              lead: tuple[int, ...], at: Any) -> None:
        """Puts every tensor of `found` in its place, or says what differs. An
        output has no name here, so that no traceback keeps it."""
        if len(found) != len(self.tensors):
            raise self.failed(where, "it returned " + ", ".join(
                map(repr, found)) + " and before " + ", ".join(
                    repr(name) for name, _, _ in self.tensors),
                "return the same names each time")
        for place, (name, dtype, shape) in enumerate(self.tensors):
            if name not in found:
                raise self.failed(where, f"the function returned no '{name}'",
                                  "return the same names each time")
            array = self.array(where, name, found[name])
            wanted = (*lead, *shape)
            if array.shape != wanted or array.dtype.name != dtype:
                raise self.failed(
                    where, f"'{name}' is {array.dtype.name} "
                    f"{list(array.shape)}, expected {dtype} {list(wanted)}",
                    "return the same types and shapes each time")
            outputs[place][at] = array


class _Reading(_Writing):
    """A source's `read` as the engine calls it."""

    kind = SourceError
    code = "source"

    def __init__(self, source: Source, fields: Any) -> None:
        self.source = source
        self.fields = None if fields is None else (
            [fields] if isinstance(fields, str) else list(fields))
        self.doing = f"cannot read rows of {type(source).__name__}"

    def found(self, ids: Array) -> tuple[str, Record]:
        where = f"row {ids[0]}" if len(ids) == 1 else (
            f"rows {ids[0]} and {len(ids) - 1} more")
        found = self.call(where, lambda: self.source.read(ids))
        if self.fields is None:
            return where, found
        for name in self.fields:
            if name not in found:
                raise self.failed(where, f"the function returned no '{name}'",
                                  "return all that 'fields' names")
        return where, {name: found[name] for name in self.fields}

    def learn(self, ids: Array) -> None:
        where, found = self.found(ids)
        self.tensors = []
        for name, value in found.items():
            array = self.array(where, name, value)
            if array.shape[:1] != (1,):
                raise self.failed(
                    where, f"'{name}' has the shape {list(array.shape)}, "
                    "expected one row", "return arrays [len(ids), ...]")
            self.tensor_of(where, name, array[0])

    def __call__(self, ids: Array, inputs: object, outputs: Sequence[Array],
                 epoch: int, step: int) -> None:
        where, found = self.found(ids)
        self.write(where, found, outputs, (len(ids),), ...)


class Map(_Writing):
    """A function that maps rows, as the engine calls it."""

    def __init__(self, fn: Callable[..., Record], batched: bool,
                 names: Sequence[str], seed: int, number: int,
                 rank: int) -> None:
        self.fn = fn
        self.batched = batched
        self.names = list(names)
        self.seed = seed
        self.number = number
        self.rank = rank
        self.doing = f"cannot map the rows by {_name_of(fn)}"
        self.random = _takes_rng(fn)

    def rng(self, epoch: int, at: int) -> numpy.random.Generator:
        """Numbers of its own for each row (or batch) of each epoch, on
        whatever thread that is made."""
        from numpy.random import Generator, Philox

        # A row's numbers are its own on every rank, a batch's are the rank's.
        rank = self.rank if self.batched else 0
        return Generator(Philox(key=[self.seed, self.number],
                                counter=[0, rank, epoch, at]))

    def result(self, where: str, given: Record, epoch: int, at: int) -> Record:
        if self.random:
            rng = self.rng(epoch, at)
            return self.call(where, lambda: self.fn(given, rng=rng))
        return self.call(where, lambda: self.fn(given))

    def learn(self, rows: Mapping[str, Array], epoch: int, step: int,
              sample: int) -> None:
        """Sees what the function returns for the first rows of a batch."""
        self.tensors = []
        where = "the first batch" if self.batched else f"sample {sample}"
        if self.batched:
            found = self.result(where, dict(rows), epoch, step)
        else:
            found = self.result(where, {name: array[0] for name, array
                                        in rows.items()}, epoch, sample)
        for name, value in found.items():
            array = self.array(where, name, value)
            if self.batched:
                count = len(next(iter(rows.values())))
                if array.shape[:1] != (count,):
                    raise self.failed(
                        where, f"'{name}' has the shape {list(array.shape)} "
                        f"for {count} rows",
                        "return arrays with a row for each row of the batch")
                array = array[0]
            self.tensor_of(where, name, array)

    def __call__(self, ids: Array, inputs: Sequence[Array],
                 outputs: Sequence[Array], epoch: int, step: int) -> None:
        rows = dict(zip(self.names, inputs))
        if self.batched:
            where = f"epoch {epoch}, step {step}"
            found = self.result(where, rows, epoch, step)
            self.write(where, found, outputs, (len(ids),), ...)
            return
        for at, sample in enumerate(ids.tolist()):
            where = f"sample {sample}"
            found = self.result(where, {name: array[at] for name, array
                                        in rows.items()}, epoch, sample)
            self.write(where, found, outputs, (), at)


def _name_of(fn: Callable[..., object]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def _takes_rng(fn: Callable[..., object]) -> bool:
    try:
        return "rng" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False
