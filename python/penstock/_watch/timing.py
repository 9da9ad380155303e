"""Steps as torch sees them: on a GPU's stream, and in torch's profiler.

The engine times a step where its own device is: on the host's clock, or by the
events of its GPU. Two things it cannot see from there, and they are here:

- The loader gives batches on the CPU, and the loop sends them to a GPU. What
  the host does in a step is then little more than queueing work, so the step
  is timed by two CUDA events on torch's current stream.
- torch.profiler runs: its trace gets ranges for the wait and for the step.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from .. import _engine
from .cuda_steps import CudaSteps, place_of_gpu
from ..explanation import Explanation
from ..printing import printable

WAIT, STEP = "penstock: wait for data", "penstock: step"
_METADATA = "penstock"
_METADATA_SHARE = 0.05  # of the loop's time, while a profiler runs


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
            self._engine.time_elsewhere(True, place_of_gpu(torch.cuda))
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

    def stats(self) -> dict[str, Any]:
        """All numbers up to now."""
        self.settle()
        return dict(json.loads(self._engine.report(True)))

    def explain(self) -> Explanation:
        """The verdict on them."""
        return Explanation(self.stats())

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
                "steps are now timed with the host's clock: CUDA events fail: "
                "%s", printable(str(error)))

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
