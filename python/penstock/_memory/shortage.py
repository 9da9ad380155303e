"""What torch raises where memory is short."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch

# Libraries beside torch's allocator report a shortage in words of their own.
_WORDS = ("out of memory", "cublas_status_alloc_failed",
          "cudnn_status_alloc_failed", "defaultcpuallocator: can't allocate")


def is_shortage(error: BaseException | None) -> bool:
    """Whether the error means that memory was short."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return (isinstance(error, RuntimeError)
            and any(word in str(error).lower() for word in _WORDS))
