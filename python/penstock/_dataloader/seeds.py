"""The seeds of workers and of batches, drawn by the engine in the process of
the loop. Workers get them with their tasks, and need no engine.

Here and elsewhere in the drop-in the engine is imported where it is used: a
worker imports the drop-in too, when the user's main module does.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from .fetching import GRAINS

_MASK = (1 << 64) - 1
_WORKER_SEEDS = 0x776F726B657273  # "workers"
_TASK_SEEDS = 0x7461736B73        # "tasks"
_unseeded = itertools.count()


def base_seed(seed: int, epoch: int) -> int:
    """Of the workers of an epoch, as torch would draw it: 63 bits."""
    from .._engine import first_draws

    return first_draws(seed, epoch & _MASK, 0, _WORKER_SEEDS, 1)[0] >> 1


def batch_seeds(seed: int, epoch: int, step: int) -> list[int]:
    """One for each grain of a batch, and one for its collate_fn."""
    from .._engine import first_draws

    return first_draws(seed, epoch & _MASK, step, _TASK_SEEDS,
                       GRAINS + 1)


def drawn_seed(generator: Any = None) -> int:
    """As torch's loader draws a seed: from the generator, else from torch's
    global one. Without torch, the number of such draws."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "empty"):
        return next(_unseeded)
    return int(torch.empty((), dtype=torch.int64).random_(
        generator=generator).item())
