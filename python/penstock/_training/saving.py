"""Tensors of torch as the engine saves them, and back."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..errors import RequestError, refused, worded
from .strategies import placed_as

#: (name, dtype, shape, bytes).
Saved = tuple[str, str, list[int], Any]

_DTYPES = ("float32", "float64", "int64", "bool", "uint8", "int8", "int16",
           "uint16", "int32", "uint32", "uint64", "float16", "bfloat16")


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def saved(torch: Any, tensors: Mapping[str, Any]) -> list[Saved]:
    """The tensors, on the host; where they are there, their own memory."""
    made = []
    for name, tensor in tensors.items():
        dtype = dtype_name(tensor)
        if dtype not in _DTYPES or tensor.layout is not torch.strided:
            raise refused("model.state", "cannot save the model",
                          f"tensor '{name}'", f"the tensor is {dtype}, "
                          f"{tensor.layout}, which safetensors cannot store",
                          "register it with persistent=False")
        flat = tensor.detach().to("cpu").contiguous().reshape(-1)
        made.append((name, dtype, list(tensor.shape),
                     flat.view(torch.uint8).numpy()))
    return made


def loaded(torch: Any, entries: Iterable[Saved]) -> dict[str, Any]:
    """Copies of what was saved, on the host."""
    made = {}
    for name, dtype, shape, data in entries:
        kind = getattr(torch, dtype)
        if data.size:
            flat = torch.frombuffer(bytearray(data), dtype=kind)
        else:
            flat = torch.empty(0, dtype=kind)
        made[name] = flat.reshape(shape)
    return made


def refuse_other(where: str, why: str) -> None:
    raise worded(RequestError, "resume.other_model",
                 "cannot continue from the checkpoint", where, why,
                 "resume with the job and the model that wrote it, or start a "
                 "new run")


def copied(torch: Any, found: Mapping[str, Any],
           into: Mapping[str, Any]) -> None:
    """Copies tensors by their names, which must all be there and alike; else
    nothing is changed."""
    for name, tensor in into.items():
        if name not in found:
            refuse_other(f"tensor '{name}'", "the checkpoint does not have "
                "this tensor")
        other = found[name]
        if other.dtype != tensor.dtype or other.shape != tensor.shape:
            refuse_other(f"tensor '{name}'",
                         f"found {dtype_name(other)} {list(other.shape)}, "
                         f"expected {dtype_name(tensor)} {list(tensor.shape)}")
    for name in found:
        if name not in into:
            refuse_other(f"tensor '{name}'",
                         "the model of this job has no such tensor")
    with torch.no_grad():
        for name, tensor in into.items():
            tensor.copy_(placed_as(found[name], tensor))
