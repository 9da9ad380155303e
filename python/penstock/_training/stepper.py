"""The steps of a torch module in the engine's loop.

A step, from the batch to the new weights: random numbers are drawn again for
the step's number, so that it is the same whenever it is taken -> forward and
loss -> backward leaves the gradients -> after `train.accumulate` of them the
optimiser clips them and moves the weights, at the rate that the schedule has
for the first of their steps. What raises before the optimiser begins leaves
everything as it was before the step.

One of several ranks takes the same steps with its share of the rows
(strategies.py). There is no way back from a step that raises: the run ends on
all ranks. A checkpoint between two steps of an accumulation takes a step of no
weight first, which brings the gradients of all ranks together.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import logging
import math
import random
import sys
from typing import Any, Mapping

from ..errors import TransformError, refused, worded
from . import module as modules
from . import sharded, sharing, strategies
from .compiling import compiled
from .division import Division
from .inputs import Inputs
from .objective import Named, Objective, Returned, refuse_loss
from .optimiser import Optimiser, factor
from .raised import told
from .ranks import Group
from .rows import Rows, StandIn
from .saving import Saved, copied, loaded, refuse_other, saved
from .step_memory import StepMemory, shortage_in
from .switches import Switches


class Stepper:
    """Called by the engine alone, from one thread, in the turn of its loop."""

    def __init__(self, torch: Any, model: Any, facts: Mapping[str, Any],
                 ranks: Group | None = None, resumed: str = "") -> None:
        self._torch, self._facts, self._model = torch, facts, model
        self._ranks, self._resumed = ranks, resumed
        self._rank = 0 if ranks is None else ranks.rank
        settings = facts["model"]
        self._file = modules.file_of(model)
        self._seed = int(settings["seed"])
        fields = modules.fields_of(facts)
        self._objective = self._chosen(settings, fields)
        self._switches = Switches(torch, facts, self._objective, ranks)
        self._apply(facts)
        self._draw("weights", 0)
        made = modules.made(torch, model, facts, fields)
        with told("it was moved to its device", self._file):
            self._module = made.to(self._switches.device)
        self._module.train()
        self._rows = Rows(torch, self._module)
        self._plain = modules.plain(self._module)
        self._inputs = Inputs(self._plain, settings.get("target", ""))
        with self._hearing("sharing the model"), told("it was shared among the "
                                                  "ranks", self._file):
            self._engine = sharing.chosen(torch, self._module,
                                          self._switches, ranks)
        self._begin_learning()
        with self._hearing("sharing the model"), told("it was shared among the "
                                                  "ranks", self._file):
            self._engine.begin(self._optimiser)
        self._module = compiled(torch, self._module, settings, self._switches)
        if ranks is not None:
            self._stand_in = StandIn(torch, self._module)
            self._sharded = sharded.Sharded(facts["folder"], ranks)
        self.memory = StepMemory(torch, self._plain, self._optimiser, facts)
        self.memory.learn = self._try
        self.memory.rows_at_hand = lambda: self._division.at
        self._taken = 0  # steps
        self._apart = False  # gradients are those of this rank's rows alone
        self._joined = False
        self._losses: collections.deque[tuple[Any, Any]] = collections.deque()
        self._validated = 0  # batches, since the weights moved
        self._torn = ""

    def _begin_learning(self) -> None:
        self._optimiser = Optimiser(self._torch, self._plain,
                                    self._facts["learning"], self._switches,
                                    self._file)
        self._division = Division(
            self._torch, self._objective, self._plain, self._answer,
            self._optimiser.scaled, self._optimiser.learned)
        self._buffers = [buffer for _, buffer in self._module.named_buffers()]
        self._kept = [buffer.clone() for buffer in self._buffers]

    def _hearing(self, doing: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if self._ranks is None else \
            self._ranks.hearing(doing)

    def _chosen(self, settings: Mapping[str, Any],
                fields: Mapping[str, modules.Field]) -> Objective:
        target = settings.get("target", "")
        if not target:
            return Returned(self._torch)
        if target not in fields:
            raise refused("model.target", "cannot learn the target",
                          f"model.target, '{target}'",
                          "a batch has no tensor of that name",
                          "name one of: " + ", ".join(fields))
        return Named(self._torch, settings["loss"], fields[target],
                     float(self._facts["learning"]["label_smoothing"]))

    def _apply(self, facts: Mapping[str, Any]) -> None:
        self._torch.set_num_threads(int(facts["learning"]["threads"]))
        if self._switches.device.type == "cuda":
            self._torch.backends.cuda.matmul.allow_tf32 = self._switches.tf32
            self._torch.backends.cudnn.allow_tf32 = self._switches.tf32
            self._torch.cuda.set_per_process_memory_fraction(
                facts["memory_share"] or 1.0, self._switches.device)

    def _draw(self, purpose: str, number: int) -> None:
        """Random numbers that depend on the seed, the purpose, the number and,
        in steps, the rank alone: first weights are the same on all ranks."""
        text = f"{self._seed} {purpose} {number}".encode()
        if self._ranks is not None and self._ranks.rank and purpose == "step":
            text += f" {self._ranks.rank}".encode()
        drawn = int.from_bytes(
            hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
        self._torch.manual_seed(drawn)
        random.seed(drawn)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(drawn & 0xffffffff)

    # -- learning

    def step(self, batch: Any, number: int) -> int:
        """How many bytes this rank gave to sums over the ranks."""
        self._end_validation()
        steps, each = int(self._facts["steps"]), self._switches.accumulate
        first = number // each * each
        last = max(number, min(first + each, steps) - 1)
        self._draw("step", number)
        share = last + 1 - first
        if self._ranks is None:
            loss = self._learn_or_undo(batch, number, share,
                                       number == first)
        else:
            with self._hearing("taking a step"):
                loss = self._learn_together(batch, share, number == last)
            self._apart = number < last
        if number == last:
            self._torn = "the step failed while the weights were updated"
            with self._hearing("changing the weights"), \
                    told("its weights were changed", self._file):
                learning = self._facts["learning"]
                self._optimiser.move(factor(
                    first, int(learning["warmup_steps"]), steps,
                    learning["schedule"]))
            self._torn = ""
        self._taken = number + 1
        self._remember(loss)
        return self._engine.summed if number == last else 0

    def _learn_or_undo(self, batch: Any, number: int, share: int,
                       first: bool) -> Any:
        """A step that raises leaves gradients and buffers as they were."""
        earlier = self._optimiser.set_aside(first)
        if self._buffers:
            self._torch._foreach_copy_(self._kept, self._buffers)
        short = None
        try:
            loss = self.memory.measured(
                number, batch.rows, lambda: self._learn_alone(batch, share))
        except BaseException as error:
            self._optimiser.put_back(earlier)
            self._put_buffers_back()
            short = shortage_in(error)
            if short is None:
                raise
        if short is not None:
            raise short  # without what was raised, whose frames hold tensors
        self._optimiser.add(earlier)
        return loss

    def _put_buffers_back(self) -> None:
        if self._buffers:
            with self._torch.no_grad():
                self._torch._foreach_copy_(self._buffers, self._kept)

    def _learn_alone(self, batch: Any, share: int) -> Any:
        """Leaves gradients; the loss."""
        tensors = self._rows.counted(batch)
        with told("a step was taken", self._file):
            loss = self._division.learned(
                tensors, self.memory.micro_batch, share, self._check_loss)
        if self._rows.none:
            self._put_buffers_back()
        return loss

    def _try(self, tensors: Mapping[str, Any]) -> Any:
        """The same for rows that are made up."""
        self._end_validation()
        with told("a step was tried", self._file):
            return self._division.learned(tensors, self.memory.micro_batch, 1,
                                          lambda loss: None)

    def _answer(self, tensors: Mapping[str, Any]) -> Any:
        with self._switches.autocast():
            return self._module(**self._inputs.of(tensors))

    def _learn_together(self, batch: Any, share: int, last: bool) -> Any:
        """Leaves gradients; the mean loss, over all ranks."""
        tensors = self._rows.counted(batch)
        nothing = self._rows.none
        if self._buffers:
            self._torch._foreach_copy_(self._kept, self._buffers)
        self._stand_in.see(batch.rows, tensors)
        if batch.rows == 0:
            tensors, nothing = self._stand_in.row(tensors), True
        with told("a step was taken", self._file), self._engine.part(last):
            loss, count = self._computed(tensors)
            if batch.rows == 0:
                count = 0.0
            mean, learned = self._engine.together(loss, count)
            if mean.device.type == "cpu":
                self._check_finite(float(mean.detach()))
            self._engine.backward(self._optimiser.scaled(learned / share))
        if nothing:
            self._put_buffers_back()
        return mean.detach()

    def _computed(self, tensors: Mapping[str, Any]) -> tuple[Any, Any]:
        loss, count = self._engine.compute(self._loss_of, tensors)
        self._check_learns(loss)
        return loss, count

    @staticmethod
    def _check_learns(loss: Any) -> None:
        if not loss.requires_grad:
            refuse_loss("the loss depends on no trainable weight",
                        "compute the loss from the output of layers, "
                        "without detach(), item() or no_grad()")

    def _check_loss(self, loss: Any) -> None:
        self._check_learns(loss)
        if loss.device.type == "cpu":
            self._check_finite(float(loss.detach()))

    def _loss_of(self, module: Any, tensors: Mapping[str, Any]
                 ) -> tuple[Any, Any]:
        with self._switches.autocast():
            answer = module(**self._inputs.of(tensors))
            return self._objective.loss(answer, tensors)

    def _bring_together(self) -> None:
        """Gradients of an accumulation that continues become those of all
        ranks, where the engine needs it by a step that weighs nothing."""
        if not self._apart:
            return
        with self._hearing("saving a checkpoint"):
            if self._engine.bring_together():
                self._apart = False
                return
        if self._buffers:
            self._torch._foreach_copy_(self._kept, self._buffers)
        with self._hearing("saving a checkpoint"), \
                told("a step was taken", self._file), self._engine.part(True):
            loss, _ = self._computed(self._stand_in.row())
            (loss * 0).backward()
        self._put_buffers_back()
        self._apart = False

    @staticmethod
    def _check_finite(loss: float) -> None:
        if math.isfinite(loss):
            return
        raise worded(
            TransformError, "train.not_finite",
            "the model cannot continue to train", "the loss",
            "the loss is NaN" if math.isnan(loss) else "the loss is "
                "infinite",
            "lower train.lr, examine the rows of that step ('penstock "
            "batch'), or skip them: --resume RUN --skip 1")

    def _remember(self, loss: Any) -> None:
        """On a GPU the loss is copied to the host behind the step."""
        if loss.device.type != "cuda":
            self._losses.append((loss, None))
            return
        here = self._torch.empty((), dtype=loss.dtype, pin_memory=True)
        here.copy_(loss, non_blocking=True)
        arrived = self._torch.cuda.Event()
        arrived.record()
        self._losses.append((here, arrived))

    def losses(self, wait: bool) -> list[float]:
        known = []
        while self._losses:
            loss, arrived = self._losses[0]
            if arrived is not None and not arrived.query():
                if not wait:
                    break
                arrived.synchronize()
            known.append(float(loss))
            self._losses.popleft()
        return known

    # -- held-out rows

    def validate(self, batch: Any) -> None:
        if self._validated == 0:
            self._begin_validation()
        self._draw("validation", self._validated)
        self._validated += 1
        tensors, ids = batch.torch(), batch.ids.tolist()
        if self._ranks is not None:
            self._stand_in.see(batch.rows, tensors)
        if batch.rows == 0:  # of a rank that has no part of it
            if self._engine.name != "fsdp2":
                return
            tensors = self._stand_in.row(tensors)
        with self._torch.no_grad(), self._hearing("validating"), \
                told("it was validated", self._file):
            if self._ranks is None:
                self.memory.looked(tensors, ids, self._look)
                return
            answer = self._answer(tensors)
            if batch.rows > 0:
                self._objective.look(answer, tensors, ids)

    def _look(self, tensors: Mapping[str, Any], samples: list[int]) -> None:
        self._objective.look(self._answer(tensors), tensors, samples)

    def _begin_validation(self) -> None:
        self._optimiser.average(True)
        if self._ranks is not None:
            with self._hearing("validating"):
                self._ranks.take_from_first(self._buffers)
        self._module.eval()

    def finished(self) -> Any:
        """The module as the run leaves it; None on other ranks than 0, which
        do not know the weights that the run kept."""
        if self._rank > 0:
            return None
        self._end_validation()
        self._optimiser.average(True)
        return self._module.eval()

    def _end_validation(self) -> None:
        """The weights that learn are in the module."""
        if self._validated:
            self._validated = 0
            self._module.train()
            self._engine.rest()
        self._optimiser.average(False)

    def validated(self) -> str:
        self._end_validation()
        if self._ranks is not None:
            self._objective.take(self._ranks.share(self._objective.share()))
        with told("it was validated", self._file):
            return json.dumps({
                name: None if isinstance(value, float) and
                not math.isfinite(value) else value
                for name, value in self._objective.seen().items()})

    # -- state

    def in_force(self) -> str:
        return json.dumps(self._switches.told())

    def join(self, together: bool) -> None:
        """From here on a checkpoint is written by rank 0; or this process is by
        itself again, with the whole module on rank 0."""
        self._joined = together
        if together or self._ranks is None:
            return
        self._end_validation()
        with self._hearing("putting the weights together"):
            averages = {name: strategies.full_tensor(average) for name, average
                        in self._optimiser.averages().items()}
            whole = self._engine.alone()
        self._ranks = None
        self._engine = strategies.Whole(whole)
        same = whole is self._module and self._optimiser.parts is None
        if whole is None or same:
            return
        self._module = self._plain = whole
        self._begin_learning()
        self._optimiser.put_averages(averages)

    def save(self) -> tuple[list[Saved], str]:
        if self._torn:
            raise refused("model.torn", "cannot save the model",
                          "the last training step", self._torn,
                          "resume the run from its last checkpoint")
        self._bring_together()
        averages = self._optimiser.average(False)
        self._engine.rest()
        try:
            with self._hearing("saving a checkpoint"):
                return self._saved()
        finally:
            self._optimiser.average(averages)

    def _saved(self) -> tuple[list[Saved], str]:
        first = self._rank == 0 or not self._joined
        rest, numbers = self._optimiser.state(first)
        about = {"kind": "own", "threads": self._torch.get_num_threads(),
                 "memory": self.memory.state(), "optimiser": numbers}
        kept = {f"model.{name}": tensor for name, tensor
                in self._state().items()}
        if self._engine.name == "fsdp2":
            kept = {name: whole if first else None for name, tensor
                    in kept.items()
                    for whole in [strategies.full_tensor(tensor)]}
            if self._joined and rest:
                about["sharded"] = self._sharded.write(rest, self._taken)
        else:
            kept.update(rest)
            if self._joined and self._ranks is not None:
                self._ranks.check_same(data for *_, data in saved(
                    self._torch, self._optimiser.weights()))
        if self._joined and self._rank > 0:
            return [], "{}"
        return saved(self._torch, kept), json.dumps(about)

    def _state(self) -> dict[str, Any]:
        state = {}
        for name, tensor in self._plain.state_dict().items():
            if not isinstance(tensor, self._torch.Tensor):
                raise refused("model.state", "cannot save the model",
                              f"'{name}' of its state_dict()",
                              f"the entry is a {type(tensor).__name__}, not a "
                              "tensor",
                              "register the tensor as a buffer: "
                              "register_buffer()")
            state[name] = tensor
        return state

    def restore(self, entries: list[Saved], text: str) -> None:
        about = json.loads(text)
        if about.get("kind") != "own":
            refuse_other("model.kind", f"found {about.get('kind')!r}, expected "
                         "'own'")
        threads = self._torch.get_num_threads()
        if about["threads"] != threads:
            logging.getLogger("penstock").warning(
                "the checkpoint was written with another number of threads "
                "(found %s, expected %s): the run continues, but not bit for "
                "bit", about["threads"], threads)
        self.memory.restore(about.get("memory", {}))
        found = loaded(self._torch, entries)
        weights = {name: tensor for name, tensor in found.items()
                   if name.startswith("model.")}
        rest = {name: tensor for name, tensor in found.items()
                if name not in weights}
        self._engine.rest()
        copied(self._torch, weights, {f"model.{name}": tensor for name, tensor
                                      in self._state().items()})
        with self._hearing("restoring a checkpoint"):
            if named := about.get("sharded"):
                rest = sharded.read(self._torch, named, self._resumed,
                                    self._optimiser.like)
            self._optimiser.restore(rest, about["optimiser"])
