"""DeepSpeed's engine, at ZeRO stage 1: each rank has the whole module, and keeps
the optimizer's state of a part of the weights.

DeepSpeed lays the weights of a parameter group one after the other, cuts them
into equal parts, one for each rank, and gives the optimizer its rank's part as
a single flat weight. A checkpoint does not show that: it has the state of each
weight by the weight's name, as one process writes it, so that any number of
ranks resumes it, with any strategy.

Backward passes of an accumulation add to the gradients of this rank's rows;
nothing travels before the weights move. A weight that a step did not use has a
gradient of zeros then, or the ranks would add up different weights.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Iterable, Iterator, Mapping, NoReturn

from ..errors import TransformError, refused, worded
from .strategies import Computed, Shared, learner


class Zero(Shared):
    """One of several ranks. All make the same calls."""

    name = "deepspeed"

    def begin(self, optimiser: Any) -> None:
        torch = self._torch
        self._weights = dict(optimiser.weights())
        self._own = {name: set(vars(weight)) for name, weight
                     in self._weights.items()}
        for name, weight in self._weights.items():
            if weight.dtype != torch.float32:
                _refuse_weight(
                    name, str(weight.dtype), "the strategy deepspeed trains "
                    "float32 weights", "convert the module with float(), and "
                    'set train.precision to "bfloat16"; or use ddp')
            if weight.ndim == 0:
                _refuse_weight(
                    name, "shape []", "DeepSpeed needs weights that have a "
                    "dimension", "give the weight the shape [1], or use ddp")
        deepspeed = _imported(next(iter(self._weights.values())).device.type)
        self._engine, *_ = deepspeed.initialize(
            model=learner(torch, self.module), optimizer=optimiser.of_torch,
            dist_init_required=False, config={
                "train_micro_batch_size_per_gpu": 1,
                "gradient_accumulation_steps": 1,
                "gradient_clipping": optimiser.clip,
                "zero_optimization": {"stage": 1},
                # Whether it suits is checked by _refuse_by_rows().
                "zero_allow_untested_optimizer": True,
                "steps_per_print": None})
        optimiser.parts = self
        # Gradients are added up everywhere; weights are gathered.
        self.summed = self._bytes * 3 // 2

    def compute(self, of: Computed, tensors: Mapping[str, Any]
                ) -> tuple[Any, Any]:
        self._engine.set_gradient_accumulation_boundary(False)
        found: tuple[Any, Any] = self._engine(of, tensors)
        return found

    def backward(self, loss: Any) -> None:
        self._engine.backward(loss)

    def bring_together(self) -> bool:
        self._complete()
        for weight in self._weights.values():
            self._ranks.sum(weight.grad).div_(self._ranks.world)
        return True

    def alone(self) -> Any:
        """Without what DeepSpeed has attached to it."""
        self._engine.destroy()
        for name, weight in self._weights.items():
            for attached in set(vars(weight)) - self._own[name]:
                delattr(weight, attached)
        return self.module

    def _complete(self) -> None:
        for weight in self._weights.values():
            if weight.grad is None:
                weight.grad = self._torch.zeros_like(weight)

    # -- what the optimizer does with parts of weights

    def step(self) -> None:
        """Adds up the gradients, clips them and moves the weights."""
        self._complete()
        self._engine.set_gradient_accumulation_boundary(True)
        self._engine.allreduce_gradients()
        self._engine.step()
        if self._engine.optimizer.overflow:
            raise worded(
                TransformError, "train.not_finite",
                "the model cannot continue to train", "the gradients",
                "a gradient is infinite or NaN", "lower train.lr, or examine "
                "the rows of that step ('penstock batch')")

    def _flat(self) -> list[Any]:
        """The part of each parameter group that is this rank's."""
        return [group["params"][0] for group
                in self._engine.optimizer.optimizer.param_groups]

    def _groups(self) -> Iterator[tuple[int, str, Any]]:
        """The number of its group, the name, and each weight."""
        names = {id(weight): name for name, weight in self._weights.items()}
        for group, weights in enumerate(self._engine.optimizer.bit16_groups):
            for weight in weights:
                yield group, names[id(weight)], weight

    def entries(self, state: Mapping[Any, Mapping[str, Any]]
                ) -> Iterator[tuple[str, str, Any]]:
        """The optimizer's state, as (name of a weight, key, value): a tensor of
        the weight's shape, or what is the same for all numbers."""
        flat = self._flat()
        for group, name, weight in self._groups():
            for key, value in state.get(flat[group], {}).items():
                if _shape(value) == flat[group].shape:
                    yield name, key, self._whole(weight, value)
                    continue
                if getattr(value, "ndim", 0) > 0:
                    self._refuse_by_rows(key, value)
                yield name, key, value

    def put_entries(self, found: Mapping[str, Mapping[str, Any]]
                    ) -> list[tuple[Any, dict[str, Any]]]:
        """The state of this rank's parts, from that of whole weights."""
        made: list[tuple[Any, dict[str, Any]]] = [
            (flat, {}) for flat in self._flat()]
        for group, name, weight in self._groups():
            flat, part = made[group]
            for key, value in found.get(name, {}).items():
                if _shape(value) != weight.shape:
                    part[key] = value
                    continue
                if key not in part:
                    part[key] = self._torch.zeros_like(flat, dtype=value.dtype)
                for mine, its in _fragments(weight, part[key], value):
                    mine.copy_(its)
        return [(flat, part) for flat, part in made if part]

    def weights_changed(self) -> None:
        """Other weights have been copied into the module."""
        self._engine.optimizer.refresh_fp32_params()

    def _whole(self, weight: Any, part: Any) -> Any:
        full = self._torch.zeros(weight.shape, dtype=part.dtype,
                                 device=part.device)
        for mine, its in _fragments(weight, part, full):
            its.copy_(mine)
        return self._ranks.sum(full)

    @staticmethod
    def _refuse_by_rows(key: str, value: Any) -> None:
        raise refused(
            "ranks.strategy", "cannot train with the strategy",
            f"configure_optimizers(), state '{key}' of shape "
            f"{list(value.shape)}", "the strategy deepspeed needs an optimizer "
            "that treats each number by itself, as AdamW and SGD do",
            "return such an optimizer, or use the strategy ddp")


def _refuse_weight(name: str, found: str, why: str, next: str) -> NoReturn:
    raise refused("ranks.strategy", "cannot train with the strategy",
                  f"weight '{name}', {found}", why, next)


def _shape(value: Any) -> Any:
    return getattr(value, "shape", None)


def _fragments(weight: Any, part: Any, whole: Any
               ) -> Iterable[tuple[Any, Any]]:
    """The numbers of a weight that are this rank's: where they lie in its part,
    and in the whole weight."""
    shared = weight._hp_mapping
    if shared is None:
        return []
    here, there = shared.hp_fragment_address, shared.lp_fragment_address
    return [(part.narrow(0, here.start, here.numel),
             whole.view(-1).narrow(0, there.start, there.numel))]


def _imported(device: str) -> Any:
    os.environ.setdefault("DS_ACCELERATOR", device)
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    try:
        import deepspeed  # type: ignore[import-not-found,unused-ignore]
    except Exception as error:  # it looks for compilers and drivers, too
        raise refused(
            "ranks.strategy", "cannot train with the strategy",
            'train.strategy, "deepspeed"',
            f"import deepspeed failed: {error}",
            "pip install deepspeed, or use fsdp2, which shards the weights, "
            "too") from error
    return deepspeed
