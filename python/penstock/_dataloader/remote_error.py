"""Exceptions that are sent from a worker to the loop."""

from __future__ import annotations

import pickle
import traceback
from typing import NoReturn

from ..errors import Error

_MOST_TEXT = 1 << 15  # of a traceback; its end says what happened


class _Plain(str):
    """Text that KeyError, which shows its argument by repr(), leaves whole."""

    def __repr__(self) -> str:
        return str(self)


class InWorker(Exception):
    """What was raised in a worker, as text with its traceback: the cause of
    the exception that the loop raises."""


class RemoteError:
    """An exception on its way to the thread of the loop.

    `reraise` raises the same type with the worker's traceback in the message,
    as torch does; its cause is the exception itself, where it can be pickled. Our
    own errors, and a type that cannot be made from one text, are raised as they
    were, the traceback as their cause.
    """

    def __init__(self, error: BaseException, where: str,
                 detail: str = "") -> None:
        trace = "".join(traceback.format_exception(type(error), error,
                                                   error.__traceback__))
        said = f" ({detail})" if detail else ""
        self.text = (f"Caught {type(error).__name__} in {where}{said}.\n"
                     f"Original {trace[-_MOST_TEXT:]}")
        self.type = type(error)
        self.original: BaseException | None = error
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            self.original = None
        try:
            pickle.dumps(self.type)
        except Exception:  # a class made inside a function: its nearest base
            self.type = next(base for base in type(error).__mro__
                             if base.__module__ == "builtins")

    def reraise(self) -> NoReturn:
        if issubclass(self.type, StopIteration):
            raise RuntimeError(self.text)  # it would end the loop in silence
        if isinstance(self.original, Error):
            raise self.original from InWorker(self.text)
        again: BaseException | None
        try:
            again = self.type(_Plain(self.text) if self.type is KeyError
                              else self.text)
        except Exception:
            again = None
        if isinstance(again, self.type):
            raise again from self.original
        if self.original is not None:
            raise self.original from InWorker(self.text)
        raise RuntimeError(self.text)


def last_line_of(error: BaseException, file: str
                 ) -> tuple[int | None, str | None]:
    """The last line of this file that ran before the error, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename == file]
    return (frames[-1].lineno, frames[-1].line) if frames else (None, None)
