"""What the engine asks of torch before there is a module."""

from __future__ import annotations

from typing import Any

from .ranks import Group, opened


class Maker:
    """`shares`: the work is that of all ranks, where there are several."""

    def __init__(self, torch: Any, shares: bool = True) -> None:
        self._torch, self._shares = torch, shares
        self._ranks: Group | None = None

    def open_ranks(self, may_use_gpu: bool) -> Group | None:
        """The ranks of the work; None where it is that of one process."""
        if self._shares:
            self._ranks = opened(self._torch, may_use_gpu)
        return self._ranks

    def cuda_unavailable_reason(self) -> str:
        """Why torch cannot compute on a GPU here; "" where it can."""
        if self._torch.version.cuda is None:
            return f"torch {self._torch.__version__} was built without CUDA"
        if not self._torch.cuda.is_available():
            return "torch.cuda.is_available() is false"
        return ""
