"""Objects to bytes and back, arrays left out of the pickle.

A message holds an object: in its own bytes when the object is small, else in a
slot of shared memory. There it is a table of lengths, then the pickle, then
the arrays, each aligned for the vector units (and for JAX, which copies what is
not aligned).
"""

from __future__ import annotations

import importlib
import io
import mmap
import os
import pickle
import struct
import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from .memory import Reader, Ref, SlotTracker, Writer

_ALIGN = 64
_IN_BAND = 512     # bytes; smaller arrays stay in the pickle
INLINE = 1 << 14   # bytes of a message that needs no slot
_PLACE = struct.Struct("<qqqqq")
_NO_SLOT = (-1, 0, 0, 0)


class ToTensor:
    """An array that becomes a tensor where torch is: what is collated in a
    worker that has no torch."""

    def __init__(self, array: Any) -> None:
        self.array = array


def rebuild_tensor(dtype: str, shape: tuple[int, ...], data: Any) -> Any:
    torch = importlib.import_module("torch")
    kind = getattr(torch, dtype)
    if 0 in shape:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(data, dtype=kind).view(shape)


def rebuild_converted(array: Any) -> Any:
    return importlib.import_module("torch").from_numpy(array)


def _is_plain(tensor: Any, torch: Any) -> bool:
    return (type(tensor) is torch.Tensor and tensor.layout is torch.strided
            and tensor.device.type == "cpu" and not tensor.requires_grad
            and not tensor.is_quantized and not tensor.is_conj()
            and not tensor.is_neg() and not tensor.is_nested)


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        kind = type(thing)
        if kind is ToTensor:
            return rebuild_converted, (thing.array,)
        torch = sys.modules.get("torch")
        if torch is not None and kind is getattr(torch, "Tensor", None):
            if not _is_plain(thing, torch):
                return NotImplemented
            raw = thing.contiguous().reshape(-1)
            raw = raw.view(torch.uint8).numpy() if raw.numel() else None
            data = b"" if raw is None else pickle.PickleBuffer(raw)
            return rebuild_tensor, (str(thing.dtype).removeprefix("torch."),
                                    tuple(thing.shape), data)
        numpy = sys.modules.get("numpy")
        if numpy is not None and kind is getattr(numpy, "ndarray", None):
            flags = thing.flags
            if not (flags.c_contiguous or flags.f_contiguous) and \
                    not thing.dtype.hasobject:
                return numpy.ascontiguousarray(thing).__reduce_ex__(5)
        return NotImplemented


def flatten(thing: object) -> list[memoryview]:
    """The pickle and the arrays of `thing`, as buffers of bytes."""
    arrays: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _IN_BAND:
            return True
        arrays.append(raw)
        return False
    file = io.BytesIO()
    _Pickler(file, 5, buffer_callback=keep).dump(thing)
    return [file.getbuffer(), *arrays]


def refers_to_main(thing: object) -> bool:
    """Whether a class or a function of the main module is in its pickle. (Text
    that says "__main__" may be in any.)"""
    found = False

    class Looking(_Pickler):
        def reducer_override(self, thing: Any) -> Any:
            nonlocal found
            found = found or (isinstance(thing, (type, FunctionType))
                              and thing.__module__ == "__main__")
            return super().reducer_override(thing)
    Looking(io.BytesIO(), 5, buffer_callback=lambda buffer: False).dump(thing)
    return found


def _aligned(at: int) -> int:
    return -(-at // _ALIGN) * _ALIGN


def measure(parts: Sequence[memoryview]) -> tuple[list[int], int]:
    """The offsets of the parts, and the bytes that all take."""
    at = 8 * (1 + len(parts))
    offsets: list[int] = []
    for part in parts:
        at = _aligned(at)
        offsets.append(at)
        at += part.nbytes
    return offsets, at


def write(parts: Sequence[memoryview], offsets: Sequence[int],
          out: bytearray | memoryview | mmap.mmap) -> None:
    """Lays table and parts into `out`."""
    struct.pack_into(f"<{1 + len(parts)}q", out, 0, len(parts),
                     *(part.nbytes for part in parts))
    for part, at in zip(parts, offsets):
        out[at:at + part.nbytes] = part


def read(view: memoryview) -> Any:
    """The object; its arrays lie over `view`."""
    (count,) = struct.unpack_from("<q", view)
    sizes = struct.unpack_from(f"<{count}q", view, 8)
    at = 8 * (1 + count)
    parts: list[memoryview] = []
    for size in sizes:
        at = _aligned(at)
        parts.append(view[at:at + size])
        at += size
    return pickle.loads(parts[0], buffers=parts[1:])


def in_memfd(parts: Sequence[memoryview]) -> int:
    """The descriptor of a memory without a name that holds them."""
    offsets, size = measure(parts)
    fd = os.memfd_create("penstock-parcel", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as memory:
            write(parts, offsets, memory)
    except BaseException:
        os.close(fd)
        raise
    return fd


def of_memfd(fd: int) -> Any:
    """The object, over a private copy of its pages; closes the descriptor."""
    try:
        memory = mmap.mmap(fd, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(fd)
    return read(memoryview(memory))


def seal(thing: object, writer: Writer, inline: int = INLINE) -> bytes:
    """A message: a place, and after it the object unless it is stored
    there."""
    parts = flatten(thing)
    offsets, size = measure(parts)
    if size <= inline:
        body = bytearray(size)
        write(parts, offsets, body)
        return _PLACE.pack(*_NO_SLOT, size) + body
    ref, view = writer.take(size)
    write(parts, offsets, view)
    return _PLACE.pack(*ref)


class Message:
    """A message that arrived. Open it, or discard it: both give back its
    slot, the first when the last array over it is gone."""

    def __init__(self, raw: bytes, reader: Reader) -> None:
        self._reader = reader
        place = _PLACE.unpack_from(raw)
        self._ref = Ref(place) if place[0] >= 0 else None
        self._body = raw[_PLACE.size:]

    def open(self, held: SlotTracker) -> Any:
        if self._ref is None:
            return read(memoryview(bytearray(self._body)))
        ref, self._ref = self._ref, None
        return read(held.lend(self._reader, ref))

    def open_copy(self) -> Any:
        """The object with memory of its own; the slot is free again."""
        if self._ref is None:
            return read(memoryview(bytearray(self._body)))
        try:
            return read(memoryview(bytearray(self._reader.view(self._ref))))
        finally:
            self.discard()

    def discard(self) -> None:
        if self._ref is not None:
            self._reader.release(self._ref)
            self._ref = None


def ref_of(message: bytes) -> Ref:
    """Where the object of a sealed message without inline bytes is stored."""
    return Ref(_PLACE.unpack_from(message))


def open_ref(ref: Ref, reader: Reader) -> Any:
    """The object that is stored there, with memory of its own."""
    return Message(_PLACE.pack(*ref), reader).open_copy()
