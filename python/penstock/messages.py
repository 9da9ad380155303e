"""What the engine has to say goes to the logger "penstock"."""

from __future__ import annotations

_LEVELS = (10, 20, 30, 40)  # debug, info, warning, error


def write(level: int, text: str) -> None:
    """Called by the engine, on a thread that is Python's."""
    import logging

    logging.getLogger("penstock").log(_LEVELS[level], "%s", text)
