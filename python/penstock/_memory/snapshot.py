"""What a step changes, kept so that it can be put back bit for bit."""

from __future__ import annotations

import gc
import random
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


class RandomState:
    """The generators of torch, on the host and on those devices, of Python, and
    of numpy where it is imported."""

    def __init__(self, devices: Iterable[torch.device]) -> None:
        self._host = torch.get_rng_state()
        self._devices = {device: torch.cuda.get_rng_state(device)
                         for device in set(devices) if device.type == "cuda"}
        self._python = random.getstate()
        self._numpy = _numpy_random().get_state() if _numpy_random() else None

    def restore(self) -> None:
        torch.set_rng_state(self._host)
        for device, state in self._devices.items():
            torch.cuda.set_rng_state(state, device)
        random.setstate(self._python)
        if self._numpy is not None:
            _numpy_random().set_state(self._numpy)


class Tensors:
    """Copies of tensors, on their own device."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._kept = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, kept in self._kept:
                tensor.copy_(kept)


class TrainingState:
    """A module with its gradients, the optimizers that train its parameters,
    and the random state. Copies are on the host."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._parameters = list(module.parameters())
        self._tensors = [(tensor, tensor.detach().to("cpu", copy=True))
                         for tensor in (*self._parameters, *module.buffers())]
        self._gradients = [
            None if parameter.grad is None
            else parameter.grad.detach().to("cpu", copy=True)
            for parameter in self._parameters]
        self._training = [(one, one.training) for one in module.modules()]
        self._optimizers = [(optimizer, _copied_state(optimizer),
                             [{key: value for key, value in group.items()
                               if key != "params"}
                              for group in optimizer.param_groups])
                            for optimizer in optimizers_of(self._parameters)]
        self._random = RandomState(one.device for one in self._parameters)
        self._held = self._held_bytes()

    def grown_bytes(self) -> int:
        """By how much gradients and the optimizers' state are larger now."""
        return self._held_bytes() - self._held

    def _held_bytes(self) -> int:
        gradients: int = sum(one.grad.nbytes for one in self._parameters
                             if one.grad is not None)
        return gradients + sum(optimizer_bytes(one)
                               for one, _, _ in self._optimizers)

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, kept in self._tensors:
                tensor.copy_(kept)
        for parameter, gradient in zip(self._parameters, self._gradients):
            parameter.grad = (None if gradient is None
                              else gradient.to(parameter.device))
        for module, training in self._training:
            module.training = training
        for optimizer, state, groups in self._optimizers:
            _put_back(optimizer, state)
            for group, kept in zip(optimizer.param_groups, groups):
                group.update(kept)
        self._random.restore()


def optimizers_of(parameters: Iterable[torch.nn.Parameter]
                  ) -> list[torch.optim.Optimizer]:
    """The optimizers of this process that train one of these parameters."""
    wanted = {id(parameter) for parameter in parameters}
    # By the type itself: isinstance() asks proxies for their class.
    return [found for found in gc.get_objects()
            if issubclass(type(found), torch.optim.Optimizer)
            and any(id(parameter) in wanted for group in found.param_groups
                    for parameter in group["params"])]


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Of the tensors in its state."""
    return sum(value.nbytes for state in optimizer.state.values()
               for value in state.values() if isinstance(value, torch.Tensor))


def _copied_state(optimizer: torch.optim.Optimizer
                  ) -> dict[Any, dict[str, Any]]:
    return {parameter: {key: value.detach().to("cpu", copy=True)
                        if isinstance(value, torch.Tensor) else value
                        for key, value in state.items()}
            for parameter, state in optimizer.state.items()}


def _put_back(optimizer: torch.optim.Optimizer,
              kept: dict[Any, dict[str, Any]]) -> None:
    for parameter in [one for one in optimizer.state if one not in kept]:
        del optimizer.state[parameter]
    for parameter, values in kept.items():
        state = optimizer.state[parameter]
        for key in [one for one in state if one not in values]:
            del state[key]
        for key, value in values.items():
            now = state.get(key)
            if (isinstance(value, torch.Tensor)
                    and isinstance(now, torch.Tensor)):
                now.copy_(value)
            else:
                state[key] = value


def _numpy_random() -> Any:
    import sys

    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random
