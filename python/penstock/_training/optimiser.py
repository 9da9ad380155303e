"""AdamW as the trainer's, or the module's own optimiser: gradients, the rate,
the average of the weights over time."""

from __future__ import annotations

import math
from typing import Any, Iterable, Iterator, Mapping, Protocol

from ..errors import refused
from .raised import told
from .saving import copied, refuse_other
from .strategies import local_part, placed_as
from .switches import Switches


def factor(number: int, warmup: int, steps: int,
           schedule: str = "cosine") -> float:
    """The learning rate of step `number`, as a share of the peak. It rises in a
    straight line, and then falls along half a cosine ("cosine"), in a straight
    line ("linear"), or stays ("constant").

    >>> [round(factor(n, 2, 6), 3) for n in range(7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
    >>> [factor(n, 2, 6, "linear") for n in range(7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    >>> [factor(n, 2, 6, "constant") for n in range(7)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    """
    if number >= steps:
        return 0.0
    if number < warmup:
        return (number + 1) / warmup
    gone = (number - warmup) / (steps - warmup)
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return 1 - gone
    return 0.5 * (1 + math.cos(math.pi * gone))


class Parts(Protocol):
    """Where the optimizer has a part of the weights, as flat ones of its own:
    see zero.py."""

    def step(self) -> None: ...

    def entries(self, state: Mapping[Any, Mapping[str, Any]], keep: bool
                ) -> Iterator[tuple[str, str, Any]]: ...

    def put_entries(self, found: Mapping[str, Mapping[str, Any]]
                    ) -> Iterable[tuple[Any, Mapping[str, Any]]]: ...

    def weights_changed(self) -> None: ...


class Optimiser:
    """Of the module's weights that are learned."""

    #: None where the optimizer has the weights themselves.
    parts: Parts | None = None

    def __init__(self, torch: Any, module: Any, learning: Mapping[str, Any],
                 switches: Switches, file: str) -> None:
        self._torch = torch
        self.clip = float(learning["clip_norm"])
        self._named = {name: weight for name, weight
                       in module.named_parameters() if weight.requires_grad}
        if not self._named:
            raise refused("model.class", "cannot use the model",
                          "model.parameters()", "the module has no parameters "
                              "to train",
                          "add a layer with weights, or set requires_grad "
                          "on a parameter")
        self._weights = list(self._named.values())
        with told("its optimiser was made", file):
            self.of_torch = self._made(module, learning)
        for group in self.of_torch.param_groups:
            group["initial_lr"] = group["lr"]  # where torch's schedulers keep it
        self._scaler = switches.scaler()
        self._decay = switches.ema
        self._averages = [weight.detach().clone() for weight in self._weights
                          ] if self._decay else []
        self._averaged = False  # the averages are in the module

    def _made(self, module: Any, learning: Mapping[str, Any]) -> Any:
        own = getattr(module, "configure_optimizers", None)
        if own is not None:
            made = own()
            if not isinstance(made, self._torch.optim.Optimizer):
                raise refused(
                    "model.class", "cannot use the model",
                    "configure_optimizers()",
                    f"the function returned a {type(made).__name__}, expected "
                    "a torch optimizer", "return one optimizer; the job sets "
                    "the schedule")
            return made
        # As the trainer does: decay is for matrices, never for biases.
        matrices = [each for each in self._weights if each.dim() >= 2]
        others = [each for each in self._weights if each.dim() < 2]
        fused = all(each.is_floating_point() and each.device.type in (
            "cpu", "cuda") for each in self._weights)
        groups = [
            {"params": matrices, "weight_decay": learning["weight_decay"]},
            {"params": others, "weight_decay": 0.0}]
        return self._torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=float(learning["lr"]), fused=fused)

    # -- gradients of the steps that move the weights together

    def set_aside(self, first: bool) -> list[Any]:
        """The gradients of earlier steps, which put_back() or add() takes."""
        earlier = [None if first else weight.grad for weight in self._weights]
        for weight in self._weights:
            weight.grad = None
        return earlier

    def put_back(self, earlier: list[Any]) -> None:
        for weight, gradient in zip(self._weights, earlier):
            weight.grad = gradient

    def add(self, earlier: list[Any]) -> None:
        for weight, gradient in zip(self._weights, earlier):
            if gradient is not None:
                weight.grad = gradient if weight.grad is None else \
                    weight.grad.add_(gradient)

    @property
    def learned(self) -> list[Any]:
        return self._weights

    def held_bytes(self) -> int:
        """Of its state and the averages; before the first step, of the state
        that AdamW will have."""
        learned: int = sum(each.nbytes for each in self._weights)
        state: int = sum(value.nbytes
                         for entries in self.of_torch.state.values()
                         for value in entries.values()
                         if isinstance(value, self._torch.Tensor))
        if not state and self._kind() == "AdamW":
            state = 2 * learned + 4 * len(self._weights)
        return state + (learned if self._averages else 0)

    def scaled(self, loss: Any) -> Any:
        return self._scaler.scale(loss)

    def move(self, share: float) -> None:
        """The weights, at that share of the rate; then the averages."""
        for group in self.of_torch.param_groups:
            group["lr"] = group["initial_lr"] * share
        if self.parts is not None:
            self.parts.step()
        else:
            self._step()
        if self._averages:
            with self._torch.no_grad():
                self._torch._foreach_lerp_(
                    [local_part(each) for each in self._averages],
                    [local_part(each.detach()) for each in self._weights],
                    1 - self._decay)

    def _step(self) -> None:
        self._scaler.unscale_(self.of_torch)
        if self.clip > 0:
            self._torch.nn.utils.clip_grad_norm_(self._weights, self.clip)
        self._scaler.step(self.of_torch)
        self._scaler.update()
        self.of_torch.zero_grad(set_to_none=True)

    def average(self, on: bool) -> bool:
        """Puts the averages into the module, or the weights that learn;
        whether they were the averages before."""
        before = self._averaged
        if self._averages and on != before:
            for place, weight in enumerate(self._weights):
                if hasattr(weight, "to_local"):  # its memory is the engine's
                    here = local_part(weight.detach())
                    there = local_part(self._averages[place])
                    learned = here.clone()
                    here.copy_(there)
                    there.copy_(learned)
                else:
                    weight.data, self._averages[place] = (
                        self._averages[place], weight.data)
            self._averaged = on
        return before

    def put_averages(self, averages: Mapping[str, Any]) -> None:
        """Those of an optimiser of the same weights, by their names."""
        with self._torch.no_grad():
            for name, average in zip(self._named, self._averages):
                average.copy_(averages[name])

    # -- state

    def weights(self) -> dict[str, Any]:
        """Those that learn, by their names."""
        return dict(self._named)

    def averages(self) -> dict[str, Any]:
        return dict(zip(self._named, self._averages))

    def like(self, name: str) -> Any:
        """The weight that a tensor of state() is about, or None."""
        kind, _, rest = name.partition(".")
        return self._named.get(
            rest.partition(".")[2] if kind == "optimiser" else rest)

    def state(self, keep: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Tensors by name, and all other values. Ranks that share a state call
        it together; those that do not keep it may get less."""
        tensors: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        for name, key, value in self._entries(keep):
            if isinstance(value, self._torch.Tensor):
                tensors[f"optimiser.{key}.{name}"] = value
            else:
                numbers.setdefault(name, {})[key] = value
        for name, weight in self._named.items():
            if weight.grad is not None:
                tensors[f"gradient.{name}"] = weight.grad
        for name, average in zip(self._named, self._averages):
            tensors[f"ema.{name}"] = average
        return tensors, {"numbers": numbers, "kind": self._kind(),
                         "scaler": self._scaler.state_dict()}

    def _entries(self, keep: bool) -> Iterable[tuple[str, str, Any]]:
        """(name of a weight, key, value) of the optimizer's state."""
        if self.parts is not None:
            return self.parts.entries(self.of_torch.state, keep)
        names = {id(weight): name for name, weight in self._named.items()}
        return ((names[id(weight)], key, value)
                for weight, entries in self.of_torch.state.items()
                for key, value in entries.items())

    def _kind(self) -> str:
        return type(self.of_torch).__name__

    def restore(self, tensors: Mapping[str, Any],
                about: Mapping[str, Any]) -> None:
        if about["kind"] != self._kind():
            refuse_other("the optimiser", f"found {about['kind']}, expected "
                         f"{self._kind()}")
        copied(self._torch, {name: tensor for name, tensor in tensors.items()
                             if name.startswith("ema.")},
               {f"ema.{name}": average for name, average
                in zip(self._named, self._averages)})
        for name, weight in self._named.items():
            gradient = tensors.get(f"gradient.{name}")
            weight.grad = None if gradient is None else \
                placed_as(gradient.to(weight.device), weight)
        self._restore_moments(tensors, about["numbers"])
        if about["scaler"]:
            self._scaler.load_state_dict(about["scaler"])
        if self.parts is not None:
            self.parts.weights_changed()

    def _restore_moments(self, tensors: Mapping[str, Any],
                         numbers: Mapping[str, Any]) -> None:
        found: dict[str, dict[str, Any]] = {
            name: dict(entries) for name, entries in numbers.items()}
        for full, tensor in tensors.items():
            if full.startswith("optimiser."):
                _, key, name = full.split(".", 2)
                like = self._named.get(name)
                found.setdefault(name, {})[key] = tensor if like is None or \
                    like.shape != tensor.shape else placed_as(tensor, like)
        for name in found:
            if name not in self._named:
                refuse_other(f"the optimiser's '{name}'",
                             "the model of this job has no such weight")
        of_weights = self.parts.put_entries(found) if self.parts is not None \
            else [(self._named[name], entries)
                  for name, entries in found.items()]
        groups = self.of_torch.state_dict()["param_groups"]
        places = {id(weight): place
                  for group, saved in zip(self.of_torch.param_groups, groups)
                  for weight, place in zip(group["params"], saved["params"])}
        self.of_torch.load_state_dict({
            "state": {places[id(weight)]: entries
                      for weight, entries in of_weights},
            "param_groups": groups})
