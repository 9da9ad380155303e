"""Which tensors of a batch a module's forward() takes."""

from __future__ import annotations

import inspect
from typing import Any, Mapping

from ..errors import refused


class Inputs:
    """By the names of its parameters: each a tensor of the batch; `batch` is
    all of them, and so are keyword arguments (**). A single parameter of
    another name takes the one tensor that is not the target's."""

    def __init__(self, module: Any, target: str) -> None:
        self._parameters = list(
            inspect.signature(module.forward).parameters.values())
        self._target = target
        self._names: dict[str, str | None] | None = None

    def of(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        if self._names is None:
            self._names = self._chosen(tensors)
        return {name: dict(tensors) if tensor is None else tensors[tensor]
                for name, tensor in self._names.items() if tensor is None
                or tensor in tensors}

    def _chosen(self, tensors: Mapping[str, Any]) -> dict[str, str | None]:
        """The tensor of each argument; None: all of them, as a mapping."""
        chosen: dict[str, str | None] = {}
        lacks = []
        for each in self._parameters:
            if each.kind is each.VAR_KEYWORD:
                chosen.update({name: name for name in tensors
                               if name not in chosen})
            elif each.kind is each.VAR_POSITIONAL:
                continue
            elif each.name in tensors:
                chosen[each.name] = each.name
            elif each.name == "batch":
                chosen[each.name] = None
            elif each.default is each.empty:
                lacks.append(each)
        if len(lacks) == 1 and not chosen and self._only(tensors):
            chosen[lacks[0].name] = self._only(tensors)
            lacks = []
        if lacks or any(each.kind is each.POSITIONAL_ONLY
                        for each in self._parameters):
            raise refused(
                "model.forward", "cannot call the model",
                "the model's forward()",
                "a batch has no tensor for its parameter '"
                + (lacks or self._parameters)[0].name + "'",
                "name its parameters after the tensors of a batch ("
                + ", ".join(tensors) + "), or take all tensors as one "
                "argument: forward(self, batch)")
        return chosen

    def _only(self, tensors: Mapping[str, Any]) -> str:
        rest = [name for name in tensors if self._target and name not in (
            self._target, self._target + "_mask", "weight")]
        return rest[0] if len(rest) == 1 else ""
