"""How the data set and what belongs to it are sent to the server."""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

from . import packing
from ..errors import worded
from .errors import NotPicklable

_HASHED_BYTES = 1 << 26  # of a data set's arrays, to see whether it changed


def digest_of(parts: Sequence[memoryview]) -> bytes:
    """Changes when what is pickled does. Of arrays beyond 64 MB only where
    they lie and a part of what they hold is looked at."""
    seen, left = hashlib.blake2b(parts[0], digest_size=16), _HASHED_BYTES
    for part in parts[1:]:
        if part.nbytes <= left:
            seen.update(part)
            left -= part.nbytes
        else:
            import numpy as np

            raw = np.frombuffer(part, dtype=np.uint8)
            stride = max(1, len(raw) >> 16)
            seen.update(raw[::stride].tobytes())
            seen.update(b"%d %d" % (raw.ctypes.data, len(raw)))
    return seen.digest()


def pickled(dataset: Any, collate_fn: Any, worker_init_fn: Any
            ) -> tuple[list[memoryview], dict[str, Any]]:
    """What travels to the server: (parts, main), or NotPicklable."""
    main = seen_here()
    has_main = _can_be_imported(main)
    if not has_main:
        main.pop("init_main_from_name", None)
        main.pop("init_main_from_path", None)
    things = dataset, collate_fn, worker_init_fn
    reason: Exception | None = None
    try:
        parts = packing.flatten(things)
        if has_main or not _names_main(things, parts[0]):
            return parts, main
    except Exception as error:
        reason = error
    by_value = _by_cloudpickle(things)
    if by_value is not None:
        return by_value, main
    raise _not_picklable(things, reason)


def seen_here() -> dict[str, Any]:
    """How this process sees modules, for server.prepare()."""
    from multiprocessing import spawn

    data = spawn.get_preparation_data("penstock")
    main = {key: value for key, value in data.items() if key in (
        "sys_argv", "dir", "init_main_from_name", "init_main_from_path")}
    main["sys_path"] = [folder for entry in sys.path
                        for folder in _absolute(entry)]
    return main


def _absolute(entry: str) -> list[str]:
    """A relative entry of sys.path is looked for where the program is, and
    where it began."""
    if os.path.isabs(entry):
        return [entry]
    return [os.path.join(folder, entry) if entry else folder
            for folder in _current_folders()]


def _can_be_imported(main: dict[str, Any]) -> bool:
    """Whether there is a main module, and one that workers find: not that of
    `python FOLDER` or `python -m package`, nor a program that was piped."""
    name = main.get("init_main_from_name")
    if name is not None:
        return str(name).rpartition(".")[2] != "__main__"
    return os.path.isfile(main.get("init_main_from_path", ""))


def _names_main(thing: Any, text: memoryview) -> bool:
    return b"__main__" in bytes(text) and packing.refers_to_main(thing)


def _current_folders() -> list[str]:
    """What relative entries of sys.path mean: now, and when Python began."""
    from .. import _began_in
    try:
        return [os.getcwd(), _began_in]
    except OSError:
        return [_began_in]


def _by_cloudpickle(things: tuple[Any, ...]) -> list[memoryview] | None:
    """For lambdas and classes of a notebook, where cloudpickle is there."""
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        return None
    arrays: list[pickle.PickleBuffer] = []
    try:
        text = cloudpickle.dumps(things, protocol=5,
                                 buffer_callback=arrays.append)
    except Exception:
        return None
    return [memoryview(text), *(array.raw() for array in arrays)]


def _not_picklable(things: tuple[Any, ...],
                   error: Exception | None) -> NotPicklable:
    names = ("the data set", "collate_fn", "worker_init_fn")
    reason = str(error)
    for name, thing in zip(names, things):
        try:
            text = packing.flatten(thing)[0]
            if error is None and _names_main(thing, text):
                reason = ("the object is defined in __main__, which workers "
                          "cannot import: a session, a pipe, or a __main__.py")
                break
        except Exception as raised:
            reason = f"{type(raised).__name__}: {raised}"
            break
    return worded(
        NotPicklable, "workers.pickle",
        f"{name} cannot be sent to the worker processes",
        f"a {type(thing).__name__}", reason,
        "define the object at the top level of a file, install cloudpickle, "
        "or set num_workers=0 or workers=\"threads\"")
