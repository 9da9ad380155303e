"""Batches as the tensors of a library: `format="torch"`, "numpy" or "jax"."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any, Callable, Iterator, Mapping, Sequence

from .. import _engine
from ..arguments import did_you_mean

# What stands beside a field's values and is asked for by name.
_BESIDE = re.compile(r"(?:.*_|)(?:mask|lengths|cu_seqlens|offsets)")
# torch has few operations, or none, for these.
_WIDER = {"uint16": "int32", "uint32": "int64"}

_MODULES = {"torch": "torch", "numpy": "numpy", "jax": "jax.dlpack"}


class FormattedBatch:
    """A batch whose members are tensors (of torch), or arrays (of numpy, JAX).

    `x, y = batch` unpacks the fields in order. By name there is everything:
    `batch["x"]`, `batch.x`, and also masks, lengths, `cu_seqlens`, `weight` and
    `source`; `dict(batch)` has them all. The rest is as for `penstock.Batch`:
    `batch.ids`, `batch.epoch`, `batch.to(device)`, ...
    """

    __slots__ = ("batch", "_tensors", "_fields")

    def __init__(self, batch: _engine.Batch, tensors: dict[str, Any],
                 fields: Sequence[str]) -> None:
        self.batch = batch
        self._tensors = tensors
        self._fields = fields

    def __getitem__(self, key: str | int) -> Any:
        """That of this name, or the field in this place."""
        try:
            return self._tensors[key if isinstance(key, str)
                                 else self._fields[key]]
        except KeyError:
            raise KeyError(f"the batch has no field '{key}'; " + did_you_mean(
                str(key), self._tensors)) from None

    def __getattr__(self, name: str) -> Any:
        if name in FormattedBatch.__slots__:  # not set yet: it is being copied
            raise AttributeError(name)
        if name in self._tensors:
            return self._tensors[name]
        return getattr(self.batch, name)

    def __iter__(self) -> Iterator[Any]:
        tensors = self._tensors
        if len(tensors) == len(self._fields):  # in the same order
            return iter(tensors.values())
        return iter([tensors[name] for name in self._fields])

    def __len__(self) -> int:
        """Number of fields."""
        return len(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def keys(self) -> list[str]:
        """The names of all tensors."""
        return list(self._tensors)

    def values(self) -> list[Any]:
        return list(self._tensors.values())

    def items(self) -> list[tuple[str, Any]]:
        return list(self._tensors.items())

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.batch)})

    def __repr__(self) -> str:
        return repr(self.batch)

    def __reduce_ex__(self, *args: Any) -> Any:
        return self.batch.__reduce_ex__(*args)


class Formatter:
    """Turns batches into formatted ones."""

    def __init__(self, library: str, named: set[str] | None) -> None:
        if library not in _MODULES:
            raise ValueError(f"format is {library!r}: " + did_you_mean(
                str(library), [*_MODULES, "None"]))
        try:
            importlib.import_module(_MODULES[library])
        except ImportError as error:
            raise ImportError(f"format={library!r} needs {library}: {error}"
                              ) from error
        self._convert: Callable[[_engine.Batch], dict[str, Any]] = getattr(
            _engine.Batch, library)
        self._library = library
        self._named = named
        self._count = 0  # of the tensors of a batch; 0: they are not known
        self._fields: tuple[str, ...] = ()
        self._widened: dict[str, Any] = {}

    def format(self, batch: _engine.Batch) -> FormattedBatch:
        tensors = self._convert(batch)
        if len(tensors) != self._count:
            self._learn(batch)
        if self._widened:
            for name, dtype in self._widened.items():
                tensors[name] = tensors[name].to(dtype)
        return FormattedBatch(batch, tensors, self._fields)

    def forget(self) -> None:
        """The tensors of the next batch may be others."""
        self._count = 0

    def _learn(self, batch: _engine.Batch) -> None:
        names = batch.keys()
        self._count = len(names)
        self._fields = tuple(name for name in names if self._is_field(name))
        if self._library != "torch":
            return
        torch = importlib.import_module("torch")
        of_type = {field.name: field.dtype for field in batch.values()
                   if field.dtype in _WIDER}
        told = sorted(of_type.keys() - self._widened.keys())
        self._widened = {name: getattr(torch, _WIDER[dtype])
                         for name, dtype in of_type.items()}
        if told:
            warnings.warn("torch barely supports unsigned integers, so these "
                          "are widened: " + ", ".join(
                              f"'{name}' from {of_type[name]} to "
                              f"{_WIDER[of_type[name]]}" for name in told),
                          stacklevel=3)

    def _is_field(self, name: str) -> bool:
        if self._named is None:  # arrays, as their owner calls them
            return name != "weight"
        return name in self._named or not (
            name in ("weight", "source") or _BESIDE.fullmatch(name))


def formatter(library: str | None, job: Mapping[str, Any],
              rows: _engine.Rows | None) -> Formatter | None:
    """None where batches stay what they are. `rows`: those in memory."""
    if library is None:
        return None
    if rows is not None and not rows.has_fields:
        return Formatter(library, None)
    parts = [part.get("fields") for part in (job, *(job.get("sources") or ()))]
    return Formatter(library, {name for fields in parts
                               for name in fields or ()})
