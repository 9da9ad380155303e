"""Where jobs run, behind one interface.

A runner starts the shim of an attempt in some place, and says what became of
it. Whatever the runner, the folder of the job has its lock, its log and
`attempt-N/exit.json`.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import os
import pathlib
import sys
from typing import Any

from .. import shim
from ..configuration import Configuration
from ..store import Job

SHIM = os.path.abspath(shim.__file__)


class NotNow(Exception):
    """The job cannot be started at the moment: it stays queued, and this text
    says why."""


@dataclasses.dataclass(frozen=True)
class State:
    """What became of an attempt."""

    #: "absent" (no shim has begun), "waiting", "running", "ended", "lost" (it
    #: is gone and has written no exit.json) or "unknown" (cannot be asked)
    name: str
    exit: dict[str, Any] | None = None
    reason: str = ""


class Runner(abc.ABC):
    """One place. Methods are called by one thread."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    @abc.abstractmethod
    def start(self, job: Job, folder: pathlib.Path) -> str:
        """Starts the shim of attempt `job.attempt`; what the place calls it.
        Calling it twice starts one attempt. Raises NotNow."""

    @abc.abstractmethod
    def state(self, job: Job, folder: pathlib.Path) -> State:
        """Where the attempt stands."""

    @abc.abstractmethod
    def stop(self, job: Job, folder: pathlib.Path) -> None:
        """Asks it to save its state and end; does not wait. A job that was
        asked twice ends at once."""


def exit_of(job: Job, folder: pathlib.Path) -> dict[str, Any] | None:
    """What the shim of the attempt wrote when the job had ended."""
    return document_of(folder / f"attempt-{job.attempt}" / "exit.json")


def document_of(file: pathlib.Path) -> dict[str, Any] | None:
    """A JSON object; None for a missing or broken file."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_command(job: Job, folder: pathlib.Path,
                  configuration: Configuration) -> None:
    """What the shim will run, and the job file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shim.write(str(folder / "job.json"), json.loads(job.document))
    environment = {}
    if configuration.gpus > 1 and configuration.slots > 1 and (
            job.slot is not None):
        environment["CUDA_VISIBLE_DEVICES"] = str(
            job.slot % configuration.gpus)
    penstock = os.environ.get("PENSTOCK", "")
    program = [penstock] if penstock else [sys.executable, "-m", "penstock"]
    shim.write(str(folder / "command.json"), {
        "program": program,
        "cwd": str(configuration.folder), "env": environment})


def made(configuration: Configuration) -> Runner:
    """The runner that the configuration names."""
    if configuration.runner == "slurm":
        from .slurm import Slurm
        return Slurm(configuration)
    if configuration.runner == "ray":
        from .ray import Ray
        return Ray(configuration)
    from .local import Local
    return Local(configuration)
