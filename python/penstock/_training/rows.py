"""The rows of a batch that a module with batch normalisation learns from."""

from __future__ import annotations

from typing import Any, Mapping


class Rows:
    """Rows of weight 0, padding and masked ones, must not enter the statistics
    that batch normalisation keeps: a module that has such layers is given the
    others alone. Which these are is known on the host, so that a GPU is not
    waited for. Packed batches, whose tensors have no row for each sample, stay
    unchanged.
    """

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._normalises = any(
            isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
            for layer in module.modules())
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
