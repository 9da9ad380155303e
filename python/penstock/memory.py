"""Memory of a training step in torch.

`OomGuard` runs a step in smaller pieces where memory is short,
`max_batch_size` finds the largest batch before training, `estimate_memory`
tells what a step holds, `device_info` what the device is, and `fast_math`
switches on faster arithmetic. torch is imported when one of them is called.
"""

from __future__ import annotations

from ._memory.device import device_info, fast_math
from ._memory.estimate import estimate_memory
from ._memory.guard import MicroBatch, OomGuard
from ._memory.search import max_batch_size

__all__ = ["MicroBatch", "OomGuard", "device_info", "estimate_memory",
           "fast_math", "max_batch_size"]
