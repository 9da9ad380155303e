"""The rows of a batch that a module with batch normalisation learns from, and
those that stand in where a rank has none."""

from __future__ import annotations

from typing import Any, Mapping


def normalises(torch: Any, module: Any) -> bool:
    """Whether batch normalisation is among its layers."""
    return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
               for layer in module.modules())


class Rows:
    """Rows of weight 0, padding and masked ones, must not enter the statistics
    that batch normalisation keeps: a module that has such layers is given the
    others alone. Which these are is known on the host, so that a GPU is not
    waited for. Packed batches, whose tensors have no row for each sample, stay
    unchanged.
    """

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._normalises = normalises(torch, module)
        self.none = False
        """Whether no row of the last batch counted: it had all of them."""

    def counted(self, batch: Any) -> Mapping[str, Any]:
        tensors: Mapping[str, Any] = batch.torch()
        self.none = False
        if not self._normalises or "weight" not in tensors:
            return tensors
        masked = {bad["row"] for bad in batch.rejected
                  if bad["substitute"] is None}
        kept = [row for row, sample in enumerate(batch.ids.tolist())
                if sample >= 0 and row not in masked]
        self.none = not kept
        if not kept or len(kept) == batch.rows or any(
                tensor.shape[:1] != (batch.rows,)
                for tensor in tensors.values()):
            return tensors
        count = len(kept)
        if kept[-1] + 1 == count:
            return {name: tensor[:count] for name, tensor in tensors.items()}
        device = next(iter(tensors.values())).device
        index = self._torch.tensor(kept).to(device, non_blocking=True)
        return {name: tensor.index_select(0, index)
                for name, tensor in tensors.items()}


class StandIn:
    """A row that a rank without rows gives to its module, whose loss then
    weighs nothing: every rank has to take part in what the module's engine
    does. It is the first row that this rank has seen; until it has seen one,
    zeros. With batch normalisation it stands there twice.
    """

    def __init__(self, torch: Any, module: Any) -> None:
        self._count = 2 if normalises(torch, module) else 1
        self._torch = torch
        self._kept: dict[str, Any] | None = None

    def see(self, rows: int, tensors: Mapping[str, Any]) -> None:
        """Keeps the first row; of packed rows, whose tensors have none, all."""
        if self._kept is not None or rows == 0:
            return
        single = all(each.shape[:1] == (rows,) for each in tensors.values())
        self._kept = {
            name: self._repeated(each[:1]) if single else each.clone()
            for name, each in tensors.items()}

    def row(self, empty: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`empty`: a batch without rows."""
        if self._kept is not None:
            return dict(self._kept)
        return {name: self._repeated(self._blank(each))
                for name, each in (empty or {}).items()}

    def _repeated(self, row: Any) -> Any:
        return row.repeat(self._count, *[1] * (row.dim() - 1))

    def _blank(self, empty: Any) -> Any:
        shape = (1, *(max(1, extent) for extent in empty.shape[1:]))
        # A mask that hides everything would divide by nothing.
        made = empty.new_ones if empty.dtype == self._torch.bool \
            else empty.new_zeros
        return made(shape)
