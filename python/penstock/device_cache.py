"""Giving a device's memory back, between runs or before something large."""

from __future__ import annotations

import gc
import sys

from ._loader.base import open_engines

__all__ = ["clear_device_cache"]


def clear_device_cache() -> int:
    """Frees what is kept on devices and can be had again: the rows of every
    loader that is open, which go to host memory (batches go on in the same
    order), and the memory that PyTorch holds in reserve. Returns the bytes of
    both. Tensors and batches that something still holds stay.
    """
    gc.collect()  # tensors that only a cycle of garbage holds
    freed = 0
    for engine in list(open_engines):
        if not engine.closed():
            freed += engine.release_memory((1 << 64) - 1)
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or \
            not torch.cuda.is_initialized():
        return freed
    for gpu in range(torch.cuda.device_count()):
        before = torch.cuda.memory_reserved(gpu)
        with torch.cuda.device(gpu):
            torch.cuda.empty_cache()
        freed += before - torch.cuda.memory_reserved(gpu)
    return freed
