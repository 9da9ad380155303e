"""What limits a loop: it is measured, and its verdict is printed.

A DataLoader of torch is measured inside, too: a copy of it is iterated over, in
which the data set and collate_fn are timed where they run, in worker processes
as well. Batches and their order stay unchanged.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any, Iterator, TextIO

from .._dataloader.arguments import is_iterable
from .._dataloader.meter import Meter, transfer_of
from .._dataloader.transfer_cost import TransferCost, measured_transfer
from .copying import CopyCost, measured_copies
from .epoch_starts import EpochStarts
from ..explanation import Explanation
from ..monitor import Monitor
from .predicting import Loop, Processors, drop_in_of
from .timed_items import Made, timed_copy, update_copy

if TYPE_CHECKING:
    from .._engine import FetchWindow

_SHOWN_AFTER_S = 30.0
_PREFETCH = 2  # of each worker, where the loader says none
_COPIES_AT = 6  # batches: then the copy of one to a GPU is measured
_LEAST_BATCHES = 8  # to say anything
_SAMPLED_S = 5.0  # between two looks at the machine
_WORST = 5  # batches, for which the loop waited longest

_live: weakref.WeakSet[Watch] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for watch in list(_live):
        watch.finish()


class _Idle:
    """Processors of the machine that have nothing to do, since this was made."""

    def __init__(self) -> None:
        self._before = self._seconds(), time.perf_counter()

    @staticmethod
    def _seconds() -> float | None:
        try:
            with open("/proc/stat", "rb") as file:
                fields = file.readline().split()
            # user, nice, system, idle, iowait
            ticks = int(fields[4]) + int(fields[5])
            return ticks / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    def processors(self) -> float | None:
        """On the average; None where that is unknown."""
        (idle, began), now = self._before, self._seconds()
        took = time.perf_counter() - began
        return None if idle is None or now is None or took <= 0 else \
            max(0.0, now - idle) / took


def _rows_of(batch: Any) -> int:
    """The length of the first tensor or list in it; 1 if none exists."""
    shape = getattr(batch, "shape", None)  # len() of a tensor takes as long again
    if isinstance(shape, tuple) and shape:
        return max(1, int(shape[0]))
    if isinstance(batch, dict):
        batch = next(iter(batch.values()), None)
    if isinstance(batch, (tuple, list)) and batch and hasattr(
            batch[0], "__len__") and not isinstance(batch[0], (str, bytes)):
        batch = batch[0]
    try:
        return max(1, len(batch))
    except TypeError:
        return 1


def _tells_itself(loop: object) -> bool:
    """Whether it is a loop of this package, which counts and explains."""
    return callable(getattr(loop, "explain", None)) and any(
        of.__module__.startswith("penstock.") for of in type(loop).__mro__)


class Watch:
    """What is measured of a loop, and what it says."""

    def __init__(self, loop: Any, file: TextIO | None, after_s: float) -> None:
        self.loop, self.file, self.after_s = loop, file, after_s
        self._meter = Meter()
        self._made = Made()
        self._moving: TransferCost | None = None  # of a batch; see batch_came
        self._copying: CopyCost | None = None     # of a batch to a GPU
        self._is_ours = _tells_itself(loop)
        self._copy = None if self._is_ours else timed_copy(loop)
        if self._copy is not None:
            self._meter.iterable = is_iterable(loop.dataset)
        # When the verdict was last shown, in seconds of the loop; None: never.
        self._shown_s: float | None = None
        self._shown = ""  # it
        self._fails = False  # to be shown
        self._dropped = False
        self._iterating = False
        self._process = 0  # in which the loop began
        self._asked = 0.0  # when the loop wanted its next batch
        self._first = True  # no batch of the loop has come yet
        self._began = 0.0  # this iteration
        self._epochs_s = 0.0  # of those before
        self._starts = EpochStarts()
        self._starting_s = 0.0  # of the iteration, before it was asked
        self._idle = _Idle()
        self._monitor: Monitor | None = None
        self._sampled = 0.0
        self._worst: list[tuple[float, int, str, float]] = []
        self._least_worst = 0.0  # waits that are no longer are not among them
        _live.add(self)

    # -- an iteration, as Epoch goes through it

    def begin(self) -> tuple[Iterator[Any], bool]:
        """An iteration of the loop, and whether it counts: not one inside
        another."""
        if self._iterating:
            return iter(self.loop), False
        began = time.perf_counter()
        if self._copy is None:
            batches = iter(self.loop)
        else:
            update_copy(self._copy, self.loop)
            batches = iter(self._copy)
        self._starting_s = time.perf_counter() - began
        self._iterating, self._process = True, os.getpid()
        self._first = True
        self._began = began
        return batches, True

    def batch_wanted(self) -> None:
        """The loop asks for its next batch."""
        self._asked = self._meter.asked()
        if self._first:
            return
        if self._shown_s is None and self._loop_s() > self.after_s:
            self._show(knows=self._is_ours)
        if self._is_ours:
            return
        if self._monitor is None or self._asked > self._sampled + _SAMPLED_S:
            self._look_at_machine()
            self._asked = time.perf_counter()

    def batch_came(self, batch: Any, made: Made | None) -> None:
        """The loop continues with the batch."""
        first, self._first = self._first, False
        if self._is_ours:  # it counts by itself
            return
        meter = self._meter
        if made is not None:
            self._count(made)
        rows = _rows_of(batch)
        waited = made_s = meter.answered(self._asked, rows, first)
        if first:
            if self._starts.count == 0 or self._restarts_workers():
                # The rest of it is no wait for this batch, but for its maker.
                made_s = min(waited, made.took_s) if made else 0.0
            self._starts.started(self._starting_s + waited, made_s)
        if made_s > self._least_worst:
            self._note_wait(made_s, made)
        count = meter.batches
        if count == _COPIES_AT or not count & (count - 1):
            self._measure_moving(batch, rows)

    def end(self, left: bool) -> None:
        """After the last batch; `left`: the loop was left before."""
        if not left and not self._is_ours:
            self._starts.ended(time.perf_counter() - self._asked)
        self.failed()
        if self._dropped or not left and hasattr(self.loop, "__next__"):
            self.finish()  # no epoch comes after it

    def failed(self) -> None:
        """The loop has raised."""
        self._meter.paused()
        self._epochs_s, self._iterating = self._loop_s(), False

    def dropped(self) -> None:
        """No iteration begins any more."""
        self._dropped = True
        if not self._iterating and not sys.is_finalizing():
            self.finish()

    def finish(self) -> None:
        """The verdict on the whole loop, but where it is what was shown."""
        if self._shown_s is None or self._loop_s() > self._shown_s:
            self._show(knows=True)

    def _loop_s(self) -> float:
        """Of all iterations up to now."""
        return self._epochs_s + (
            time.perf_counter() - self._began if self._iterating else 0.0)

    def _measure_moving(self, batch: Any, rows: int) -> None:
        """What it costs to hand a batch to another process, and to a GPU: once,
        as soon as that would matter."""
        meter, copy = self._meter, self._copy
        if meter.wants_transfer_cost():
            if copy is not None and self._moving is None:
                self._moving = measured_transfer(batch, rows)
                if self._workers():  # theirs is measured as it happens
                    meter.restart_step()
            if self._has_workers() and self._workers() == 0:
                meter.note_transfer(self._moving or
                                    measured_transfer(batch, rows))
        if meter.batches == _COPIES_AT and copy is not None and \
                not copy.pin_memory:
            self._copying = measured_copies(batch)
            meter.restart_step()

    def _look_at_machine(self) -> None:
        if self._monitor is None:
            self._monitor = Monitor()
        else:
            self._monitor.sample()
        self._sampled = time.perf_counter()

    def _note_wait(self, waited: float, made: Made | None) -> None:
        worst = self._worst
        item = (made.slowest, made.slowest_s) if made else ("", 0.0)
        worst.append((waited, self._meter.batches - 1, *item))
        worst.sort(reverse=True)
        del worst[_WORST:]
        if len(worst) == _WORST:
            self._least_worst = worst[-1][0]

    def _count(self, made: Made) -> None:
        self._made.add(made)
        if self._workers():
            seconds, times, items = made.with_skipped()
            self._meter.worked(
                seconds, items,
                times * (made.process_cpu_s + made.collate_cpu_s))

    def _workers(self) -> int:
        return int(getattr(self.loop, "num_workers", 0))

    def _prefetch(self) -> int:
        return int(getattr(self.loop, "prefetch_factor", None) or _PREFETCH)

    def _epoch_batches(self) -> int:
        """0: not known. A loop over an iterable data set is not asked: torch
        then warns of one that gives more."""
        if self._meter.iterable:
            return 0
        try:
            return len(self.loop)
        except Exception:  # of a sampler that has no length
            return 0

    def _restarts_workers(self) -> bool:
        return self._copy is not None and self._workers() > 0 and \
            not getattr(self.loop, "persistent_workers", True)

    def _has_workers(self) -> bool:
        """Whether the loop has that setting."""
        return hasattr(self.loop, "num_workers")

    def _show(self, knows: bool = False) -> None:
        """The verdict; never a reason for the loop to end. `knows`: only where
        there is one. A fork of the process continues with the loop, too: it says
        nothing."""
        if self._fails or os.getpid() != self._process or not (
                self._is_ours or self._meter.batches >= _LEAST_BATCHES):
            return
        try:
            told = self.explain()
            if knows and told.limit == "unknown":
                return
            self._shown_s, before = self._loop_s(), self._shown
            self._shown = f"penstock: {told}"
            if self._shown != before:
                print(self._shown,
                      file=sys.stderr if self.file is None else self.file,
                      flush=True)
        except Exception:  # closed, full, or none; a loader that was closed
            self._shown_s, self._fails = self._loop_s(), True

    def explain(self) -> Explanation:
        """What limits the loop, and what to change; any time."""
        if self._is_ours:
            told: Explanation = self.loop.explain()
            return told
        return Explanation(self.report())

    def report(self) -> dict[str, Any]:
        """The numbers and the verdict, by the names of a run's report.json:
        {"au", "parts", "samples_per_s", "steps", "samples", "first_batch_ms",
        "verdict"}; where there are too few batches `au` is None, `parts` is
        empty, and the last numbers are missing. `worst_steps` are those for which the loop waited longest,
        `pauses` what it did between two batches that is no step (a checkpoint,
        a validation) and is left out of the rest, `machine` what the host and
        its GPUs did, by the names of `penstock.Monitor`. Of a DataLoader of
        torch also `drop_in`: what penstock's would give in its place, a
        prediction, or None."""
        import json

        if self._is_ours:
            return self.explain().report
        meter, window = self._meter, self._window()
        report: dict[str, Any] = json.loads(window.report())
        report["pauses"] = {"count": meter.pauses, "seconds": meter.paused_s}
        report["worst_steps"] = [
            {"batch": batch, "wait_ms": 1e3 * waited, "item": item or None,
             "item_ms": 1e3 * item_s if item else None}
            for waited, batch, item, item_s in self._worst]
        if self._restarts_workers():
            self._starts.add_to(report, meter.wait_s + meter.loop_s,
                                meter.wait_s)
        report["machine"] = {}
        if self._monitor is not None:
            self._monitor.sample()
            report["machine"] = self._monitor.summary()["metrics"]
        if self._copy is not None:
            report["drop_in"] = None if self._moving is None else drop_in_of(
                Loop(self._meter, self._starts.again_made_s, self._workers(),
                     self._prefetch(), window.epoch_batches),
                self._made, self._moving, Processors(
                    window.cpus, window.cpu_share, self._idle.processors()),
                report["verdict"])
        return report

    def _processors_left(self, window: FetchWindow) -> float:
        """To the loop's thread and those that make its batches: of workers
        beyond the processors, it is their own number that some wait for one."""
        made = self._made
        if 0 < self._workers() <= window.cpus:
            return self._meter.processors_left(made.ran_ns, made.queued_ns)
        return min(window.cpu_share, made.processors_got())

    def _window(self) -> FetchWindow:
        from .._engine import Copies

        window = self._meter.window(self._workers())
        window.has_workers = self._has_workers()
        if self._copy is not None or self._workers():
            window.prefetch = self._prefetch()
        if self._copy is not None:
            window.epoch_batches = self._epoch_batches()
            window.making = self._made.making(self._meter.items)
            window.cpu_share = self._processors_left(window)
            if self._workers():  # torch tells nobody whether they had a batch
                window.blocked_s = None
                if self._moving is not None:
                    window.transfer = transfer_of(self._moving)
        if self._copying is not None:
            window.copies = Copies(*self._copying)
        return window
