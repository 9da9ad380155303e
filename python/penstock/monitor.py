"""What the machine does while a program runs: GPUs, processors, memory, drives,
network; and what the threads of its loaders do, piece by piece."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from . import _engine


class Monitor:
    """Watches the machine, and this process, beside any program.

        with penstock.Monitor(interval=1.0) as monitor:
            train()
        print(monitor.summary()["assessment"])

    As a context manager it samples every `interval` seconds, from a thread of
    its own, until the block ends. `sample()` takes one at any time: the numbers
    since the sample before. `gpus` is "auto", "none", or "synthetic" for a GPU
    that is not there; `pid` another process than this one. What the system does
    not tell is missing, and never 0. Thread-safe.

    >>> monitor = Monitor(gpus="none")
    >>> "memory_percent" in monitor.sample()
    True
    >>> monitor.summary()["samples"]
    1
    """

    def __init__(self, interval: float = 1.0, *, gpus: str = "auto",
                 pid: int | None = None) -> None:
        if not interval > 0:
            raise ValueError(f"interval is {interval!r}, and must be more than "
                             "0 seconds")
        if gpus not in ("auto", "none", "synthetic"):
            raise ValueError(f"gpus is {gpus!r}, and must be 'auto', 'none' or "
                             "'synthetic'")
        self._series = _engine.MachineSeries(
            os.getpid() if pid is None else pid, gpus)
        self._interval = interval
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def sample(self) -> dict[str, float]:
        """The numbers since the last sample, by name: "cpu_percent",
        "gpu0.utilisation_percent", "process.resident_bytes", ..."""
        with self._lock:
            sample: dict[str, float] = json.loads(self._series.sample())
        return sample

    def summary(self) -> dict[str, Any]:
        """Mean, min, max and p95 of each number, as `metrics`; the threads of
        the process; and an `assessment`: what was found, and because of
        which numbers."""
        with self._lock:
            summary: dict[str, Any] = json.loads(self._series.summary())
        return summary

    def __enter__(self) -> Monitor:
        if self._thread is not None:
            raise RuntimeError("this monitor is already running")
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name="penstock-monitor")
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        thread, self._thread = self._thread, None
        self._ended.set()
        if thread is not None:
            thread.join()
        self.sample()

    def _run(self) -> None:
        while not self._ended.wait(self._interval):
            self.sample()


@contextlib.contextmanager
def trace(file: str | os.PathLike[str]) -> Iterator[None]:
    """Writes what the threads of all loaders, the loop and the device do in its
    block, on one clock, to a file for ui.perfetto.dev or chrome://tracing.

        with penstock.trace("trace.json"):
            for batch in loader:
                step(batch)

    Loops over the loaders of this package are seen. Of another loop, over a
    DataLoader of torch for example, its steps and its waits are, where it is
    watched: `for batch in penstock.watch(loader)`. Warns where nothing was
    seen.

    Also where the block raises. It costs about a microsecond for each piece of
    work, and keeps the first million. Raises RequestError where the file cannot
    be written.
    """
    kept = _engine.Trace()
    try:
        yield
    finally:
        kept.end()
        kept.write(os.fspath(file))
        if not kept.kept():
            warnings.warn(
                f"nothing was traced in {os.fspath(file)}: no loop over a "
                "Penstock loader or a watched loader ran. For a loop over "
                "another loader write 'for batch in penstock.watch(loader):' "
                "instead of 'for batch in loader:'",
                stacklevel=3)
