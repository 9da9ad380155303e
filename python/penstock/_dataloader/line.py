"""The progress line of a loop over the drop-in, in the engine's words."""
from __future__ import annotations

import time
from typing import Any


class Line:
    """What `step` of `steps` (0: unknown) of an epoch came to. A call
    gives the line, by the meter's numbers since this was made: with a bar,
    where it has to fit into so many columns (0: it has not)."""

    def __init__(self, meter: Any, epoch: int, step: int, steps: int,
                 epochs: int) -> None:
        self._meter, self._epoch, self._epochs = meter, epoch, epochs
        self._step, self._steps = step, steps
        self._began = time.monotonic()
        self._batches = meter.batches
        self._wait_s, self._loop_s = meter.wait_s, meter.loop_s

    def __call__(self, columns: int) -> str:
        from .. import _engine

        taken = self._meter.batches - self._batches
        return _engine.line_of(
            self._epoch, self._epochs, self._step + taken, self._steps,
            time.monotonic() - self._began, taken,
            self._meter.wait_s - self._wait_s,
            self._meter.loop_s - self._loop_s, columns)


def shares(meter: Any) -> str:
    """Where the time went since the loader was made."""
    from .. import _engine

    return _engine.shares_of(meter.batches, meter.wait_s, meter.loop_s)
