"""Blocks of shared memory without a name.

One process writes into a memfd, others read it. The memory is cut into slots;
a slot belongs to the writer while its flag is 0, and to the process that got its
reference while it is 1. The reader sets it back to 0 when the last array over
it is gone. Nothing is in /dev/shm, and what is left after a crash goes when
the last process that has it open ends.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import Any

_PAGE = mmap.ALLOCATIONGRANULARITY
_MOST_SLOTS = 1 << 16
_HEADER = max(_MOST_SLOTS, _PAGE)  # a flag of one byte for each slot
_LEAST_SEGMENT = 1 << 22
_LOOK_EVERY = 64  # takes, before spare slots are given back
_SPARE = 4


def make_memory(name: str) -> int:
    """The descriptor of a new memory, not inherited by programs."""
    fd = os.memfd_create(f"penstock-{name}", os.MFD_CLOEXEC)
    os.ftruncate(fd, _HEADER)
    return fd


def give_back_freed() -> None:
    """Gives the system what this process has freed of its own memory."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _rounded(size: int) -> int:
    """The size of the slot for `size` bytes: at most an eighth is wasted."""
    step = max(_PAGE, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class Ref(tuple[int, ...]):
    """Where a slot's bytes lie: slot, segment's begin and size, begin, size.

    The begin counts within the segment. Segments are mapped whole, since
    every mapping holds a descriptor.
    """


class _Segment:
    """A piece of a memory that was mapped at once; `used` bytes are slots."""

    def __init__(self, begin: int, size: int, memory: mmap.mmap) -> None:
        self.begin, self.size, self.memory = begin, size, memory
        self.used = 0


class Writer:
    """The slots of a memory. For one thread of one process."""

    def __init__(self, fd: int) -> None:
        self._fd, self._end = fd, _HEADER
        self._flags = mmap.mmap(fd, _HEADER)
        self._segments: list[_Segment] = []
        # Of a slot: its segment, and begin and size within that.
        self._slots: list[tuple[_Segment, int, int]] = []
        self._by_size: dict[int, list[int]] = {}  # size -> slots
        self._empty: set[int] = set()  # slots whose pages were given back
        self._takes = 0

    def take(self, size: int) -> tuple[Ref, memoryview]:
        """A slot for `size` bytes: its Ref and a memoryview. Grows where no
        slot is free. MemoryError when the system has no more."""
        self._takes += 1
        if self._takes % _LOOK_EVERY == 0:
            self.give_back(_SPARE)
        room = _rounded(max(size, 1))
        for have in sorted(s for s in self._by_size if room <= s <= 2 * room):
            for slot in self._by_size[have]:
                if self._flags[slot] == 0:
                    return self._hand_out(slot, size)
        return self._hand_out(self._grow(room), size)

    def _hand_out(self, slot: int, size: int) -> tuple[Ref, memoryview]:
        segment, begin, room = self._slots[slot]
        if slot in self._empty:
            try:  # now an error, later a signal
                os.posix_fallocate(self._fd, segment.begin + begin, room)
            except OSError as error:
                raise MemoryError(
                    f"cannot get {room} bytes of shared memory for a batch: "
                    f"{error.strerror}") from None
            self._empty.discard(slot)
        self._flags[slot] = 1
        view = memoryview(segment.memory)[begin:begin + size]
        return Ref((slot, segment.begin, segment.size, begin, size)), view

    def _grow(self, room: int) -> int:
        if len(self._slots) == _MOST_SLOTS:
            raise MemoryError(f"{_MOST_SLOTS} batches are held at once")
        last = self._segments[-1] if self._segments else None
        if last is None or last.size - last.used < room:
            size = max(room, self._end - _HEADER, _LEAST_SEGMENT)
            os.ftruncate(self._fd, self._end + size)  # takes no memory yet
            last = _Segment(self._end, size,
                            mmap.mmap(self._fd, size, offset=self._end))
            self._segments.append(last)
            self._end += size
        slot = len(self._slots)
        self._slots.append((last, last.used, room))
        self._by_size.setdefault(room, []).append(slot)
        self._empty.add(slot)
        last.used += room
        return slot

    def give_back(self, but: int = 0) -> None:
        """Gives the system the pages of all free slots but so many."""
        free = [slot for slot in range(len(self._slots))
                if self._flags[slot] == 0 and slot not in self._empty]
        for slot in free[but:]:
            segment, begin, room = self._slots[slot]
            segment.memory.madvise(mmap.MADV_REMOVE, begin, room)
            self._empty.add(slot)


class Reader:
    """What a Writer in another process wrote. Thread-safe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._flags = mmap.mmap(fd, _HEADER)
        self._segments: dict[int, mmap.mmap] = {}
        self._lock = threading.Lock()

    def view(self, ref: Ref) -> memoryview:
        """The bytes as a memoryview, which release() does not wait for."""
        _, first, length, begin, size = ref
        with self._lock:
            memory = self._segments.get(first)
            if memory is None:
                memory = mmap.mmap(self._fd, length, offset=first)
                self._segments[first] = memory
        return memoryview(memory)[begin:begin + size]

    def release(self, ref: Ref) -> None:
        # One byte, set by one thread that holds the interpreter's lock, after
        # the reader of the slot gave that lock up: no read can come later.
        self._flags[ref[0]] = 0


class SlotTracker:
    """The slots whose arrays are still in use.

    `lend` gives a memoryview; when the last array over it is gone, from
    whatever thread, its slot is released.
    """

    def __init__(self) -> None:
        self._refs: dict[tuple[int, int], tuple[weakref.ref[Any], int]] = {}

    def __len__(self) -> int:
        return len(self._refs)

    def nbytes(self) -> int:
        return sum(size for _, size in list(self._refs.values()))

    def lend(self, reader: Reader, ref: Ref) -> memoryview:
        import numpy as np  # its arrays can be weakly referenced

        base = np.frombuffer(reader.view(ref), dtype=np.uint8)
        held, key = self._refs, (id(reader), ref[0])

        def gone(_: object) -> None:
            del held[key]  # before the slot can be lent again
            reader.release(ref)
        held[key] = weakref.ref(base, gone), ref[4]
        return base.data
