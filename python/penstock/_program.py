"""What the program `penstock` becomes for verbs that are written in Python: its
log, its answer on standard output, its errors, and its exit code."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from typing import Any, Callable, ContextManager, NoReturn

from .errors import Error

__all__ = ["end_at_once", "end_now", "end_with", "log_to_stderr", "prints_aside", "say"]

_EXIT_CODES = {"request": 2, "source": 3, "transform": 4, "device": 5,
               "out_of_memory": 6, "internal": 70}
_NO_READER = 141  # as a shell reports SIGPIPE


_shows_json: bool | None = None  # None: the process is not this program
_ends_at_once = False


class _NoReader(Exception):
    """Who read standard output, as `head` does, wants no more."""


class _Format(logging.Formatter):
    """Lines as the program `penstock` writes them."""

    def format(self, record: logging.LogRecord) -> str:
        return f"penstock {record.levelname.lower()}: {record.getMessage()}"


def log_to_stderr() -> None:
    """Sends what the logger "penstock" receives to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Format())
    logging.getLogger("penstock").addHandler(handler)


def prints_aside(aside: bool = True) -> ContextManager[Any]:
    """While it lasts, what a module prints goes to standard error: standard
    output holds the answer of the program, JSON or CSV, and nothing else."""
    if aside:
        return contextlib.redirect_stdout(sys.stderr)
    return contextlib.nullcontext()


def say(text: str) -> None:
    """Writes to standard output, whatever is set aside. A reader that has gone
    ends the program, and is no error (see `end_with`)."""
    assert sys.__stdout__ is not None
    try:
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
    except BrokenPipeError:
        raise _NoReader from None


def end_with(program: Callable[[], int], as_json: bool) -> NoReturn:
    """Runs the program and ends the process with the exit code that it returns,
    or that of its error, which is shown."""
    global _shows_json
    _shows_json = as_json
    try:
        try:
            code = program()
        except Error as error:
            code = _show(error, as_json)
        say("")  # what others have written, too
    except _NoReader:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = _NO_READER
    if _ends_at_once:
        _exit_at_once(code)
    sys.exit(code)


def end_at_once() -> bool:
    """Lets the program end without cleaning up, which could wait for ever. False:
    this process is not the program, and has to clean up."""
    global _ends_at_once
    _ends_at_once = _shows_json is not None
    return _ends_at_once


def end_now(error: Error) -> NoReturn:
    """Ends the process with the exit code of an error, which is shown, from
    another thread than the main one, which cannot be interrupted."""
    with contextlib.suppress(Exception):
        if _shows_json is None:
            logging.getLogger("penstock").error("%s", error)
        else:
            _show(error, _shows_json)
    _exit_at_once(_EXIT_CODES[error.kind])


def _exit_at_once(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _show(error: Error, as_json: bool) -> int:
    """Says what went wrong, as the program does; its exit code."""
    if error.__cause__ is not None:
        traceback.print_exception(error.__cause__)
    if as_json:
        say(json.dumps({"error": {
            "kind": error.kind, "code": error.code, "what": error.what,
            "where": error.where, "why": error.why, "next": error.next}})
            + "\n")
    else:
        print(f"penstock: {error}", file=sys.stderr)
    return _EXIT_CODES[error.kind]
