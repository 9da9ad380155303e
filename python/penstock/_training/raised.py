"""What code of the user's raised, as an error that says where."""

from __future__ import annotations

import contextlib
import os
import traceback
from typing import Any, Iterator

from ..errors import Error, OutOfMemory, RequestError, said, worded


def is_no_memory(error: BaseException) -> bool:
    """Whether torch, or Python, had no memory left. For the host's memory torch
    has no class of its own."""
    return (isinstance(error, MemoryError)
            or type(error).__name__ == "OutOfMemoryError"
            or "DefaultCPUAllocator" in str(error))


def place_in(error: BaseException, file: str) -> str:
    """The line in `file` that the error came through last, else its last line;
    of code that is no Python, where that is.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     place_in(error, "elsewhere.py")
    'line 2 of <doctest penstock._training.raised.place_in[0]>, in <module>'
    """
    if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
        return f"line {error.lineno} of {error.filename}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if file and
           os.path.abspath(frame.filename) == os.path.abspath(file)]
    for frame in reversed(own or list(frames)):
        return f"line {frame.lineno} of {frame.filename}, in {frame.name}"
    return file or "the module"


def worded_error(error: BaseException, doing: str, file: str) -> Error:
    """An error that says what was done when the code in `file` raised."""
    if is_no_memory(error):
        return worded(OutOfMemory, "model.out_of_memory",
                      f"out of memory while {doing}", place_in(error, file),
                      said(error).split("\n")[0],
                      "use a smaller loader.batch_size, or train.accumulate")
    return worded(RequestError, "model.raised",
                  f"the model failed while {doing}", place_in(error, file),
                  said(error), "correct the code there; the full traceback is "
                  "above or in the error's __cause__")


@contextlib.contextmanager
def told(doing: str, file: str) -> Iterator[None]:
    """Errors of the block are ours, caused by what was raised."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise worded_error(error, doing, file) from error


def torch_or_refused(what: str = "cannot train a module of torch") -> Any:
    """torch, or an error that says how to get it. `what` cannot be done without
    it."""
    import importlib
    import sys

    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise worded(
            RequestError, "model.no_torch", what, sys.executable, said(error),
            "pip install torch next to penstock, or name a Python that has "
            "both with PENSTOCK_PYTHON") from error
