"""Calls of pyarrow, and what it raises in them as the engine takes it."""

from __future__ import annotations

import importlib
from typing import Any


_UNKNOWN_TYPE = "Unrecognized type"  # of a newer Arrow


class Refused(Exception):
    """What is wrong with a file: the engine adds which one it is."""

    def __init__(self, says: str, where: str = "", next: str = "",
                 no_memory: bool = False, unsupported: bool = False,
                 of_store: bool = False) -> None:
        super().__init__(says)
        self.says = says.encode("utf-8", "backslashreplace").decode()
        self.where, self.next = where, next
        self.no_memory, self.unsupported = no_memory, unsupported
        self.of_store = of_store


def import_pyarrow(name: str = "pyarrow") -> Any:
    """By name, since some releases come with types and others not."""
    return importlib.import_module(name)


def told(where: str = "") -> _Told:
    """What pyarrow raises in its scope is raised as Refused."""
    return _Told(where)


class _Told:
    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None,
                 trace: object) -> None:
        pyarrow = import_pyarrow()
        if error is None or isinstance(error, Refused) or not isinstance(
                error, (pyarrow.ArrowException, OSError, ValueError, EOFError,
                        MemoryError)):
            return
        text = error.args[0] if isinstance(
            error, pyarrow.ArrowException) and error.args else error
        unknown = isinstance(error, NotImplementedError) or \
            str(text).startswith(_UNKNOWN_TYPE)
        raise Refused(f"{text} (pyarrow {pyarrow.__version__})" if unknown
                      else str(text), self.where,
                      no_memory=isinstance(error, MemoryError),
                      unsupported=unknown,
                      of_store="AWS Error" in str(text)) from error
