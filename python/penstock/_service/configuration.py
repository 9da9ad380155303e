"""service.json: what may be run, where, and how many at once."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import pathlib
import re
from typing import Any, Mapping

from ..errors import refused

_RUNNERS = ("local", "slurm", "ray")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A job file that requests may name."""

    name: str
    job: pathlib.Path
    dataset_column: str = ""  # "": its rows cannot be chosen
    datasets: tuple[str, ...] = ()  # (): any value of the column
    connection: str = ""  # the URI or path that replaces the job's own


@dataclasses.dataclass(frozen=True)
class Configuration:
    """service.json, checked. Paths are absolute."""

    file: pathlib.Path
    recipes: Mapping[str, Recipe]
    default: str
    runs: pathlib.Path
    slots: int
    runner: str
    gpus: int = 0
    queue: int = 10_000  # jobs that may wait
    retries: int = 3     # restarts of a job that was killed
    runner_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> pathlib.Path:
        """Where jobs are started; their relative paths begin here."""
        return self.file.parent


def did_you_mean(name: str, known: list[str]) -> str:
    """The nearest known name as a question, else the list of all."""
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean '{near[0]}'?"
    return "known: " + ", ".join(sorted(known)[:20])


class _Section:
    """An object of the file whose unknown keys are refused."""

    def __init__(self, value: Any, where: str, keys: tuple[str, ...]) -> None:
        self.where = where
        if not isinstance(value, dict):
            self.refuse("", f"found {_shown(value)}, expected an object")
        for key in value:
            if key not in keys:
                self.refuse(key, "the key is unknown: "
                            + did_you_mean(key, list(keys)))
        self.value = value

    def refuse(self, key: str, why: str) -> Any:
        raise refused("service.config", "cannot read the configuration",
                      f"{self.where}{': ' + key if key else ''}", why,
                      "see docs/how-to/service.md for an example")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value.get(key, default)
        if value is None:
            self.refuse(key, "the key is missing")
        if not isinstance(value, str) or "\0" in value:
            self.refuse(key, f"found {_shown(value)}, expected a text")
        return str(value)

    def count(self, key: str, default: int, most: int = 100_000) -> int:
        value = self.value.get(key, default)
        if type(value) is not int or not 0 <= value <= most:
            self.refuse(key, f"found {_shown(value)}, expected an integer from "
                        f"0 to {most}")
        return int(value)


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]


def read(path: str | os.PathLike[str]) -> Configuration:
    """Reads service.json. Raises RequestError, code service.config."""
    file = pathlib.Path(path).absolute()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise refused("service.config", "cannot read the configuration",
                      str(file), str(error),
                      "name a JSON file with --config") from None
    top = _Section(document, str(file), (
        "recipes", "default", "connections", "runs", "slots", "runner",
        "queue", "retries", "slurm", "ray"))
    connections = top.value.get("connections", {})
    named = _connections(connections, str(file))
    recipes = _recipes(top, file, named)
    default = top.text("default", next(iter(recipes)))
    if default not in recipes:
        top.refuse("default", f"'{default}' is not a recipe: "
                   + did_you_mean(default, list(recipes)))
    runner = top.text("runner", "local")
    if runner not in _RUNNERS:
        top.refuse("runner", f"found '{runner}': "
                   + did_you_mean(runner, list(_RUNNERS)))
    gpus = count_gpus()
    options = top.value.get(runner, {})
    if not isinstance(options, dict):
        top.refuse(runner, f"found {_shown(options)}, expected an object")
    return Configuration(
        file, recipes, default, file.parent / top.text("runs", "runs"),
        top.count("slots", max(gpus, 1), 10_000), runner, gpus,
        top.count("queue", 10_000), top.count("retries", 3), options)


def _recipes(top: _Section, file: pathlib.Path, connections: Mapping[str, str]
             ) -> dict[str, Recipe]:
    given = top.value.get("recipes")
    if not isinstance(given, dict) or not given:
        top.refuse("recipes", "expected an object with at least one recipe")
    recipes = {}
    for name, value in given.items():
        section = _Section(value, f"{file}: recipes.{name}", (
            "job", "dataset_column", "datasets", "connection"))
        datasets = section.value.get("datasets", [])
        if not isinstance(datasets, list) or not all(
                isinstance(one, str) for one in datasets):
            section.refuse("datasets", "expected a list of texts")
        connection = section.text("connection", "")
        if connection and connection not in connections:
            section.refuse("connection", f"'{connection}' is unknown: "
                           + did_you_mean(connection, list(connections)))
        job = file.parent / section.text("job")
        if not job.is_file():
            section.refuse("job", f"{job} is not a file")
        recipes[name] = Recipe(
            name, job, section.text("dataset_column", ""), tuple(datasets),
            connections.get(connection, ""))
    return recipes


def _connections(given: Any, file: str) -> dict[str, str]:
    section = _Section(given, f"{file}: connections",
                       tuple(given) if isinstance(given, dict) else ())
    for name in section.value:
        uri = section.text(name)
        if re.search(r"password\s*=|://[^/@]*:[^/@]*@", uri):
            section.refuse(name, "the connection holds a password: keep it in "
                           "~/.pgpass or PGPASSWORD")
    return dict(section.value)


def count_gpus() -> int:
    """NVIDIA GPUs of this machine that processes may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([one for one in visible.split(",") if one.strip()
                    and not one.strip().startswith("-")])
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0
