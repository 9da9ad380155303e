"""What is counted of a loop over the drop-in. The engine makes a verdict of it
(penstock/advisor)."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .._watch.cuda_steps import CudaSteps, place_of_gpu
from ..errors import TransformError, worded
from ..explanation import Explanation
from .fetching import Bad
from .looks import scheduled
from .transfer_cost import TransferCost

if TYPE_CHECKING:
    from .._engine import FetchWindow, GpuSensor, Transfer

_MEASURES_AT = 4  # batches, and then powers of two
_READS_EVERY_S = 1.0  # of what a GPU's driver says
_LEAST_READINGS = 3
# Until torch works on a GPU: to find in its many names whether it does takes
# 6 us between two batches.
_LOOKS_FOR_GPU_S = 0.1
_PAUSE = 10  # times the median step: no step
_SHORTEST_PAUSE_S = 0.05
_LEAST_STEPS = 8  # of which the median is one
_MEDIAN_OF = 101  # steps, the last ones
_PAUSES_IN = 50  # batches: what comes more often is a part of the loop
_LIMITS = {"unknown": "unknown", "data": "loader", "compute": "loop"}
_COUNTED = ("batches", "items", "first_batch_s", "wait_s", "loop_s",
            "blocked_s", "cpu_s", "worker_items", "worker_s", "worker_cpu_s",
            "gpu_steps", "gpu_drained", "host_wait_s")


def processor_share(ran_ns: int, queued_ns: int) -> float:
    """Of the time in which threads could run, the share in which they had a
    processor; 1 where that is unknown."""
    could = ran_ns + queued_ns
    return max(0.01, ran_ns / could) if could else 1.0


def transfer_of(cost: TransferCost) -> Transfer:
    """As the engine takes it."""
    from .._engine import Transfer

    why_not = (cost.why_not or "").encode(errors="backslashreplace").decode()
    return Transfer(*cost[:2], why_not)


class Meter:
    """Counts over the life of a loader; reset() starts again.

    Once torch works on a GPU, the loop's thread only queues what its steps do:
    it may wait for a batch while the GPU is still busy. From then on `wait_s` is
    the time in which the GPU had nothing to do because no batch was there, and
    `loop_s` the rest, both by CUDA's events.
    """

    def __init__(self, most_bad: int = 100) -> None:
        self.most_bad = most_bad
        self.iterable = False  # the data set has __iter__ alone
        self.threads = False  # workers are threads
        self.reset()

    def reset(self) -> None:
        self.batches = self.items = 0
        self.wait_s = self.loop_s = self.first_batch_s = 0.0
        self.host_wait_s = 0.0  # of the thread, whatever a GPU did meanwhile
        self.worker_s, self.worker_cpu_s, self.worker_items = 0.0, 0.0, 0
        # Of a part of the time in which batches were made, what their maker
        # was on a processor, and waited for one; and looks at makers.
        self.looked_s = self.ran_s = self.queued_s = 0.0
        self.looks = self.in_lock = 0
        # On processors, by this process, in `wait_s` and `loop_s`.
        self.cpu_s = 0.0
        self.blocked_s = 0.0  # of `wait_s`: until a worker had a result
        # Of a batch; None: not measured.
        self.transfer: TransferCost | None = None
        # The loop did something else between two batches (a checkpoint, a
        # validation): no part of `loop_s`.
        self.pauses, self.paused_s = 0, 0.0
        self._steps_s: deque[float] = deque(maxlen=_MEDIAN_OF)
        self.bad: list[dict[str, Any]] = []
        self._steps: CudaSteps | None = None
        self._looks_for_gpu_at = 0.0
        self._events_fail = False
        self.gpu_steps = self.gpu_drained = 0
        self._gpu: GpuSensor | None = None
        self._gpu_use: list[float] = []  # a reading a second
        self._gpu_read = 0.0
        self._handed_out: float | None = None
        self._blocked_now = self._cpu_before = 0.0
        self._thread = threading.get_native_id()
        self._scheduled = scheduled(self._thread)

    def asked(self) -> float:
        """next() begins. Returns the time."""
        if self._steps is not None:
            self._time_on_gpu("asks")
        now, cpu = time.perf_counter(), time.process_time()
        if self._handed_out is not None:
            self._trace("step", self._handed_out, now, self.batches - 1)
            pauses = self.pauses
            if self._steps is None:
                self.loop_s += self._without_pause(now - self._handed_out)
            if self.pauses == pauses:
                self.cpu_s += cpu - self._cpu_before
            self._handed_out = None
        self._cpu_before, self._blocked_now = cpu, 0.0
        if self._steps is None and now >= self._looks_for_gpu_at:
            self._looks_for_gpu_at = now + _LOOKS_FOR_GPU_S
            self._time_on_gpu("asks")
        return now

    def _without_pause(self, took: float) -> float:
        """How long a step took, where it also paused: the median step."""
        steps = self._steps_s
        if took > _SHORTEST_PAUSE_S and len(steps) >= _LEAST_STEPS:
            median = sorted(steps)[len(steps) // 2]
            if took > _PAUSE * median and \
                    self.pauses * _PAUSES_IN < self.batches:
                self.pauses += 1
                self.paused_s += took - median
                return median
        steps.append(took)
        return took

    def answered(self, asked: float, items: int, first: bool) -> float:
        """The batch is there. Returns how long the loop waited for it."""
        now, cpu = time.perf_counter(), time.process_time()
        self._trace("wait for the batch", asked, now, self.batches)
        if first:
            self.first_batch_s = now - asked  # no part of the waiting below
        else:
            self.host_wait_s += now - asked
            if self._steps is None:
                self.wait_s += now - asked
            self.cpu_s += cpu - self._cpu_before
            self.blocked_s += self._blocked_now
        self.batches += 1
        self.items += items
        self._handed_out, self._cpu_before = now, cpu
        if self._steps is not None:
            if first:
                self._time_on_gpu("restart")
            self._time_on_gpu("got", 0, items)
        return now - asked

    @staticmethod
    def _trace(what: str, begin: float, end: float, step: int) -> None:
        """For penstock.trace, which listens only where the engine is loaded:
        worker processes import this, too."""
        engine: Any = sys.modules.get("penstock._engine")
        if engine is not None and engine.is_traced():
            engine.loop_did(what, int(1e9 * begin), int(1e9 * end), step)

    def paused(self) -> None:
        """An epoch is over: what comes now is not the loop's time."""
        self._handed_out = None
        self._time_on_gpu("rests")

    def _time_on_gpu(self, call: str, *values: int) -> None:
        """A call of CudaSteps, where torch works on a GPU."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if self._events_fail or cuda is None or not cuda.is_initialized():
            return
        if self._steps is None:
            self._steps = CudaSteps(cuda, self._add_step)
            self._watch_gpu(place_of_gpu(cuda))
        try:
            if cuda.is_current_stream_capturing():
                self._steps.forget()
            else:
                getattr(self._steps, call)(*values)
        except RuntimeError:  # CUDA's, of which its user hears elsewhere
            self._events_fail, self._steps = True, None

    def _add_step(self, epoch: int, items: int, wall: int, compute: int,
                  waited: int, drained: bool) -> None:
        self.wait_s += 1e-9 * waited
        self.loop_s += self._without_pause(1e-9 * (wall - waited))
        self.gpu_steps += 1
        self.gpu_drained += drained
        now = time.perf_counter()
        if self._gpu is None or now - self._gpu_read < _READS_EVERY_S:
            return
        self._gpu_read, use = now, self._gpu.utilisation()
        if use is not None:
            self._gpu_use.append(use)

    def _watch_gpu(self, place: str) -> None:
        from .._engine import GpuSensor

        if place:
            self._gpu, self._gpu_read = GpuSensor(place), time.perf_counter()

    def blocked(self, seconds: float) -> None:
        """The loop waited so long until a worker had a result."""
        self._blocked_now += seconds

    def worked(self, seconds: float, items: int, cpu_s: float = 0.0) -> None:
        """`cpu_s`: of a worker's process; a thread's is this process's."""
        self.worker_s += seconds
        self.worker_cpu_s += cpu_s
        self.worker_items += items

    def looked(self, seconds: float, ran_s: float, queued_s: float) -> None:
        """So much of the making of batches was looked at (Looks.take())."""
        self.looked_s += seconds
        self.ran_s += ran_s
        self.queued_s += queued_s

    def saw(self, in_lock: bool | None) -> None:
        """A look at somebody that makes a batch."""
        if in_lock is not None:
            self.looks += 1
            self.in_lock += in_lock

    def wants_transfer_cost(self) -> bool:
        """Whether a verdict would have to know what moving a batch costs."""
        batches = self.batches
        if (self.transfer is not None or batches < _MEASURES_AT
                or batches & (batches - 1)):
            return False
        from .._engine import waits_for_batches

        return waits_for_batches(self.wait_s, self.loop_s)

    def note_transfer(self, transfer: TransferCost) -> None:
        """What was measured since the last batch; the time that took is
        counted nowhere."""
        self.transfer = transfer
        self.restart_step()

    def restart_step(self) -> None:
        """What was done since the last batch is no part of the loop."""
        if self._handed_out is not None:
            self._handed_out = time.perf_counter()
            self._cpu_before = time.process_time()
            self._time_on_gpu("restart")

    def processors_left(self, ran_ns: int = 0, queued_ns: int = 0) -> float:
        """Of the time in which our thread could have run, the share in which
        it had a processor; 1 where that is unknown. With that of others, which
        ran and waited for so long: a thread that mostly waits for them only
        shows how soon it is woken."""
        before, now = self._scheduled, scheduled(self._thread)
        if before is None or now is None:
            return 1.0
        return processor_share(now[0] - before[0] + ran_ns,
                               now[1] - before[1] + queued_ns)

    def note_bad(self, epoch: int, step: int, row: int, item: Bad) -> None:
        """A sample for which on_bad put in another. Too many of them end the
        loop: then the data is broken, not a sample."""
        self.bad.append({"epoch": epoch, "step": step, "row": row,
                         "index": item.index, "error": item.error})
        if len(self.bad) > self.most_bad:
            raise worded(
                TransformError, "loader.too_many_bad",
                f"{len(self.bad)} samples were bad",
                f"dataset[{item.index!r}], the last bad sample",
                f"max_bad is {self.most_bad}; the last error was: {item.error}",
                "inspect loader.stats()[\"bad\"], correct the data, or raise "
                "max_bad")

    def stats(self, workers: int) -> dict[str, Any]:
        """A dict of numbers; None where nothing was measured. Cheap enough for
        every step: it waits for no GPU."""
        window = self.window(workers, wait=False)
        spent, rate = self.wait_s + self.loop_s, window.worker_rate()
        return {
            "batches": self.batches, "items": self.items,
            "first_batch_s": self.first_batch_s if self.batches else None,
            "wait_s": self.wait_s, "loop_s": self.loop_s,
            "wait_share": self.wait_s / spent if spent else None,
            "workers": workers,
            "items_per_s_of_a_worker": rate,
            "worker_s_per_item": 1 / rate if rate else None,
            "limits": _LIMITS[window.limit()], "bad": list(self.bad)}

    def explain(self, workers: int, prefetch: int = 0) -> Explanation:
        """The engine's verdict on what was counted. `prefetch`: batches ahead
        of each worker, where that is known."""
        window = self.window(workers)
        window.prefetch = prefetch
        return Explanation(json.loads(window.report()))

    def window(self, workers: int, wait: bool = True) -> FetchWindow:
        """What the engine makes a verdict of. `wait`: for steps that a GPU has
        still to do."""
        from .._engine import FetchWindow, Looked

        self._time_on_gpu("settle" if wait else "collect")
        window = FetchWindow()
        for name in _COUNTED:
            setattr(window, name, getattr(self, name))
        window.blocked_s = min(self.blocked_s, self.wait_s)
        if len(self._gpu_use) >= _LEAST_READINGS:
            window.gpu_busy = sum(self._gpu_use) / len(self._gpu_use)
        if self.transfer is not None:
            window.transfer = transfer_of(self.transfer)
        if self.looked_s > 0:
            window.looked = Looked(self.looked_s, self.ran_s,
                                   self.queued_s, self.looks, self.in_lock)
        window.workers, window.iterable = workers, self.iterable
        window.threads = self.threads
        window.cpus = len(os.sched_getaffinity(0))
        window.cpu_share = self.processors_left()
        return window
