"""Steps that torch does on a GPU, timed by CUDA's events."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable


class _Timed:
    """A step on its way: events of the stream, and times of the host."""

    def __init__(self, epoch: int, rows: int, asked: int, got: int) -> None:
        self.epoch, self.rows, self.asked, self.got = epoch, rows, asked, got
        self.begun = got
        self.before: Any = None  # where the step's share of wall time begins
        self.begin: Any = None
        self.end: Any = None


class CudaSteps:
    """Times steps by events, which are asked much later, so that neither the
    host nor the GPU waits for anything.

    Before step i the GPU was idle from the end of step i - 1 to the begin of
    step i. If it was idle at all, it passed that begin the moment the host
    recorded it. So of the idle time, the last part is what the host did
    between getting the batch and there, and before that it waited for data.
    """

    def __init__(self, cuda: Any, record:
                 Callable[[int, int, int, int, int], None],
                 now: Callable[[], int] = time.perf_counter_ns) -> None:
        self._cuda, self._record, self._now = cuda, record, now
        self._steps: deque[_Timed] = deque()
        self._open: _Timed | None = None
        self._mark: Any = None   # the end of the step before
        self._rested = False
        self._asked = 0

    def _recorded(self) -> Any:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def asks(self) -> None:
        """The loop asks for a batch: the step before is over."""
        self.end()
        self._collect()
        self._asked = self._now()
        if self._rested:  # what the stream did meanwhile is no step's
            self._rested = False
            self._mark = self._recorded()

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
        step.end = self._recorded()
        step.before, self._mark = self._mark, step.end
        if step.before is not None:  # the first one only starts the clock
            self._steps.append(step)

    def forget(self) -> None:
        """A graph is being captured: no event may be recorded, and what is
        queued does not run. The clock starts again."""
        self._open, self._mark = None, None

    def rests(self) -> None:
        """Validation, a checkpoint, the end of an epoch: what comes now is no
        part of any step."""
        self.end()
        self._rested = self._mark is not None

    def settle(self) -> None:
        """Waits for the steps that have been queued."""
        if self._steps:
            self._steps[-1].end.synchronize()
        self._collect()

    def _collect(self) -> None:
        while self._steps and self._steps[0].end.query():
            self._account(self._steps.popleft())

    def _account(self, step: _Timed) -> None:
        idle = max(0, _ns_between(step.before, step.begin))
        compute = max(0, _ns_between(step.begin, step.end))
        late = step.begun - step.got
        waited = min(max(0, idle - late), step.got - step.asked)
        self._record(step.epoch, step.rows, idle + compute, compute, waited)


def _ns_between(earlier: Any, later: Any) -> int:
    return int(1e6 * earlier.elapsed_time(later))
