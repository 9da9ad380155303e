"""Filling the stores of jobs ahead of training, as `penstock prepare` does.

    import penstock

    found = penstock.prepare("job.json", export=("hf", "tokens"))
    print(found["documents"], found["tokens"], found["packing"]["efficiency"])
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from typing import Any, Mapping, Union

from . import _engine
from .errors import refused
from .job_sections import dumped, sets_of
from .progress import NOWHERE, Listener

__all__ = ["prepare"]

Job = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def prepare(job: Job, *more: Job, export: tuple[str, Any] | None = None,
            part: tuple[int, int] | None = None, commit: bool = False,
            progress: bool = True, **overrides: Any) -> Any:
    """Reads the rows of jobs, files or the same as dicts, and keeps them where
    their loaders and runs find them.

    Gives a dict as `penstock prepare --json` does (documents, tokens, packing,
    statistics, where the store is, ...); of several jobs a list of such.
    `export` is a format (hf, megatron, datatrove, llmc or raw) and a folder: the
    tokens of one job are written there, too. `part` is (K, N): only part K of N
    of the rows is scanned, on any machine that sees the source and the folder of
    stores; with `commit` the store is made of parts that are all there
    (`penstock.ray.prepare` does both). `progress` shows a line on standard
    error.
    An override names a setting with "__" for the dot: `loader__cache_dir="d"`.

    Ctrl-C and SIGTERM end it and then do what they would have done; called
    again it continues where it was. Raises what reading and preparing raise.
    """
    if export is not None and more:
        raise refused("cli.arguments", "cannot export the tokens of several "
                      "jobs", "export", "all would be written to the same "
                      "files", "export one job after the other")
    if part is not None and (commit or export is not None):
        raise refused("cli.arguments", "cannot prepare a part of the rows",
                      "part", "a part is not the store that `commit` makes and "
                      "`export` writes", "prepare all parts, then call "
                      "prepare(job, commit=True)")
    sets = sets_of("prepare", overrides,
                   ("export", "part", "commit", "progress"))
    asked: dict[str, Any] = {"commit": commit} if part is None else {
        "part": part[0], "of": part[1]}
    found = [_prepared(one, sets, export, progress, asked)
             for one in (job, *more)]
    return found if more else found[0]


def _prepared(job: Job, sets: list[str], export: tuple[str, Any] | None,
              progress: bool, asked: dict[str, Any]) -> Any:
    document = job if isinstance(job, Mapping) else None
    path = "" if document is not None else os.fspath(job)  # type: ignore
    form, folder = ("", "") if export is None else export
    main = threading.current_thread() is threading.main_thread()
    listener = Listener(None if progress else NOWHERE)
    try:
        found, stopped_by = _engine.prepare(
            path, dumped(document) if document is not None else "", sets, form,
            os.fspath(folder), listener,
            [signal.SIGINT, signal.SIGTERM] if main else [], **asked)
    finally:
        listener.end()
    if stopped_by:
        logging.getLogger("penstock").warning(
            "preparing was interrupted: call it again to continue")
        signal.raise_signal(stopped_by)
    return json.loads(found) if found else None
