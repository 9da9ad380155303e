"""The log of a program that Penstock starts for a model of your own."""

from __future__ import annotations

import logging

__all__ = ["write_to_stderr"]


class _Format(logging.Formatter):
    """Lines as the program `penstock` writes them."""

    def format(self, record: logging.LogRecord) -> str:
        return f"penstock {record.levelname.lower()}: {record.getMessage()}"


def write_to_stderr() -> None:
    """Sends what the logger "penstock" receives to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Format())
    logging.getLogger("penstock").addHandler(handler)
