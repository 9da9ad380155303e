"""The page of a loop, as `penstock train` writes that of a run."""

from __future__ import annotations

import json
import os
from typing import Any

from .errors import refused


def with_page(report: dict[str, Any], path: str | os.PathLike[str] | None,
              title: str) -> dict[str, Any]:
    """The report of a loop; where there is a path its page is written there.
    Raises RequestError, file.write."""
    if path is None:
        return report
    from . import _engine  # which worker processes do not load

    worst = [_as_of_a_run(step) for step in report.get("worst_steps") or ()]
    page = _engine.report_page(json.dumps(
        {**report, "loop": title, "worst_steps": worst}, default=str))
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise refused("file.write", "cannot write the page of the loop",
                      os.fspath(path), error.strerror or str(error),
                      "name a file in a folder that can be written to"
                      ) from None
    return report


def _as_of_a_run(step: dict[str, Any]) -> dict[str, Any]:
    """A slow step as runs and Loaders report it; loops of items name a batch
    and its slowest item."""
    if "step" in step:
        return step
    return {"step": step["batch"], "ms": step["wait_ms"],
            "samples": [step["item"]] if step["item"] else []}
