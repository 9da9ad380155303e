"""The steps of a torch module in the engine's loop.

A step, from the batch to the new weights: random numbers are drawn again for
the step's number, so that it is the same whenever it is taken -> forward and
loss -> backward leaves the gradients -> after `train.accumulate` of them the
optimiser clips them and moves the weights, at the rate that the schedule has
for the first of their steps. What raises before the optimiser begins leaves everything as it
was before the step.
"""

from __future__ import annotations

import collections
import hashlib
import json
import logging
import math
import random
import sys
from typing import Any, Mapping

from ..errors import TransformError, refused, worded
from . import module as modules
from .division import Division
from .inputs import Inputs
from .objective import Named, Objective, Returned, refuse_loss
from .optimiser import Optimiser, factor
from .raised import told
from .rows import Rows
from .saving import Saved, copied, loaded, refuse_other, saved
from .step_memory import StepMemory, shortage_in
from .switches import Switches


class Stepper:
    """Called by the engine alone, from one thread, in the turn of its loop."""

    def __init__(self, torch: Any, model: Any, facts: Mapping[str, Any]) -> None:
        self._torch, self._facts = torch, facts
        settings = facts["model"]
        self._file = modules.file_of(model)
        self._seed = int(settings["seed"])
        fields = modules.fields_of(facts)
        self._objective = self._chosen(settings, fields)
        self._switches = Switches(torch, facts, self._objective)
        self._apply(facts)
        self._draw("weights", 0)
        made = modules.made(torch, model, facts, fields)
        with told("it was moved to its device", self._file):
            self._module = made.to(self._switches.device)
        self._module.train()
        self._rows = Rows(torch, self._module)
        self._plain = modules.plain(self._module)
        self._inputs = Inputs(self._plain, settings.get("target", ""))
        self._optimiser = Optimiser(torch, self._plain, facts["learning"],
                                    self._switches, self._file)
        self._division = Division(
            torch, self._objective, self._plain, self._answer,
            self._optimiser.scaled, self._optimiser.weights)
        self.memory = StepMemory(torch, self._plain, self._optimiser, facts)
        self.memory.learn = self._try
        self.memory.rows_at_hand = lambda: self._division.at
        self._buffers = [buffer for _, buffer in self._module.named_buffers()]
        self._kept = [buffer.clone() for buffer in self._buffers]
        self._losses: collections.deque[tuple[Any, Any]] = collections.deque()
        self._validated = 0  # batches, since the weights moved
        self._torn = ""

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

    def _draw(self, purpose: str, number: int) -> None:
        """Random numbers that depend on the seed, the purpose and the number
        alone."""
        text = f"{self._seed} {purpose} {number}".encode()
        drawn = int.from_bytes(
            hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
        self._torch.manual_seed(drawn)
        random.seed(drawn)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(drawn & 0xffffffff)

    # -- learning

    def step(self, batch: Any, number: int) -> None:
        self._end_validation()
        steps, each = int(self._facts["steps"]), self._switches.accumulate
        first = number // each * each
        last = max(number, min(first + each, steps) - 1)
        self._draw("step", number)
        earlier = self._optimiser.set_aside(number == first)
        if self._buffers:
            self._torch._foreach_copy_(self._kept, self._buffers)
        short = None
        try:
            loss = self.memory.measured(number, batch.rows, lambda: self._learn(
                batch, last + 1 - first))
        except BaseException as error:
            self._optimiser.put_back(earlier)
            self._put_buffers_back()
            short = shortage_in(error)
            if short is None:
                raise
        if short is not None:
            raise short  # without what was raised, whose frames hold tensors
        self._optimiser.add(earlier)
        if number == last:
            self._torn = "its last step ended while the weights changed"
            with told("its weights were changed", self._file):
                learning = self._facts["learning"]
                self._optimiser.move(factor(
                    first, int(learning["warmup_steps"]), steps,
                    learning["schedule"]))
            self._torn = ""
        self._remember(loss)

    def _put_buffers_back(self) -> None:
        if self._buffers:
            with self._torch.no_grad():
                self._torch._foreach_copy_(self._buffers, self._kept)

    def _learn(self, batch: Any, share: int) -> Any:
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

    def _check_loss(self, loss: Any) -> None:
        if not loss.requires_grad:
            refuse_loss("the loss depends on no trainable weight",
                        "compute the loss from the output of layers, "
                        "without detach(), item() or no_grad()")
        if loss.device.type == "cpu":
            self._check_finite(float(loss.detach()))

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
            self._optimiser.average(True)
            self._module.eval()
        self._draw("validation", self._validated)
        self._validated += 1
        with self._torch.no_grad(), told("it was validated", self._file):
            self.memory.looked(batch.torch(), batch.ids.tolist(), self._look)

    def _look(self, tensors: Mapping[str, Any], samples: list[int]) -> None:
        with self._switches.autocast():
            answer = self._module(**self._inputs.of(tensors))
            self._objective.look(answer, tensors, samples)

    def finished(self) -> Any:
        """The module as the run leaves it."""
        self._end_validation()
        self._optimiser.average(True)
        return self._module.eval()

    def _end_validation(self) -> None:
        """The weights that learn are in the module."""
        if self._validated:
            self._validated = 0
            self._module.train()
        self._optimiser.average(False)

    def validated(self) -> str:
        self._end_validation()
        with told("it was validated", self._file):
            return json.dumps({
                name: None if isinstance(value, float) and
                not math.isfinite(value) else value
                for name, value in self._objective.seen().items()})

    # -- state

    def in_force(self) -> str:
        return json.dumps(self._switches.told())

    def save(self) -> tuple[list[Saved], str]:
        if self._torn:
            raise refused("model.torn", "cannot save the model", "this run",
                          self._torn, "resume from the checkpoint before it")
        averages = self._optimiser.average(False)
        try:
            tensors = {f"model.{name}": tensor for name, tensor
                       in self._state().items()}
            more, numbers = self._optimiser.state()
            return saved(self._torch, {**tensors, **more}), json.dumps({
                "kind": "own", "threads": self._torch.get_num_threads(),
                "memory": self.memory.state(), "optimiser": numbers})
        finally:
            self._optimiser.average(averages)

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
        copied(self._torch, weights, {f"model.{name}": tensor for name, tensor
                                      in self._state().items()})
        self._optimiser.restore(rest, about["optimiser"])
