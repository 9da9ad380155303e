"""Items become a batch, by the rules of torch's default_collate.

Where torch is imported, its own function does it. Where it is not, numpy
stacks, by the same rules: numbers and arrays become arrays, texts and bytes
stay in a list, mappings, named tuples and sequences are collated field by
field. `to_tensor` is then what becomes of an array.
"""

from __future__ import annotations

import collections.abc
import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import worded
from .errors import CollateError, CollateTypeError
from .packing import ToTensor


def same(array: Any) -> Any:
    return array


def torch_module() -> Any:
    """torch, where it is imported completely."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "utils") and "torch.utils.data" in \
        sys.modules else None


def default_collate(items: Any, to_tensor: Callable[[Any], Any] = same,
                    ids: Sequence[Any] | None = None) -> Any:
    """A batch of `items`. `ids` are their indices, for the error message."""
    torch = torch_module()
    try:
        if torch is not None:
            return torch.utils.data.default_collate(items)
        return collate_by_numpy(items, to_tensor)
    except (TypeError, ValueError, RuntimeError, KeyError,
            AttributeError, OverflowError) as error:
        raise _explained(error, items, ids) from error


def default_convert(item: Any,
                    to_tensor: Callable[[Any], Any] = same) -> Any:
    """What happens to one item when nothing is batched: arrays become
    tensors, everything else stays."""
    torch = torch_module()
    if torch is not None:
        return torch.utils.data.default_convert(item)
    import numpy as np

    def convert(field: Any) -> Any:
        if isinstance(field, (np.ndarray, np.generic)) and \
                field.dtype.kind in "biufc":
            return to_tensor(np.asarray(field))
        if isinstance(field, (str, bytes)):
            return field
        if isinstance(field, (collections.abc.Mapping,
                              collections.abc.Sequence)):
            return _rebuilt(field, convert)
        return field
    return convert(item)


def default_for(batched: bool) -> Callable[[Any], Any]:
    """What a loader without a collate_fn calls: torch's where it is."""
    name = "default_collate" if batched else "default_convert"
    data = sys.modules.get("torch.utils.data")
    found: Callable[[Any], Any] = getattr(data, name, globals()[name])
    return found


def unless_default(collate_fn: Callable[[Any], Any],
                   batched: bool) -> Callable[[Any], Any] | None:
    """None for torch's default, which is ours, too."""
    name = "default_collate" if batched else "default_convert"
    return (None if collate_fn in (globals()[name], default_for(batched))
            else collate_fn)


def stack_without_shared_memory() -> None:
    """Makes torch's default_collate stack into plain memory in this process.

    In a process that is a worker it asks for a named shared memory file per
    tensor, which is small in containers; the batch is copied into ours.
    """
    torch = torch_module()

    def stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
        first = batch[0]
        if first.is_nested or first.layout is not torch.strided:
            raise RuntimeError("nested and sparse tensors need your own "
                               "collate_fn")
        return torch.stack(batch, 0)
    collate = torch.utils.data._utils.collate
    collate.default_collate_fn_map[torch.Tensor] = stack


def _rebuilt(fields: Any, change: Callable[[Any], Any]) -> Any:
    """The same kind of container, each field changed."""
    changed: Any
    if isinstance(fields, collections.abc.Mapping):
        changed = {key: change(fields[key]) for key in fields}
    else:
        changed = [change(field) for field in fields]
    try:
        return _like(fields, changed)
    except TypeError:  # it is made in another way
        return changed


def _like(fields: Any, changed: Any) -> Any:
    """What was changed, in a container of the kind of `fields`."""
    kind: Any = type(fields)
    if isinstance(fields, tuple):
        return (kind(*changed) if hasattr(fields, "_fields")
                else changed)  # a tuple becomes a list, as in torch
    clone: Any
    if isinstance(fields, collections.abc.MutableMapping):
        clone = copy.copy(fields)
        clone.update(changed)
        return clone
    if isinstance(fields, collections.abc.MutableSequence):
        clone = copy.copy(fields)
        for at, field in enumerate(changed):
            clone[at] = field
        return clone
    return kind(changed)


def collate_by_numpy(items: Any, to_tensor: Callable[[Any], Any]) -> Any:
    import numpy as np

    first = items[0]
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind not in "biufc":
            raise TypeError(f"dtype {first.dtype}")
        return to_tensor(np.stack(items))
    if isinstance(first, bool):
        return to_tensor(np.array(items, dtype=np.bool_))
    if isinstance(first, float):
        return to_tensor(np.array(items, dtype=np.float64))
    if isinstance(first, int):
        whole = all(isinstance(item, int) for item in items)
        return to_tensor(np.array(items, np.int64 if whole else np.float32))
    if isinstance(first, (str, bytes)):
        return items
    if isinstance(first, collections.abc.Mapping):
        columns = iter([[item[key] for item in items] for key in first])
        return _rebuilt(first, lambda _: collate_by_numpy(next(columns),
                                                          to_tensor))
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in items):
            raise RuntimeError("fields are missing")
        fields = zip(*items)
        return _rebuilt(first, lambda _: collate_by_numpy(next(fields),
                                                          to_tensor))
    raise TypeError(f"type {type(first).__name__}")


def _explained(error: Exception, items: Any,
               ids: Sequence[Any] | None) -> CollateError:
    """The error with the first item that does not fit, by its index."""
    def name(row: int) -> str:
        return (f"item {ids[row]!r} (row {row} of the batch)"
                if ids is not None and row < len(ids)
                else f"row {row} of the batch")
    found = _unfit(items)
    if found is None:
        return worded(
            CollateError, "collate.failed", "the items cannot be combined "
                "into a batch",
            f"{len(items)} items" + (f" from {ids[0]!r} on" if ids else ""),
            f"{type(error).__name__}: {error}",
            "pass your own collate_fn")
    row, path, was, expected = found
    field = f", field {path}" if path else ""
    if expected is None:
        return worded(
            CollateTypeError, "collate.type",
            "the items cannot be combined into a batch", f"{name(row)}{field}",
            f"found {was}; a batch must contain tensors, numpy arrays, "
            "numbers, dicts or lists",
            "convert it in the data set, or give a collate_fn of your own")
    return worded(
        CollateError, "collate.shape",
        "the items cannot be combined into a batch: they must be of equal "
        "size",
        f"{name(row)}{field}",
        f"found {was}, {name(0)} has {expected}",
        "pad or crop in the data set, or give a collate_fn of your own")


def _unfit(items: Any,
           path: str = "") -> tuple[int, str, str, str | None] | None:
    """(row, field, found, expected) of what cannot be stacked, or None;
    expected is None where the type itself is wrong."""
    first = items[0]
    if hasattr(first, "shape") and hasattr(first, "dtype"):
        kind = getattr(first.dtype, "kind", "f")
        if kind not in "biufc":
            return 0, path, f"an array of dtype {first.dtype}", None
        for row, item in enumerate(items):
            shape = getattr(item, "shape", None)
            if shape != first.shape:
                return row, path, _shown(item), _shown(first)
        return None
    if isinstance(first, (bool, int, float, str, bytes)):
        for row, item in enumerate(items):
            if not isinstance(item, (bool, int, float, str, bytes)):
                return row, path, _shown(item), _shown(first)
        return None
    if isinstance(first, collections.abc.Mapping):
        for row, item in enumerate(items):
            if not isinstance(item, collections.abc.Mapping):
                return row, path, _shown(item), _shown(first)
            missing = [key for key in first if key not in item]
            if missing:
                return (row, path, f"no key {missing[0]!r}",
                        f"keys {list(first)!r}")
        fields = [(f"{path}[{key!r}]", [item[key] for item in items])
                  for key in first]
    elif isinstance(first, collections.abc.Sequence):
        for row, item in enumerate(items):
            if not hasattr(item, "__len__") or len(item) != len(first):
                return row, path, _shown(item), _shown(first)
        fields = [(f"{path}[{at}]", list(column))
                  for at, column in enumerate(zip(*items))]
    else:
        return 0, path, f"a {type(first).__name__}", None
    for name, column in fields:
        found = _unfit(column, name)
        if found is not None:
            return found
    return None


def _shown(item: Any) -> str:
    if hasattr(item, "shape"):
        return f"shape {tuple(item.shape)}"
    if hasattr(item, "__len__") and not isinstance(item, (str, bytes)):
        return f"{len(item)} fields"
    return f"a {type(item).__name__}"


def tensor_later(array: Any) -> ToTensor:
    """In a worker without torch: a tensor in the process of the loop."""
    return ToTensor(array)


def tensor_now(array: Any) -> Any:
    torch = torch_module()
    return array if torch is None else torch.from_numpy(array)
