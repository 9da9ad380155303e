"""Batches of torch tensors, cut along their first dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import refused

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


def tensors_of(batch: Any) -> Any:
    """A batch of Penstock as a dictionary of tensors; anything else unchanged."""
    from .. import Batch

    return batch.torch() if isinstance(batch, Batch) else batch


def rows_of(batch: Any) -> int:
    """The length of the first dimension, which all tensors of the batch share.
    Raises RequestError, memory.rows."""
    lengths = {len(tensor) for tensor in tensors_in(batch) if tensor.dim()}
    if len(lengths) == 1:
        return lengths.pop()
    found = ("its tensors have " + ", ".join(map(str, sorted(lengths)))
             + " rows" if lengths else "it holds no tensor with rows")
    raise refused("memory.rows", "cannot divide a batch into micro-batches",
                  type(batch).__name__, found,
                  "give tensors that all have the batch as first dimension")


def sliced(batch: Any, begin: int, end: int) -> Any:
    """Rows [begin, end) of each tensor, as views. Mappings become dictionaries;
    values without rows are kept."""
    if isinstance(batch, torch.Tensor):
        return batch[begin:end] if batch.dim() else batch
    if isinstance(batch, Mapping):
        return {key: sliced(value, begin, end) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(sliced(value, begin, end) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(sliced(value, begin, end) for value in batch)
    return batch


def tensors_in(batch: Any) -> list[torch.Tensor]:
    """The tensors of a batch, or of what a model returns, in their order."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [tensor for value in batch for tensor in tensors_in(value)]
    return []
