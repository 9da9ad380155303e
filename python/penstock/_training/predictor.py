"""The predictions of a torch module in the engine's loop over the rows of a
source."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping

from . import module as modules
from .inputs import Inputs
from .objective import Named
from .raised import told
from .ranks import packed, unpacked
from .saving import Saved, copied, loaded
from .switches import Switches


class Predictor:
    """Called by the engine alone, from one thread."""

    def __init__(self, torch: Any, model: Any, facts: Mapping[str, Any]) -> None:
        self._torch = torch
        self._file = modules.file_of(model)
        settings = facts["model"]
        fields = modules.fields_of(facts)
        self._target = Named.of_predictions(
            torch, settings, fields, facts["learning"])
        self._switches = Switches(torch, facts, self._target)
        torch.set_num_threads(int(facts["learning"]["threads"]))
        if self._switches.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = self._switches.tf32
            torch.backends.cudnn.allow_tf32 = self._switches.tf32
        torch.manual_seed(int(settings["seed"]))
        made = modules.made(torch, model, facts, fields)
        with told("it was moved to its device", self._file):
            self._module = made.to(self._switches.device).eval()
        self._plain = modules.plain(self._module)
        self._inputs = Inputs(self._plain, settings["target"])

    def answers(self) -> str:
        """{"of", "names"}, as AnswerFacts of the engine has them."""
        return json.dumps(self._target.answers())

    def use(self, entries: list[Saved]) -> None:
        copied(self._torch, loaded(self._torch, entries), {
            f"model.{name}": tensor for name, tensor
            in self._plain.state_dict().items()})

    def predict(self, batch: Any) -> Any:
        """Of each row its numbers, one after the other, float64 on the host."""
        tensors = batch.torch()
        with self._torch.no_grad(), told("it made predictions", self._file):
            with self._switches.autocast():
                answer = self._module(**self._inputs.of(tensors))
            made = self._target.predicted(answer, tensors, batch.rows)
        return made.double().cpu().contiguous().numpy().reshape(-1)

    def share(self) -> bytes:
        """What this process has seen since the last measured()."""
        return packed(self._torch, self._target.share())

    def join(self, shares: list[bytes]) -> None:
        """What all ranks have seen takes its place."""
        self._target.take([unpacked(self._torch, one) for one in shares])

    def measured(self) -> str:
        return json.dumps({
            name: None if isinstance(value, float) and
            not math.isfinite(value) else value
            for name, value in self._target.seen().items()})
