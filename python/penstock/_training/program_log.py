"""The log of a program that Penstock starts for a model of your own."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Any, ContextManager, NoReturn

__all__ = ["NO_READER", "exit_with", "prints_aside", "write_to_stderr"]

NO_READER = 141  # as a shell reports SIGPIPE


class _Format(logging.Formatter):
    """Lines as the program `penstock` writes them."""

    def format(self, record: logging.LogRecord) -> str:
        return f"penstock {record.levelname.lower()}: {record.getMessage()}"


def write_to_stderr() -> None:
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


def exit_with(code: int) -> NoReturn:
    """Ends the process. A reader of standard output that has gone, as `head`
    goes, wanted no more: that is not an error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = NO_READER
    sys.exit(code)
