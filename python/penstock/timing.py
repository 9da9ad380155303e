"""Steps as torch sees them: on a GPU's stream, and in torch's profiler.

The engine times a step where its own device is: on the host's clock, or by the
events of its GPU. Two things it cannot see from there, and they are here:

- The loader gives batches on the CPU, and the loop sends them to a GPU. What
  the host does in a step is then little more than queueing work, so the step
  is timed by two CUDA events on torch's current stream.
- torch.profiler runs: its trace gets ranges for the wait and for the step.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any, Callable

from . import _engine

WAIT, STEP = "penstock: wait for data", "penstock: step"
_METADATA = "penstock"
_METADATA_SHARE = 0.05  # of the loop's time, while a profiler runs


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


class Watch:
    """Stands around every wait for a batch, once torch has been imported. One
    per loader, one thread at a time."""

    def __init__(self, engine: _engine.Engine) -> None:
        self._engine = engine
        self._torch: Any = None
        self._steps: CudaSteps | None = None
        # Elsewhere the engine sees the steps itself, or sim declares them.
        self._may_time = engine.device == "cpu"
        self._marked = False  # by `with loader.step():`
        self._range: Any = None
        self._next_metadata = 0.0

    # --- Called by the engine's iterator.

    def asks(self) -> None:
        self._end_range()
        torch = self._torch or self._find_torch()
        if torch is None:
            return
        if self._steps is not None:
            self._timed("asks")
        elif self._may_time and torch.cuda.is_initialized():
            self._steps = CudaSteps(torch.cuda, self._engine.add_step)
            self._engine.time_elsewhere(True)
        if torch.autograd._profiler_enabled():
            self._add_metadata()
            self._begin_range(WAIT)

    def got(self, epoch: int, rows: int) -> None:
        self._end_range()
        torch = self._torch
        if torch is None:
            return
        if self._steps is not None:
            self._timed("got", epoch, rows)
        if not self._marked and torch.autograd._profiler_enabled():
            self._begin_range(STEP)

    def rests(self) -> None:
        self._end_range()
        self._timed("rests")

    # --- Called by `with loader.step():`.

    def begin(self) -> None:
        self._marked = True
        self._end_range()
        torch = self._torch or self._find_torch()
        if torch is not None and torch.autograd._profiler_enabled():
            self._begin_range(STEP)
        if self._steps is not None:
            self._timed("begin")
        elif not self._captures():
            self._engine.begin_step()

    def end(self) -> None:
        self._end_range()
        if self._steps is not None:
            self._timed("end")
        elif not self._captures():
            self._engine.end_step()

    # --- Called before the numbers are looked at.

    def settle(self) -> None:
        """Waits until all steps that were queued are recorded."""
        if not self._captures():
            self._timed("settle")

    # --- Parts of these.

    def _find_torch(self) -> Any:
        """torch, once all of it has been imported by whatever thread."""
        torch = sys.modules.get("torch")
        if hasattr(torch, "profiler"):
            self._torch = torch
        return self._torch

    def _captures(self) -> bool:
        """Whether a CUDA graph is being captured. What is queued then does not
        run now, and no event may be recorded or asked."""
        torch = self._torch
        return (torch is not None and torch.cuda.is_initialized()
                and bool(torch.cuda.is_current_stream_capturing()))

    def _timed(self, name: str, *values: int) -> None:
        steps = self._steps
        if steps is None:
            return
        try:
            if self._captures():
                steps.forget()
            else:
                getattr(steps, name)(*values)
        except RuntimeError as error:  # CUDA's; its user is warned
            self._may_time, self._steps = False, None
            self._engine.time_elsewhere(False)
            import logging

            logging.getLogger("penstock").warning(
                "steps are timed by the host's clock from here on: CUDA "
                "events fail: %s", error)

    def _begin_range(self, name: str) -> None:
        self._range = self._torch.profiler.record_function(name)
        self._range.__enter__()

    def _end_range(self) -> None:
        if self._range is not None:
            range, self._range = self._range, None
            range.__exit__(None, None, None)

    def _add_metadata(self) -> None:
        """The engine's numbers up to now, as the trace's metadata."""
        began = time.perf_counter()
        if began < self._next_metadata:
            return
        self._torch.autograd._add_metadata_json(_METADATA,
                                                self._engine.report(False))
        ended = time.perf_counter()
        self._next_metadata = ended + (ended - began) / _METADATA_SHARE


class Step:
    """The time of one step: `with loader.step(): ...`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._watch.begin()

    def __exit__(self, *raised: object) -> None:
        self._watch.end()
