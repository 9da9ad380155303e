"""Looks at those that make items: whether they compute or wait, and for what.
More of them than there are processors gain where they wait."""

from __future__ import annotations

import os
import threading
import time

# A look takes 5 us. Many batches are made in less.
_EACH_OF = 32  # batches is looked at, and then one from time to time
_EVERY_S = 0.02


def read_now(file: str) -> str | None:
    """A short file of the kernel's; None where it does not tell."""
    try:  # not by open(), which takes several times as long
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 200).decode()
        finally:
            os.close(descriptor)
    except OSError:
        return None


def scheduled(thread: int) -> tuple[int, int] | None:
    """How long a thread of this process was on a processor, and how long it
    waited for one."""
    told = read_now(f"/proc/self/task/{thread}/schedstat")
    try:
        ran, waited, _ = map(int, (told or "").split())
    except ValueError:
        return None
    return ran, waited


def scheduled_process() -> tuple[int, int] | None:
    """The same for all threads that this process has now, together."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return None
    told = [times for times in map(scheduled, map(int, threads)) if times]
    return (sum(ran for ran, _ in told),
            sum(waited for _, waited in told)) if told else None


class Looks:
    """How the time goes that the calling thread takes to make its batches.
    The first one is left out: much is imported and opened for it."""

    def __init__(self) -> None:
        self._made = -1
        self._again_at = 0.0
        self._began: tuple[float, int, int] | None = None
        self._seconds, self._ran_ns, self._queued_ns = 0.0, 0, 0

    def begin(self) -> None:
        """A batch is going to be made."""
        self._began, now = None, time.perf_counter()
        self._made += 1
        if self._made == 0 or self._made > _EACH_OF and now < self._again_at:
            return
        spent = scheduled(threading.get_native_id())
        if spent is not None:
            self._began = now, *spent

    def end(self) -> None:
        """It is there."""
        if self._began is None:
            return
        spent = scheduled(threading.get_native_id())
        began, ran, queued = self._began
        if spent is not None:
            self._seconds += time.perf_counter() - began
            self._ran_ns += spent[0] - ran
            self._queued_ns += spent[1] - queued
        self._began, self._again_at = None, began + _EVERY_S

    def take(self) -> tuple[float, float, float]:
        """Since the last call: seconds that were looked at, those of them in
        which the thread was on a processor, and in which it waited for one."""
        taken = self._seconds, 1e-9 * self._ran_ns, 1e-9 * self._queued_ns
        self._seconds, self._ran_ns, self._queued_ns = 0.0, 0, 0
        return taken


def waits_for_process(pid: int) -> bool | None:
    """Whether the first thread of this process waits for a lock that another
    process may hold; None where the kernel does not tell."""
    line = read_now(f"/proc/{pid}/task/{pid}/syscall")
    if line is None:
        return None
    from .._engine import waits_for_process as says

    return says(line)
