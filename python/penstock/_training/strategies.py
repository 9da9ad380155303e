"""How the ranks of a run share a module: torch's own engines; DeepSpeed's is in
zero.py.

A step on several ranks, from the rows of this one to gradients of all: forward
-> the sums of losses and of what they count travel, once -> backward of the
rank's mean loss times (its count x world / count of all). The engines take the
mean of the gradients over the ranks, so that it is the gradient of the mean
over all rows, however many each rank has.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping

from .ranks import Group

#: Of a module and the tensors of a batch: the mean loss, and what it counts.
Computed = Callable[[Any, Mapping[str, Any]], "tuple[Any, Any]"]


class Whole:
    """One process has the whole module."""

    name = "none"
    #: Bytes that a rank gives to a sum over the ranks when it moves weights.
    summed = 0

    def __init__(self, module: Any) -> None:
        self.module = module

    def begin(self, optimiser: Any) -> None:
        """Before the first step."""

    def compute(self, of: Computed, tensors: Mapping[str, Any]
                ) -> tuple[Any, Any]:
        return of(self.module, tensors)

    def together(self, loss: Any, count: Any) -> tuple[Any, Any]:
        """The mean loss over all ranks, and what this rank's backward() begins
        with."""
        return loss, loss

    def part(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """In which one step computes, of those whose gradients move the weights
        together; the `last` of them gets the gradients of all ranks."""
        return contextlib.nullcontext()

    def backward(self, loss: Any) -> None:
        """Adds to the gradients."""
        loss.backward()

    def bring_together(self) -> bool:
        """Makes the gradients of an accumulation those of all ranks; False
        where a backward pass in part(True) does that."""
        return False

    def rest(self) -> None:
        """Weights are where they lie between steps."""

    def alone(self) -> Any:
        """The whole module, by itself, with the weights that learn."""
        return self.module


class Shared(Whole):
    """One of several ranks."""

    def __init__(self, torch: Any, module: Any, ranks: Group) -> None:
        super().__init__(module)
        self._torch, self._ranks = torch, ranks
        self._bytes = sum(weight.numel() * weight.element_size()
                          for weight in module.parameters()
                          if weight.requires_grad)

    def together(self, loss: Any, count: Any) -> tuple[Any, Any]:
        torch = self._torch
        count = torch.as_tensor(count, dtype=torch.float64, device=loss.device)
        mine = torch.where(count > 0, loss.detach().double() * count, 0.0)
        sums = self._ranks.sum(torch.stack((mine, count)))
        of_all = sums[1].clamp_min(1)
        share = count * self._ranks.world / of_all
        return (sums[0] / of_all).float(), loss * share.to(loss.dtype)


def learner(torch: Any, module: Any) -> Any:
    """A module that gives the loss of another one, in which an engine finds the
    weights that were used, whatever that module itself returns."""

    class Learner(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, of: Computed, tensors: Mapping[str, Any]) -> Any:
            return of(self.module, tensors)

    return Learner()


class Ddp(Shared):
    """DistributedDataParallel: each rank has the whole module."""

    name = "ddp"

    def begin(self, optimiser: Any) -> None:
        # Weights that a step does not use, on one rank or all, are no error.
        self._ddp = self._torch.nn.parallel.DistributedDataParallel(
            learner(self._torch, self.module), find_unused_parameters=True)
        self.summed = self._bytes

    def compute(self, of: Computed, tensors: Mapping[str, Any]
                ) -> tuple[Any, Any]:
        found: tuple[Any, Any] = self._ddp(of, tensors)
        return found

    def part(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        if last:
            return contextlib.nullcontext()
        made: contextlib.AbstractContextManager[Any] = self._ddp.no_sync()
        return made


class Fsdp2(Shared):
    """fully_shard(): each rank has a part of every weight. What is in a
    ModuleList, the layers of a transformer, is gathered one after the other,
    the rest of the module at once."""

    name = "fsdp2"

    def __init__(self, torch: Any, module: Any, ranks: Group,
                 device: Any) -> None:
        super().__init__(torch, module, ranks)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        ranks.take_from_first([*module.parameters(), *module.buffers()])
        self._skeleton = _without_weights(torch, module)
        mesh = init_device_mesh(device.type, (ranks.world,))
        for layer in _layers(torch, module):
            fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
        # Gathered twice and scattered once, where DDP does both once.
        self.summed = self._bytes * 3 // 2

    @contextlib.contextmanager
    def part(self, last: bool) -> Iterator[None]:
        self.module.set_requires_gradient_sync(last)
        yield

    def rest(self) -> None:
        for each in self.module.modules():
            if hasattr(each, "reshard"):
                each.reshard()

    def alone(self) -> Any:
        """On rank 0; None elsewhere. All ranks call it."""
        self.rest()
        first = self._ranks.rank == 0
        whole = self._skeleton if first else None
        made: dict[int, Any] = {}  # a weight may have several names
        for name, weight in self.module.named_parameters(
                remove_duplicate=False):
            if id(weight) not in made:
                full = full_tensor(weight.detach())
                made[id(weight)] = None if whole is None else \
                    self._torch.nn.Parameter(full, weight.requires_grad)
            if whole is not None:
                _put(whole, name, made[id(weight)])
        if whole is not None:
            for name, buffer in self.module.named_buffers():
                _put(whole, name, buffer)
        return whole


def full_tensor(tensor: Any) -> Any:
    """A sharded tensor as a whole, which all ranks ask for; else itself."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def local_part(tensor: Any) -> Any:
    """What this rank has of a sharded tensor; else itself."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def placed_as(tensor: Any, like: Any) -> Any:
    """A whole tensor, which each rank has, sharded as `like` is."""
    if not hasattr(like, "placements") or hasattr(tensor, "placements"):
        return tensor
    from torch.distributed.tensor import distribute_tensor
    return distribute_tensor(tensor.to(like.device), like.device_mesh,
                             like.placements, src_data_rank=None)


def _layers(torch: Any, module: Any) -> list[Any]:
    """Of the outermost lists of layers, those that have weights and are called
    by themselves."""
    found: list[Any] = []
    for child in module.children():
        if isinstance(child, torch.nn.ModuleList):
            found += [layer for layer in child if not isinstance(layer, (
                torch.nn.ModuleList, torch.nn.ModuleDict)) and
                next(layer.parameters(), None) is not None]
        else:
            found += _layers(torch, child)
    return found


def _without_weights(torch: Any, module: Any) -> Any:
    """A copy of it whose parameters hold no memory."""
    import copy

    return copy.deepcopy(module, {
        id(weight): torch.nn.Parameter(
            torch.empty_like(weight, device="meta"), weight.requires_grad)
        for weight in module.parameters()})


def _put(module: Any, name: str, tensor: Any) -> None:
    owner, _, last = name.rpartition(".")
    setattr(module.get_submodule(owner), last, tensor)
