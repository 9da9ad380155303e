"""What copies to a GPU would gain from pinned memory, measured on one batch."""

from __future__ import annotations

import sys
import time
from typing import Any, Mapping, NamedTuple


class CopyCost(NamedTuple):
    """Seconds of a batch's copy to the GPU."""
    pageable_s: float
    pinned_s: float


def _tensors(batch: Any) -> list[Any]:
    if isinstance(batch, Mapping):
        batch = batch.values()
    elif not isinstance(batch, (tuple, list)):
        return [batch] if hasattr(batch, "is_pinned") else []
    return [tensor for part in batch for tensor in _tensors(part)]


def measured_copies(batch: Any) -> CopyCost | None:
    """Copies the tensors of `batch` that are in ordinary memory to torch's
    current GPU, unchanged and out of pinned memory. None if none exist,
    torch works on no GPU, or captures a graph. Waits for the GPU."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized() or \
            cuda.is_current_stream_capturing():
        return None
    try:
        here = [tensor for tensor in _tensors(batch)
                if tensor.device.type == "cpu" and not tensor.is_pinned()]
        pinned = [tensor.pin_memory() for tensor in here]
        if not here:
            return None
        tries = [CopyCost(_copied(here, cuda), _copied(pinned, cuda))
                 for _ in range(3)]
    except Exception:  # no room on either side; or no tensors of torch's
        return None
    return CopyCost(*map(min, zip(*tries)))


def _copied(tensors: list[Any], cuda: Any) -> float:
    cuda.synchronize()
    began = time.perf_counter()
    for tensor in tensors:
        tensor.cuda(non_blocking=True)
    cuda.synchronize()
    return time.perf_counter() - began
