"""Settings of `train` that not every model has: what is asked, what is in
force on this device, and why they differ."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping

from .objective import Named, Objective
from .ranks import Group


class Switches:
    """Of one run; resolved when it begins."""

    def __init__(self, torch: Any, facts: Mapping[str, Any],
                 objective: Objective, ranks: Group | None = None) -> None:
        asked = facts["learning"]
        self._torch = torch
        self.device = torch.device(facts["device"])
        self._told: list[dict[str, Any]] = []
        self.precision = self._resolve(
            "precision", asked["precision"], "float32",
            self._no_precision(asked["precision"]))
        self.tf32 = self._resolve("tf32", asked["tf32"], False,
                                  self._no_tf32())
        self._resolve("graphs", asked["graphs"], "off",
                      "they are for built-in models; set model.compile to "
                      "\"reduce-overhead\" instead")
        self.accumulate = int(self._resolve(
            "accumulate", asked["accumulate"], 1, ""))
        self.ema = float(self._resolve("ema", asked["ema"], 0, ""))
        smooth = isinstance(objective, Named) and objective.smoothing > 0
        self._resolve("label_smoothing", asked["label_smoothing"], 0,
                      "" if smooth else
                      "only the loss cross_entropy supports label smoothing")

        if ranks is not None or asked["strategy"] != "auto":
            self.strategy = self._strategy(asked["strategy"], ranks)

    def _strategy(self, asked: str, ranks: Group | None) -> str:
        got, why = asked, ""
        if ranks is None:
            got, why = "none", "the run is one process"
        elif asked == "auto":
            got, why = "ddp", "it is the default for several ranks"
        self._told.append({"name": "strategy", "asked": asked, "got": got,
                           "why": why})
        return got

    def told(self) -> list[dict[str, Any]]:
        """For StepperFacts::in_force."""
        return self._told

    def _resolve(self, name: str, asked: Any, otherwise: Any,
                 why_not: str) -> Any:
        got = otherwise if why_not else asked
        self._told.append({"name": name, "asked": asked, "got": got,
                           "why": why_not if got != asked else ""})
        return got

    def _no_precision(self, asked: str) -> str:
        if asked == "bfloat16" and self.device.type == "cuda" and \
                not self._torch.cuda.is_bf16_supported():
            return "this GPU does not support bfloat16"
        return ""

    def _no_tf32(self) -> str:
        if self.device.type != "cuda":
            return f"the {self.device.type} does not support it"
        if self._torch.cuda.get_device_capability(self.device)[0] < 8:
            return "this GPU does not support it"
        return ""

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """In which the module computes in the precision."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        made: contextlib.AbstractContextManager[Any] = self._torch.autocast(
            self.device.type, getattr(self._torch, self.precision))
        return made

    def scaler(self) -> Any:
        """Keeps small gradients of float16 from becoming 0; else does
        nothing."""
        return self._torch.amp.GradScaler(
            self.device.type, enabled=self.precision == "float16")


@contextlib.contextmanager
def torch_as_asked(torch: Any) -> Iterator[None]:
    """What a run sets for all of torch is as it was when the block has ended:
    threads, TF32, and the generators of random numbers."""
    import random
    import sys

    threads = torch.get_num_threads()
    products = torch.backends.cuda.matmul.allow_tf32
    convolutions = torch.backends.cudnn.allow_tf32
    generator, own = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = products
        torch.backends.cudnn.allow_tf32 = convolutions
        torch.set_rng_state(generator)
        random.setstate(own)
        if numpy is not None:
            numpy.random.set_state(of_numpy)
