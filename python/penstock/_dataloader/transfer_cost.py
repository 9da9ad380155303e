"""What it costs to move a batch between processes, measured before there is
another process: by moving one here, through the memory and the sockets that a
worker would use."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, NamedTuple

from .memory import Reader, SlotTracker, Writer, make_memory
from .packing import Message, seal
from .seeds import batch_seeds


class TransferCost(NamedTuple):
    """Seconds per batch: what a worker does, and what the loop's thread does.
    `why_not` says why a batch cannot be moved; then both are 0."""
    worker_s: float
    loop_s: float
    why_not: str | None = None


_TRIES = 3

NO_TRANSFER = TransferCost(0.0, 0.0)  # threads hand over what they have


def measured_transfer(batch: Any, items: int) -> TransferCost:
    """Moves `batch` and the task that would request it. A batch that cannot be
    pickled is not an error here."""
    fds: list[int] = []
    loop, worker = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        for name in ("tasks", "batches"):
            fds.append(make_memory(name))
        tasks, batches = (_Channel(fd) for fd in fds)
        task = 0, 0, list(range(items)), 0, 1, 0, 1, batch_seeds(0, 0, 0), 0
        tries = []
        for _ in range(_TRIES):
            asked, got = tasks.move(task, loop, worker)
            sealed, opened = batches.move((batch, ()), worker, loop)
            tries.append(TransferCost(got + sealed, asked + opened))
        return min(tries[1:])  # the first one had to get its memory
    except Exception as error:
        return TransferCost(0.0, 0.0, f"{type(error).__name__}: {error}")
    finally:
        loop.close()
        worker.close()
        for fd in fds:
            os.close(fd)


class _Channel:
    """One way between two processes."""

    def __init__(self, fd: int) -> None:
        self._writer, self._reader = Writer(fd), Reader(fd)
        self._slots = SlotTracker()

    def move(self, thing: Any, by: socket.socket,
             to: socket.socket) -> tuple[float, float]:
        """Seconds of the sender and of the receiver."""
        began = time.perf_counter()
        by.send(seal(thing, self._writer))
        sent = time.perf_counter()
        raw = to.recv(1 << 17)
        Message(raw, self._reader).open(self._slots)
        return sent - began, time.perf_counter() - sent
