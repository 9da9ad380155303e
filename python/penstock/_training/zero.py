"""DeepSpeed's engine, at ZeRO stage 1: each rank has the whole module, and keeps
the optimizer's state of a part of the weights.

DeepSpeed lays the weights of a parameter group one after the other, cuts them
into equal parts, one for each rank, and gives the optimizer its rank's part as
a single flat weight. A checkpoint does not show that: it has the state of each
weight by the weight's name, as one process writes it, so that any number of
ranks resumes it, with any strategy.

Backward passes of an accumulation add to the gradients of this rank's rows;
nothing travels before the weights move. A weight that a step did not use has a
gradient of zeros then, or the ranks would add up different weights: its decay
and its moments continue.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any, Iterable, Iterator, Mapping, NoReturn

from ..errors import TransformError, refused, worded
from .strategies import Computed, Shared, learner

# They treat each number by itself, so that a flat part of the weights suits them
# as whole weights do.
_OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
               "Adadelta", "ASGD", "Rprop")


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
        self._check_optimizer(optimiser.of_torch)
        self._ranks.take_from_first([*self.module.buffers()])
        device = next(iter(self._weights.values())).device
        deepspeed = _imported(device.type)
        with _told_local_rank(self._ranks.local_rank if device.index is None
                              else device.index):
            self._engine, *_ = deepspeed.initialize(
                model=learner(torch, self.module),
                optimizer=optimiser.of_torch, dist_init_required=False,
                config={"train_micro_batch_size_per_gpu": 1,
                        "gradient_accumulation_steps": 1,
                        "gradient_clipping": optimiser.clip,
                        # It makes room for a bucket, whatever the weights.
                        "zero_optimization": {
                            "stage": 1, "reduce_bucket_size": min(
                                500_000_000, sum(
                                    weight.numel() for weight
                                    in self._weights.values()))},
                        "zero_allow_untested_optimizer": True,
                        # It waits for the device around each step.
                        "timers": {"throughput": {"enabled": False}},
                        "steps_per_print": None})
        optimiser.parts = self
        # Gradients are added up everywhere; weights are gathered.
        self.summed = self._bytes * 3 // 2

    def _check_optimizer(self, found: Any) -> None:
        known = [getattr(self._torch.optim, name) for name in _OPTIMIZERS]
        if type(found) not in known:
            raise refused(
                "ranks.strategy", "cannot train with the strategy",
                f"configure_optimizers(), {type(found).__name__}",
                "the strategy deepspeed needs an optimizer that treats each "
                "number by itself", "return one of torch.optim: "
                + ", ".join(_OPTIMIZERS) + "; or use the strategy ddp")

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

    def entries(self, state: Mapping[Any, Mapping[str, Any]], keep: bool
                ) -> Iterator[tuple[str, str, Any]]:
        """The optimizer's state, as (name of a weight, key, value): a tensor of
        the weight's shape, on the host, or what is the same for all numbers.
        All ranks call it; nothing comes without `keep`."""
        flat = self._flat()
        for group, name, weight in self._groups():
            for key, value in state.get(flat[group], {}).items():
                if _shape(value) == flat[group].shape:
                    value = self._whole(weight, value)
                    value = value.cpu() if keep else None
                if keep:
                    yield name, key, value

    def put_entries(self, found: Mapping[str, Mapping[str, Any]]
                    ) -> list[tuple[Any, dict[str, Any]]]:
        """The state of this rank's parts, from that of whole weights. What is
        the same for all numbers of a part, such as the count of steps, is that
        of the weight that has taken most of them."""
        made: list[tuple[Any, dict[str, Any]]] = [
            (flat, {}) for flat in self._flat()]
        by_steps = sorted(self._groups(), key=lambda each: float(
            found.get(each[1], {}).get("step", 0)))
        for group, name, weight in by_steps:
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


@contextlib.contextmanager
def _told_local_rank(index: int) -> Iterator[None]:
    """DeepSpeed uses the GPU of that number, and does not start without one;
    not every launcher gives it, nor has every rank all GPUs."""
    names = ["LOCAL_RANK"] + [name for name in ("OMPI_COMM_WORLD_LOCAL_RANK",)
                              if name in os.environ]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(index) for name in names})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
