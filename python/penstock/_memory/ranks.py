"""Votes and sums of gradients over the ranks of torch.distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch

_BUCKET_BYTES = 25 << 20


class RankGroup:
    """The ranks that share a step. Every rank makes the same calls in the same
    order."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._max = torch.distributed.ReduceOp.MAX
        self._sum = torch.distributed.ReduceOp.SUM
        # Votes are made on the host: a device that is out of memory may have no
        # room for the tensor of a vote.
        self._votes = (group if torch.distributed.get_backend(group) == "gloo"
                       else torch.distributed.new_group(
                           torch.distributed.get_process_group_ranks(
                               group or torch.distributed.group.WORLD),
                           backend="gloo"))

    def vote(self, failed: bool, size: int) -> tuple[bool, int]:
        """Whether any rank failed, and the largest size of all."""
        ballot = torch.tensor([int(failed), size], dtype=torch.int64)
        torch.distributed.all_reduce(ballot, self._max, self._votes)
        any_failed, largest = ballot.tolist()
        return bool(any_failed), int(largest)

    def fill_missing_gradients(self, parameters: list[torch.nn.Parameter]
                               ) -> None:
        """Zeros where another rank has a gradient and this one has none."""
        has = torch.tensor([one.grad is not None for one in parameters],
                           dtype=torch.uint8)
        torch.distributed.all_reduce(has, self._max, self._votes)
        for parameter, wanted in zip(parameters, has.tolist()):
            if wanted and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def sum_gradients(self, gradients: list[torch.Tensor], weight: Any) -> Any:
        """Sums the gradients in place; returns the sum of the weights."""
        total = torch.as_tensor(weight, dtype=torch.float64).detach().cpu()
        total = total.clone()
        torch.distributed.all_reduce(total, self._sum, self._votes)
        for bucket in _buckets(gradients):
            flat = torch.cat([one.reshape(-1) for one in bucket])
            torch.distributed.all_reduce(flat, self._sum, self._group)
            at = 0
            for one in bucket:
                one.copy_(flat[at:at + one.numel()].view_as(one))
                at += one.numel()
        return total.item()


def _buckets(gradients: Iterable[torch.Tensor]
             ) -> Iterable[list[torch.Tensor]]:
    """Neighbours of one dtype and device, up to 25 MiB together."""
    bucket: list[torch.Tensor] = []
    held = 0
    for one in gradients:
        if bucket and (held + one.nbytes > _BUCKET_BYTES
                       or (one.dtype, one.device)
                       != (bucket[0].dtype, bucket[0].device)):
            yield bucket
            bucket, held = [], 0
        bucket.append(one)
        held += one.nbytes
    if bucket:
        yield bucket
