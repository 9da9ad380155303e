"""A batch that goes through the module in micro-batches.

The gradients are those of the whole batch: each micro-batch adds those of the
sum of its losses, and all are divided once by what counts in all of them.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Mapping

from .._memory.reduction import reduction_of
from .._memory.slices import sliced
from .._memory.snapshot import RandomState, Tensors
from .objective import Objective, Returned

Batch = Mapping[str, Any]


def rows_in(tensors: Batch) -> int:
    """Rows that a batch can be cut into; 1 where a tensor has no place for each
    row, as in packed batches."""
    lengths = {len(tensor) for tensor in tensors.values() if tensor.dim()}
    return lengths.pop() if len(lengths) == 1 else 1


class Division:
    """The forward and backward passes of a batch. `answer(tensors)` runs the
    module; `scaled(loss)` is what goes backward; `weights` are those that
    learn."""

    def __init__(self, torch: Any, objective: Objective, module: Any,
                 answer: Callable[[Batch], Any],
                 scaled: Callable[[Any], Any], weights: list[Any]) -> None:
        self._torch, self._objective = torch, objective
        self._module, self._answer = module, answer
        self._scaled, self._weights = scaled, weights
        self._reduction = "sum"  # of the objective's sums
        self._known = not isinstance(objective, Returned)
        self.at = (0, 0)
        """The rows that are at hand, or were when memory ran out."""

    def learned(self, tensors: Batch, most: int, share: int,
                check: Callable[[Any], None]) -> Any:
        """Leaves the gradients of a batch, at most `most` rows at once, of
        which `share` batches move the weights together; its loss. `check` is
        given each loss before it goes backward."""
        rows = rows_in(tensors)
        self.at = (0, rows)
        if most >= rows:
            loss, _ = self._objective.loss(self._answer(tensors), tensors)
            check(loss)
            self._scaled(loss / share).backward()
            return loss.detach()
        if not self._known:
            self._find_reduction(tensors, most, rows)
        total: Any = 0
        counted: Any = 0
        for begin in range(0, rows, most):
            self.at = begin, min(begin + most, rows)
            summed, count = self._part(sliced(tensors, *self.at), rows, check)
            total, counted = total + summed, counted + count
        self.at = (0, rows)
        with self._torch.no_grad():
            counted = self._least_one(counted)
            for weight in self._weights:
                if weight.grad is not None:
                    weight.grad.mul_(rows / (counted * share))
        return total / counted

    def _part(self, part: Batch, rows: int, check: Callable[[Any], None]
              ) -> tuple[Any, Any]:
        """In a frame of its own: nothing of a micro-batch is left behind."""
        summed, count = self._sums(part)
        check(summed)
        self._scaled(summed / rows).backward()
        return summed.detach(), count

    def _sums(self, part: Batch) -> tuple[Any, Any]:
        """The sum of the losses of a micro-batch, and what counts in it."""
        summed, count = self._objective.sums(self._answer(part), part)
        if self._reduction == "mean":
            return summed * rows_in(part), rows_in(part)
        return summed, count

    def _least_one(self, counted: Any) -> Any:
        if isinstance(counted, self._torch.Tensor):
            return counted.clamp_min(1)
        return max(counted, 1)

    def _find_reduction(self, tensors: Batch, most: int, rows: int) -> None:
        """A module that gives its loss does not say whether it is a sum or a
        mean of rows: its first two micro-batches do, and both together."""
        end = min(2 * most, rows)
        state = RandomState(one.device for one in self._weights)
        buffers = Tensors(self._module.buffers())
        losses = []
        with self._torch.no_grad():
            for begin, stop in ((0, most), (most, end), (0, end)):
                part = sliced(tensors, begin, stop)
                loss, _ = self._objective.loss(self._answer(part), part)
                losses.append(float(loss))
                state.restore()
                buffers.restore()
        found = reduction_of(losses[0], losses[1], losses[2],
                             (most, end - most))
        if found is None:
            logging.getLogger("penstock").warning(
                "the loss of the model is neither a sum nor a mean over the "
                "rows of a batch (%g and %g for two micro-batches, %g for "
                "both together), so micro-batches train on another loss; "
                'train.oom "stop" ends the run instead', *losses)
        self._reduction = found or "mean"
        self._known = True
