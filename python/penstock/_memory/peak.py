"""The most memory that a piece of work holds at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


def peak_bytes(work: Callable[[], Any], device: torch.device) -> int:
    """Calls `work` and returns the bytes of tensors that it held at most, above
    those that were there before. On the host every allocation of torch is
    counted by its profiler, which slows `work` down."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it writes to stderr
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU],
                 profile_memory=True) as profiled:
        work()
    events = [event for event in profiled.profiler.kineto_results.events()
              if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
