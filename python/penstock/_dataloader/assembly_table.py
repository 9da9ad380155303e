"""Where workers put the pieces of one batch together, without the loop.

A batch may be fetched in parts by several workers. Each part lies in a slot
of its worker's memory; the worker that finishes last finds the references of
all parts here and collates. The table is a small shared memory; a record lock
of the operating system guards an entry, and is released when a worker dies.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct

from .memory import Ref

Part = tuple[int, Ref]  # the worker that fetched it, and where it is
MOST_PARTS = 8
ENTRIES = 64  # batches, the first to the last of those that are in parts
_WORD = struct.Struct("<q")
_ENTRY = struct.Struct("<qqq")     # round, batch, parts that are there
_PART = struct.Struct("<qqqqqq")   # worker, Ref
_ENTRY_SIZE = _ENTRY.size + MOST_PARTS * _PART.size
_BEGIN = 64


def make_assembly_table() -> int:
    fd = os.memfd_create("penstock-assembly", os.MFD_CLOEXEC)
    os.ftruncate(fd, _BEGIN + ENTRIES * _ENTRY_SIZE)
    return fd


class AssemblyTable:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._memory = mmap.mmap(fd, _BEGIN + ENTRIES * _ENTRY_SIZE)

    @property
    def round(self) -> int:
        """Counts the loop's starts; tasks of an earlier round are void."""
        (number,) = _WORD.unpack_from(self._memory, 0)
        return int(number)

    @round.setter
    def round(self, number: int) -> None:
        _WORD.pack_into(self._memory, 0, number)

    def add(self, number: int, batch: int, part: int, parts: int, worker: int,
            ref: Ref) -> tuple[list[Part] | None, list[Part]]:
        """Notes a part. Returns (complete, void): the parts in order when this
        was the last one, else None; and the parts of an earlier round, or of a
        batch that failed, whose slots no worker waits for. Of one round, no
        batch may come in parts while one that is ENTRIES before it is
        awaited."""
        at = _BEGIN + (batch % ENTRIES) * _ENTRY_SIZE
        fcntl.lockf(self._fd, fcntl.LOCK_EX, _ENTRY_SIZE, at)
        try:
            if number != self.round:
                return None, [(worker, ref)]
            *held, there = _ENTRY.unpack_from(self._memory, at)
            void: list[Part] = []
            if there and held > [number, batch]:
                return None, [(worker, ref)]
            if there and held < [number, batch]:
                void, there = self._parts(at), 0
            if not there:
                self._memory[at:at + _ENTRY_SIZE] = b"\0" * _ENTRY_SIZE
            _PART.pack_into(self._memory, self._part(at, part), worker + 1,
                            *ref)
            there += 1
            _ENTRY.pack_into(self._memory, at, number, batch, there % parts)
            return (self._parts(at) if there == parts else None), void
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, _ENTRY_SIZE, at)

    def _part(self, at: int, part: int) -> int:
        return at + _ENTRY.size + part * _PART.size

    def _parts(self, at: int) -> list[Part]:
        """The parts that were noted."""
        noted = (_PART.unpack_from(self._memory, self._part(at, part))
                 for part in range(MOST_PARTS))
        return [(worker - 1, Ref(ref)) for worker, *ref in noted if worker]
