"""What it costs to move a batch between processes, measured before there is
another process: by moving one here, through the memory and the sockets that a
helper would use."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, NamedTuple

from .memory import Held, Reader, Writer, make_memory
from .packing import Letter, seal
from .seeds import batch_seeds


class Moving(NamedTuple):
    """Seconds per batch: what a helper does, and what the loop's thread does.
    `why_not` says why a batch cannot be moved; then both are 0."""
    helper_s: float
    loop_s: float
    why_not: str | None = None


_TRIES = 3

NO_MOVING = Moving(0.0, 0.0)  # threads hand over what they have


def rehearsed(batch: Any, items: int) -> Moving:
    """Moves `batch` and the task that would ask for it. A batch that cannot be
    pickled is no error here."""
    fds: list[int] = []
    loop, helper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        for name in ("tasks", "batches"):
            fds.append(make_memory(name))
        tasks, batches = (_Road(fd) for fd in fds)
        task = 0, 0, list(range(items)), 0, 1, 0, 1, batch_seeds(0, 0, 0), 0
        tries = []
        for _ in range(_TRIES):
            asked, got = tasks.move(task, loop, helper)
            sealed, opened = batches.move((batch, ()), helper, loop)
            tries.append(Moving(got + sealed, asked + opened))
        return min(tries[1:])  # the first one had to get its memory
    except Exception as error:
        return Moving(0.0, 0.0, f"{type(error).__name__}: {error}")
    finally:
        loop.close()
        helper.close()
        for fd in fds:
            os.close(fd)


class _Road:
    """One way between two processes."""

    def __init__(self, fd: int) -> None:
        self._writer, self._reader = Writer(fd), Reader(fd)
        self._held = Held()

    def move(self, thing: Any, by: socket.socket,
             to: socket.socket) -> tuple[float, float]:
        """Seconds of who sends and of who receives."""
        began = time.perf_counter()
        by.send(seal(thing, self._writer))
        sent = time.perf_counter()
        message = to.recv(1 << 17)
        Letter(message, self._reader).open(self._held)
        return sent - began, time.perf_counter() - sent
