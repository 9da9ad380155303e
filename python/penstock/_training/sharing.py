"""The engine of `train.strategy`."""

from __future__ import annotations

from typing import Any

from ..errors import refused
from .ranks import Group
from .strategies import Ddp, Fsdp2, Whole
from .zero import Zero


def chosen(torch: Any, module: Any, switches: Any,
           ranks: Group | None) -> Whole:
    """The engine of `train.strategy`, which is in force."""
    if ranks is None:
        return Whole(module)
    if switches.strategy == "ddp":
        return Ddp(torch, module, ranks)
    if switches.precision == "float16":
        raise refused("ranks.strategy", "cannot shard the model",
                      "train.precision", "float16 needs a scaler of losses, "
                      f"which the strategy {switches.strategy} does not have",
                      'set train.precision to "bfloat16" or "float32"')
    if switches.strategy == "deepspeed":
        return Zero(torch, module, ranks)
    return Fsdp2(torch, module, ranks, switches.device)
