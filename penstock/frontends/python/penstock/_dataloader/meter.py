"""What limits: the loader or the loop. Plain numbers, nothing guessed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..errors import TransformError, worded
from ..explanation import Explanation
from .fetching import Bad

_LEAST_BATCHES = 8
_WAITS = 0.05  # of the time: below it the loop, not the loader, limits


class Meter:
    """Counts over the life of a loader; reset() begins anew."""

    def __init__(self, most_bad: int = 100) -> None:
        self.most_bad = most_bad
        self.reset()

    def reset(self) -> None:
        self.batches = self.items = 0
        self.wait_s = self.loop_s = self.first_batch_s = 0.0
        self.helper_s, self.helper_items = 0.0, 0
        self.bad: list[dict[str, Any]] = []
        self._handed_out: float | None = None

    def asked(self) -> float:
        """next() begins. Returns the time."""
        now = time.perf_counter()
        if self._handed_out is not None:
            self.loop_s += now - self._handed_out
            self._handed_out = None
        return now

    def answered(self, asked: float, items: int, first: bool) -> None:
        now = time.perf_counter()
        if first:
            self.first_batch_s = now - asked  # no part of the waiting below
        else:
            self.wait_s += now - asked
        self.batches += 1
        self.items += items
        self._handed_out = now

    def paused(self) -> None:
        """An epoch is over: what comes now is not the loop's time."""
        self._handed_out = None

    def worked(self, seconds: float, items: int) -> None:
        self.helper_s += seconds
        self.helper_items += items

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
                f"there were {self.batches}, and {_LEAST_BATCHES} are needed")
        share, each = have["wait_share"], have["worker_s_per_item"]
        because = (f"the loop waited {share:.0%} of its time for a batch "
                   f"({self.wait_s:.2f} s of {spent:.2f} s, {self.batches} "
                   f"batches of {self.items / self.batches:.0f} items; first "
                   f"batch after {self.first_batch_s * 1000:.0f} ms)")
        if each is not None:
            because += (f"; {workers} worker(s) needed {each * 1000:.2f} ms "
                        "per item")
        limit, actions = "data", list[dict[str, Any]]()
        if have["limits"] == "loop":
            limit, cause = "compute", ("the input keeps up: more workers "
                                       "change nothing")
        else:
            cause, actions = self._advice(workers, each)
        return _explanation(limit, cause, because, actions,
                            {"compute": 1 - share, "data": share},
                            self.items / spent)

    def _advice(self, workers: int,
                each: float | None) -> tuple[str, list[dict[str, Any]]]:
        """What the loop waits for, and what to do about it."""
        cpus = len(os.sched_getaffinity(0))
        if workers >= cpus:
            return (f"{workers} workers on {cpus} processors: make an item "
                    "cheaper, or move work out of __getitem__", [])
        loop_s = max(self.loop_s, 1e-9)
        work_s = self.wait_s if each is None else each * self.items
        more = min(cpus, max(workers + 1, int(min(work_s / loop_s, cpus))))
        # Without workers, the loop's own time and theirs add up.
        gain = (self.wait_s + loop_s) / max(loop_s, work_s / more)
        if workers:
            gain = min(more / workers, (self.wait_s + loop_s) / loop_s)
        if gain < 1.02:
            return "more workers would gain less than 2 %", []
        return ("the workers do not keep up" if workers
                else "items are fetched by the loop itself", [{
                    "knob": "num_workers", "from": workers, "to": more,
                    "predicted_gain": gain - 1,
                    "cost": f"{more - workers} of {cpus} processors, at that "
                            "gain at most"}])


def _explanation(limit: str, cause: str, because: str,
                 actions: Sequence[dict[str, Any]] = (),
                 parts: Mapping[str, float] = MappingProxyType({}),
                 rate: float | None = None) -> Explanation:
    return Explanation({
        "au": parts.get("compute"), "parts": parts, "samples_per_s": rate,
        "verdict": {"limit": limit, "stage": None, "cause": cause,
                    "because": because, "actions": actions}})
