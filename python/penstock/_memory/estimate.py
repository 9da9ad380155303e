"""Memory of a training step, by owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

from .peak import peak_bytes
from .slices import rows_of, sliced, tensors_in, tensors_of
from .snapshot import TrainingState, optimizer_bytes, optimizers_of

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


def estimate_memory(model: torch.nn.Module, batch: Any,
                    loss: Callable[[torch.nn.Module, Any], torch.Tensor]
                    | None = None) -> dict[str, int]:
    """The bytes of tensors that a training step holds at its peak.

    `batch`: tensors with the rows first, on the model's device; give the
    longest rows of the data. `loss(model, batch)` returns a scalar; default:
    the sum of what the model returns for the batch (a mapping is given by name,
    a list or tuple by position).

    Returns "parameters" (with buffers), "gradients", "optimizer" (its state as
    it is now; before the first step that of AdamW, where an optimizer holds the
    parameters), "activations" (everything else at the peak), "total" and
    "per_row", in bytes. Activations are those of the whole batch where it has
    fewer than 8 rows, else those of the line through a half and a quarter of it,
    so that the whole batch need not fit. The model, its gradients and the random
    state are the same afterwards.
    """
    batch = tensors_of(batch)
    rows = rows_of(batch)
    trained = [one for one in model.parameters() if one.requires_grad]
    device = next(model.parameters()).device
    kept = TrainingState(model)

    def above_parameters(count: int) -> int:
        part = sliced(batch, 0, count)
        for parameter in trained:
            parameter.grad = None  # as zero_grad() leaves them

        def forward_and_backward() -> None:
            (loss or model_loss)(model, part).backward()

        return peak_bytes(forward_and_backward, device)

    try:
        above_parameters(min(rows, 2))  # what is made once
        if rows < 8:
            peak = above_parameters(rows)
            per_row = (peak - above_parameters(1)) / max(1, rows - 1)
        else:
            less, more = map(above_parameters, (rows // 4, rows // 2))
            per_row = (more - less) / (rows // 2 - rows // 4)
            peak = int(more + per_row * (rows - rows // 2))
    finally:
        kept.restore()
    gradients = sum(one.nbytes for one in trained)
    parts = {
        "parameters": sum(one.nbytes for one in (*model.parameters(),
                                                 *model.buffers())),
        "gradients": gradients,
        "optimizer": _optimizer_bytes(trained),
        "activations": max(0, peak - gradients)}
    return {**parts, "total": sum(parts.values()), "per_row": int(per_row)}


def model_loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    """The sum of every floating-point number that the model returns."""
    if isinstance(batch, Mapping):
        made = model(**batch)
    elif isinstance(batch, (list, tuple)):
        made = model(*batch)
    else:
        made = model(batch)
    total = torch.zeros((), device=next(model.parameters()).device)
    for tensor in tensors_in(made):
        if tensor.is_floating_point() and tensor.requires_grad:
            total = total + tensor.float().sum()
    return total


def _optimizer_bytes(trained: list[torch.nn.Parameter]) -> int:
    found = optimizers_of(trained)
    now = sum(map(optimizer_bytes, found))
    if now or not found:
        return now
    # Two moments, in the parameters' type, and a count of steps.
    return sum(2 * one.nbytes + 4 for one in trained)
