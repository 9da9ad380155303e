"""Steps that torch does on a GPU, timed by CUDA's events."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Callable
from weakref import WeakSet


# A GPU without work passes an event some 10 us after it was recorded.
_DRAINED_NS = 200_000
_DRIFT = 1e-4  # of the two clocks against each other, at most


def place_of_gpu(cuda: Any) -> str:
    """Where torch's current GPU is on the bus, as its driver has it; empty where
    torch does not say."""
    try:
        gpu = cuda.get_device_properties(cuda.current_device())
        return (f"{gpu.pci_domain_id:08x}:{gpu.pci_bus_id:02x}:"
                f"{gpu.pci_device_id:02x}.0")
    except (AttributeError, RuntimeError):
        return ""


class _Timed:
    """A step on its way: events of the stream, and times of the host."""

    def __init__(self, epoch: int, rows: int, asked: int, got: int) -> None:
        self.epoch, self.rows, self.asked, self.got = epoch, rows, asked, got
        self.begun = self.ended = got
        self.before: Any = None  # where the step's share of wall time begins
        self.marked = 0          # when the host recorded that
        self.begin: Any = None
        self.end: Any = None


# torch ends a forked process, such as a DataLoader's worker, that destroys an
# event of its parent's: there, what has some is kept.
_with_events: WeakSet[CudaSteps] = WeakSet()
_kept: list[CudaSteps] = []
os.register_at_fork(after_in_child=lambda: _kept.extend(_with_events))


class CudaSteps:
    """Times steps by events, which are asked much later, so that neither the
    host nor the GPU waits for anything.

    Before step i the GPU was idle from the end of step i - 1 to the begin of
    step i. If it was idle at all, it passed that begin the moment the host
    recorded it. So of the idle time, the last part is what the host did
    between getting the batch and there, and before that it waited for data.
    """

    def __init__(self, cuda: Any, record:
                 Callable[..., None],
                 now: Callable[[], int] = time.perf_counter_ns) -> None:
        self._cuda, self._record, self._now = cuda, record, now
        _with_events.add(self)
        self._steps: deque[_Timed] = deque()
        self._open: _Timed | None = None
        self._mark: Any = None   # the end of the step before
        self._marked = 0
        self._behind = 0.0       # so long the GPU is, as far as known
        self._rested = False
        self._asked = 0

    def _recorded(self) -> Any:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def asks(self) -> None:
        """The loop asks for a batch: the step before is over."""
        self.end()
        self.collect()
        self._asked = self._now()
        if self._rested:  # what the stream did meanwhile is no step's
            self._rested = False
            self.restart()

    def got(self, epoch: int, rows: int) -> None:
        """The batch is there: a step begins."""
        self._open = _Timed(epoch, rows, self._asked, self._now())
        self.begin()

    def begin(self) -> None:
        """It begins here, and not when the batch was there."""
        if self._open is not None:
            self._open.begun = self._now()
            self._open.begin = self._recorded()

    def end(self) -> None:
        step, self._open = self._open, None
        if step is None:
            return
        step.ended = self._now()
        step.end = self._recorded()
        step.before, self._mark = self._mark, step.end
        step.marked, self._marked = self._marked, step.ended
        if step.before is not None:  # the first one only starts the clock
            self._steps.append(step)

    def restart(self) -> None:
        """What came since the step before, or since this one began, is no
        step's."""
        self._mark, self._marked = self._recorded(), self._now()
        self._behind = 0.0
        if self._open is not None:
            self._open.asked = self._open.got = self._now()
            self.begin()

    def forget(self) -> None:
        """A graph is being captured: no event may be recorded, and what is
        queued does not run. The clock starts again."""
        self._open, self._mark, self._behind = None, None, 0.0

    def rests(self) -> None:
        """Validation, a checkpoint, the end of an epoch: what comes now is no
        part of any step."""
        self.end()
        self._rested = self._mark is not None

    def settle(self) -> None:
        """Waits for the steps that have been queued."""
        if self._steps:
            self._steps[-1].end.synchronize()
        self.collect()

    def collect(self) -> None:
        """Counts the steps that have ended."""
        while self._steps and self._steps[0].end.query():
            self._account(self._steps.popleft())

    def _account(self, step: _Timed) -> None:
        idle = max(0, _ns_between(step.before, step.begin))
        compute = max(0, _ns_between(step.begin, step.end))
        late = step.begun - step.got
        waited = min(max(0, idle - late), step.got - step.asked)
        self._fall_behind(idle, step.begun - step.marked)
        self._fall_behind(compute, step.ended - step.begun)
        self._record(step.epoch, step.rows, idle + compute, compute, waited,
                     drained=self._behind <= _DRAINED_NS)

    def _fall_behind(self, gpu: int, host: int) -> None:
        """By what passed between two events for the GPU and for the host. It
        cannot be ahead."""
        self._behind = max(0.0, self._behind + gpu - host * (1 + _DRIFT))


def _ns_between(earlier: Any, later: Any) -> int:
    return int(1e6 * earlier.elapsed_time(later))
