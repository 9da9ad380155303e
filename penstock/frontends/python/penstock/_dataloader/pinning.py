"""Batches in page-locked memory, copied by a thread ahead of the loop."""
import collections.abc
import copy
import queue
import sys
import threading

_LOOK_S = 0.1


def available():
    """Whether there is an accelerator to copy to."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def pinned(data):
    """The same structure; tensors, and what has pin_memory(), are pinned."""
    torch = sys.modules["torch"]
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
            return type(data)(changed)
        except TypeError:
            return changed
    if isinstance(data, tuple):
        changed = [pinned(value) for value in data]
        return (type(data)(*changed) if hasattr(data, "_fields")
                else type(data)(changed))
    if isinstance(data, collections.abc.Sequence):
        changed = [pinned(value) for value in data]
        try:
            return type(data)(changed)
        except TypeError:
            return changed
    return data


class PinAhead:
    """Takes batches from `take(stop)`, pins them on a thread, and hands them
    out in order. `take` raises StopIteration at the end."""

    def __init__(self, take, depth):
        self._take, self._stop = take, threading.Event()
        self._ready = queue.Queue(maxsize=depth)
        self._device = sys.modules["torch"].cuda.current_device()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name="penstock-pin")
        self._thread.start()

    def __call__(self):
        batch, error = self._ready.get()
        if error is not None:
            raise error
        return batch

    def close(self):
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._ready.get_nowait()  # it may wait for room
            except queue.Empty:
                pass
            self._thread.join(timeout=_LOOK_S)

    def _run(self):
        sys.modules["torch"].cuda.set_device(self._device)
        while not self._stop.is_set():
            try:
                batch, error = pinned_result(self._take(self._stop)), None
            except BaseException as raised:
                batch, error = None, raised
            self._ready.put((batch, error))
            if isinstance(error, StopIteration):
                return


def pinned_result(result):
    """Of (batch, what else comes with it)."""
    batch, *rest = result
    return (pinned(batch), *rest)
