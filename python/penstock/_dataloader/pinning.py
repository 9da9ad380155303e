"""Batches in page-locked memory, copied by a thread ahead of the loop."""

from __future__ import annotations

import collections.abc
import copy
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

_LOOK_S = 0.1


def available() -> bool:
    """Whether there is an accelerator to copy to."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def can_pin(device: str) -> bool:
    """Whether a loop with `pin_memory` pins, with a warning where it does not,
    or where it names a `pin_memory_device`, which torch no longer heeds."""
    if device:
        warnings.warn("pin_memory_device has no effect: the current "
                      "accelerator is used", stacklevel=4)
    if not available():
        warnings.warn("pin_memory is set, but there is no accelerator: "
                      "batches are not pinned", stacklevel=4)
        return False
    return True


def pinned(data: Any) -> Any:
    """The same structure; tensors, and what has pin_memory(), are pinned."""
    torch: Any = sys.modules["torch"]
    kind: Any = type(data)
    changed: Any
    if isinstance(data, torch.Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        changed = {key: pinned(value) for key, value in data.items()}
        try:
            if isinstance(data, collections.abc.MutableMapping):
                clone = copy.copy(data)
                clone.update(changed)
                return clone
            return kind(changed)
        except TypeError:
            return changed
    if isinstance(data, tuple):
        changed = [pinned(value) for value in data]
        return kind(*changed) if hasattr(data, "_fields") else kind(changed)
    if isinstance(data, collections.abc.Sequence):
        changed = [pinned(value) for value in data]
        try:
            return kind(changed)
        except TypeError:
            return changed
    return data


class PinAhead:
    """Takes batches from `take(stop)`, pins them on a thread, and hands them
    out in order. `take` raises StopIteration at the end."""

    def __init__(self, take: Callable[[threading.Event], tuple[Any, Any, int]],
                 depth: int) -> None:
        self._take, self._stop = take, threading.Event()
        self._ready: queue.Queue[
            tuple[Any, Any, int] | BaseException] = queue.Queue(maxsize=depth)
        self._device = sys.modules["torch"].cuda.current_device()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name="penstock-pin")
        self._thread.start()

    def __call__(self) -> tuple[Any, Any, int]:
        result = self._ready.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._ready.get_nowait()  # it may wait for room
            except queue.Empty:
                pass
            self._thread.join(timeout=_LOOK_S)

    def _run(self) -> None:
        sys.modules["torch"].cuda.set_device(self._device)
        while not self._stop.is_set():
            try:
                self._ready.put(pinned_result(self._take(self._stop)))
            except BaseException as error:
                self._ready.put(error)
                if isinstance(error, StopIteration):
                    return


def pinned_result(result: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
    """Of a batch, its bad rows and the number of its items."""
    batch, bad, items = result
    return pinned(batch), bad, items
