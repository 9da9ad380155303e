"""torch, imported at its first use."""

from __future__ import annotations

from typing import Any

from .._training.raised import torch_or_refused


class _Torch:
    def __getattr__(self, name: str) -> Any:
        return getattr(
            torch_or_refused("cannot look after the memory of a step"), name)


torch = _Torch()
