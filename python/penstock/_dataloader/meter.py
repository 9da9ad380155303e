"""What limits: the loader or the loop. Plain numbers, nothing guessed.

What n workers would bring is predicted from three times, of which the longest
decides: that of the loop's thread (its own work, and receiving batches), that
of the workers (making and sending batches, shared among n), and that of all
processors (everything that was done on one, where other programs leave us
some). Moving batches is measured: with workers as it happens, without them by
a rehearsal.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..errors import TransformError, worded
from ..explanation import Explanation
from .fetching import Bad
from .rehearsal import Moving

_LEAST_BATCHES = 8
_REHEARSES = 4     # batches, and then powers of two
_WAITS = 0.1       # of the time: below it the loop, not the loader, limits
_LEAST_GAIN = 1.02


def _scheduled(thread: int) -> tuple[int, int] | None:
    """How long a thread of this process was on a processor, and how long it
    waited for one."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
            ran, waited, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return ran, waited


class Meter:
    """Counts over the life of a loader; reset() begins anew."""

    def __init__(self, most_bad: int = 100) -> None:
        self.most_bad = most_bad
        self.reset()

    def reset(self) -> None:
        self.batches = self.items = 0
        self.wait_s = self.loop_s = self.first_batch_s = 0.0
        self.helper_s, self.helper_cpu_s, self.helper_items = 0.0, 0.0, 0
        # On processors, by this process, in `wait_s` and `loop_s`.
        self.cpu_s = 0.0
        self.blocked_s = 0.0  # of `wait_s`: until a worker had a result
        self.moving: Moving | None = None  # a batch; None: not rehearsed
        self.bad: list[dict[str, Any]] = []
        self._handed_out: float | None = None
        self._blocked_now = self._cpu_before = 0.0
        self._thread = threading.get_native_id()
        self._scheduled = _scheduled(self._thread)

    def asked(self) -> float:
        """next() begins. Returns the time."""
        now, cpu = time.perf_counter(), time.process_time()
        if self._handed_out is not None:
            self.loop_s += now - self._handed_out
            self.cpu_s += cpu - self._cpu_before
            self._handed_out = None
        self._cpu_before, self._blocked_now = cpu, 0.0
        return now

    def answered(self, asked: float, items: int, first: bool) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        if first:
            self.first_batch_s = now - asked  # no part of the waiting below
        else:
            self.wait_s += now - asked
            self.cpu_s += cpu - self._cpu_before
            self.blocked_s += self._blocked_now
        self.batches += 1
        self.items += items
        self._handed_out, self._cpu_before = now, cpu

    def paused(self) -> None:
        """An epoch is over: what comes now is not the loop's time."""
        self._handed_out = None

    def blocked(self, seconds: float) -> None:
        """The loop waited so long until a worker had a result."""
        self._blocked_now += seconds

    def worked(self, seconds: float, items: int, cpu_s: float = 0.0) -> None:
        """`cpu_s`: of a worker's process; a thread's is this process's."""
        self.helper_s += seconds
        self.helper_cpu_s += cpu_s
        self.helper_items += items

    def wants_moving(self) -> bool:
        """Whether a verdict would have to know what moving a batch costs."""
        batches, spent = self.batches, self.wait_s + self.loop_s
        return (self.moving is None and batches >= _REHEARSES
                and batches & (batches - 1) == 0
                and self.wait_s > _WAITS * spent)

    def moves(self, moving: Moving) -> None:
        """What was rehearsed since the last batch, which is no one's time."""
        self.moving = moving
        if self._handed_out is not None:
            self._handed_out = time.perf_counter()
            self._cpu_before = time.process_time()

    def processors_left(self) -> float:
        """Of the time in which our thread could have run, the share in which
        it had a processor; 1 where that is unknown."""
        before, now = self._scheduled, _scheduled(self._thread)
        if before is None or now is None or sum(now) == sum(before):
            return 1.0
        return max(0.01, (now[0] - before[0]) / (sum(now) - sum(before)))

    def note_bad(self, epoch: int, step: int, row: int, item: Bad) -> None:
        """A sample that on_bad put another in the place of. Too many end the
        loop: the data is broken, not a sample."""
        self.bad.append({"epoch": epoch, "step": step, "row": row,
                         "index": item.index, "error": item.error})
        if len(self.bad) > self.most_bad:
            raise worded(
                TransformError, "loader.too_many_bad",
                f"{len(self.bad)} samples were bad",
                f"dataset[{item.index!r}], the last one",
                f"max_bad allows {self.most_bad}; {item.error}",
                "look at loader.stats()[\"bad\"], mend the data, or allow "
                "more")

    def stats(self, workers: int) -> dict[str, Any]:
        """A dict of numbers; None where nothing was measured."""
        spent = self.wait_s + self.loop_s
        rate = (self.helper_items / self.helper_s if self.helper_s else None)
        return {
            "batches": self.batches, "items": self.items,
            "first_batch_s": self.first_batch_s if self.batches else None,
            "wait_s": self.wait_s, "loop_s": self.loop_s,
            "wait_share": self.wait_s / spent if spent else None,
            "workers": workers,
            "items_per_s_of_a_worker": rate,
            "worker_s_per_item": 1 / rate if rate else None,
            "limits": self._limits(spent), "bad": list(self.bad)}

    def _limits(self, spent: float) -> str:
        if self.batches < _LEAST_BATCHES or not spent:
            return "unknown"
        return "loader" if self.wait_s / spent > _WAITS else "loop"

    def explain(self, workers: int) -> Explanation:
        """The same for people, with what to change where we know it. What is
        not waiting counts as the accelerator's work."""
        have, spent = self.stats(workers), self.wait_s + self.loop_s
        if have["limits"] == "unknown":
            return _explanation(
                "unknown", "there are too few batches to say what limits",
                f"there were {self.batches}, and {_LEAST_BATCHES} are needed",
                no_action="take more batches, then ask again")
        share, each = have["wait_share"], have["worker_s_per_item"]
        because = (f"the loop waited {share:.0%} of its time for a batch "
                   f"({self.wait_s:.2f} s of {spent:.2f} s, {self.batches} "
                   f"batches of {self.items / self.batches:.0f} items; first "
                   f"batch after {self.first_batch_s * 1000:.0f} ms)")
        if each is not None:
            because += (f"; {workers} worker(s) needed {each * 1000:.2f} ms "
                        "per item")
        if not workers and self.moving is not None and any(self.moving[:2]):
            because += ("; moving a batch between processes, tried here, "
                        f"takes {self.moving.helper_s * 1000:.2f} ms of a "
                        f"worker and {self.moving.loop_s * 1000:.2f} ms of "
                        "the loop")
        left = self.processors_left()
        if left < 0.9:
            because += ("; other work left the loop a processor for "
                        f"{left:.0%} of the time in which it could run")
        cause, action, no_action = self._advice(workers, left)
        limit = "data"
        if have["limits"] == "loop":
            limit, cause = "compute", "the input keeps up"
            if action is None:
                cause += ": more workers change nothing"
                no_action = ("without any waiting the loop would be "
                             f"{self.wait_s / max(self.loop_s, 1e-9):.1%} "
                             "faster, and no setting that is known here would "
                             "gain 2 %")
        return _explanation(limit, cause, because, action, no_action,
                            {"compute": 1 - share, "data": share},
                            self.items / spent)

    def _advice(self, workers: int, left: float
                ) -> tuple[str, dict[str, Any] | None, str | None]:
        """What the loop waits for, and what to do about it, or why there is
        nothing to do."""
        cpus = len(os.sched_getaffinity(0))
        cause = ("the workers do not keep up" if workers
                 else "items are fetched by the loop itself")
        if workers >= cpus:
            return (f"{workers} workers on {cpus} processors do not keep up",
                    None, "there are no processors for more workers: make an "
                    "item cheaper, or move work out of __getitem__")
        if not workers and self.moving is None:
            return cause, None, ("what it would cost to move batches between "
                                 "processes is not measured yet: take more "
                                 "batches")
        if not workers and self.moving and self.moving.why_not:
            return cause, None, ("a batch cannot be moved between processes ("
                                 f"{self.moving.why_not}): make it of arrays, "
                                 "or set workers=\"threads\" where the data "
                                 "set releases the interpreter's lock")
        now = (max(self._times(workers, cpus * left)) if workers
               else self.wait_s + self.loop_s)
        lasts = {n: max(self._times(n, cpus * left))
                 for n in range(workers + 1, cpus + 1)}
        more = next(n for n, seconds in lasts.items()
                    if seconds <= min(lasts.values()) * _LEAST_GAIN)
        gain = now / lasts[more]
        if gain >= _LEAST_GAIN:
            return cause, {
                "knob": "num_workers", "from": workers, "to": more,
                "predicted_gain": gain - 1,
                "cost": f"{more - workers} of {cpus} processors, at that gain "
                        "at most"}, None
        return cause, None, self._why_not(
            self._times(workers + 1, cpus * left), workers, gain)

    def _times(self, workers: int,
               cpus: float) -> tuple[float, float, float]:
        """Seconds that so many workers would take for what was measured: of
        the loop's thread, of the workers, of all processors."""
        if self.helper_items:
            share = self.items / self.helper_items  # some is made ahead
            made, made_cpu = self.helper_s * share, self.helper_cpu_s * share
            received, more_cpu = max(0.0, self.wait_s - self.blocked_s), 0.0
        elif self.moving is not None:
            made = self.wait_s + self.moving.helper_s * self.batches
            received = self.moving.loop_s * self.batches
            made_cpu, more_cpu = 0.0, sum(self.moving[:2]) * self.batches
        else:
            made, made_cpu, received, more_cpu = self.wait_s, 0.0, 0.0, 0.0
        return (max(self.loop_s, 1e-9) + received, made / workers,
                (self.cpu_s + made_cpu + more_cpu) / cpus)

    def _why_not(self, times: tuple[float, float, float], workers: int,
                 gain: float) -> str:
        """Why more workers would not help."""
        loop, made, processors = times
        more = "more workers would gain less than 2 %"
        if gain < 0.98:
            more = f"more workers would bring {100 * (gain - 1):+.0f} %"
        if processors >= max(loop, made):
            return (f"{more}: there is no more processor time; make an item "
                    "cheaper, or move work out of __getitem__")
        if loop > self.loop_s * _LEAST_GAIN:
            return (f"{more}: the loop would spend {loop - self.loop_s:.2f} s "
                    "on receiving what it now waits "
                    f"{self.wait_s:.2f} s for; make an item smaller or "
                    "cheaper, or set workers=\"threads\" where the data set "
                    "releases the interpreter's lock")
        if not workers:
            return f"{more}: make an item cheaper"
        return (f"{more}: those there are fast enough on the average, but "
                "batches come in bursts; try a larger prefetch_factor")


def _explanation(limit: str, cause: str, because: str,
                 action: dict[str, Any] | None = None,
                 no_action: str | None = None,
                 parts: Mapping[str, float] = MappingProxyType({}),
                 rate: float | None = None) -> Explanation:
    return Explanation({
        "au": parts.get("compute"), "parts": parts, "samples_per_s": rate,
        "verdict": {"limit": limit, "stage": None, "cause": cause,
                    "because": because, "actions": [action] if action else [],
                    "no_action": no_action}})
