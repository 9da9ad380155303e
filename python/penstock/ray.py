"""Preparing the rows of a job on the workers of a Ray cluster.

    import penstock.ray

    found = penstock.ray.prepare("job.json", address="auto")
    print(found["store"])

The tasks scan parts of the rows, as `penstock prepare JOB --part K/N` does;
then this process makes the store of them. All nodes see the source and the
folder of stores (`loader.cache_dir`) under the same paths.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pathlib
import sys
from typing import Any, Mapping

from . import __version__, preparing
from .errors import SourceError, made, refused, said, worded
from .preparing import Job

__all__ = ["prepare"]

# More parts than processors: none waits long for the last of them.
_PARTS_OF_PROCESSOR = 2
_RETRIES = 3


def prepare(job: Job, address: str | None = None,
            out: str | os.PathLike[str] | None = None, *,
            parts: int | None = None, progress: bool = True,
            **overrides: Any) -> Any:
    """Reads the rows of a job on a Ray cluster, and keeps them in the store that
    its loaders and runs find. Its bytes are those that one process makes.

    `address` is that of the cluster, as ray.init() takes it; without it, the
    cluster that this process is connected to, else one of this machine. `out` is
    the folder of stores, which all nodes see (`loader.cache_dir`). `parts` is
    into how many tasks the rows are divided; by default two for each processor
    of the cluster. A task whose worker is lost is repeated elsewhere. An override
    names a setting with "__" for the dot.

    Gives what `penstock.prepare` gives, and "parts", what each task has scanned.
    Raises RequestError where Ray is not installed (ray.missing), and where a node
    lacks this package (ray.no_package) or has another version of it; and what
    preparing raises.
    """
    ray = _ray()
    document = _document(job)
    if out is not None:
        overrides["loader__cache_dir"] = os.path.abspath(os.fspath(out))
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=False,
                 logging_level=logging.WARNING)
    try:
        count = parts or max(1, _PARTS_OF_PROCESSOR * int(
            ray.cluster_resources().get("CPU", 1)))
        done = _scanned(ray, document, overrides, count)
    finally:
        if ours:
            ray.shutdown()
    found = preparing.prepare(document, commit=True, progress=progress,
                              **overrides)
    found["parts"] = done
    return found


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise refused("ray.missing", "cannot prepare on a cluster",
                      sys.executable, said(error),
                      "pip install ray, or prepare parts by "
                      "'penstock prepare JOB --part K/N'") from error


def _document(job: Job) -> Mapping[str, Any]:
    if isinstance(job, Mapping):
        return job
    document: Mapping[str, Any] = json.loads(pathlib.Path(job).read_text())
    return document


def _scanned(ray: Any, document: Mapping[str, Any],
             overrides: Mapping[str, Any], count: int) -> list[Any]:
    task = ray.remote(max_retries=_RETRIES, num_cpus=1)(_task())
    waiting = {task.remote(json.dumps(document), dict(overrides), part, count,
                           __version__, os.getcwd()): part
               for part in range(1, count + 1)}
    done: list[Any] = []
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            done.append(_answer(ray, ready[0], waiting.pop(ready[0]), count))
    except BaseException:
        for each in waiting:
            ray.cancel(each)
        raise
    return sorted(done, key=lambda one: int(one["part"]))


def _answer(ray: Any, ready: Any, part: int, count: int) -> Any:
    try:
        answer = json.loads(ray.get(ready))
    except ray.exceptions.RayError as error:
        raise worded(
            SourceError, "ray.task", "a task on the cluster has failed",
            f"part {part} of {count}", said(error).split("\n")[0],
            "look at the logs of Ray; called again, prepare() continues with "
            "the parts that are missing") from error
    if "error" in answer:
        told = answer["error"]
        raise made(told["kind"], told["text"], told["code"], told["what"],
                   told["where"], told["why"], told["next"])
    return answer


def _task() -> Any:
    """What runs on a worker. A function within a function, so that Ray ships
    its code, and a node without this package can say so."""

    def part_of_rows(document: str, overrides: dict[str, Any], part: int,
                     count: int, version: str, folder: str) -> str:
        import json
        import os
        import socket
        import sys

        def refused(code: str, why: str, next: str) -> str:
            where = f"{socket.gethostname()}, {sys.executable}"
            what = "cannot prepare on a node of the cluster"
            return json.dumps({"error": {
                "kind": "request", "code": code, "what": what, "where": where,
                "why": why, "next": next,
                "text": f"{what} at {where}: {why}; {next}"}})

        try:
            import penstock
            from penstock.errors import Error
        except ImportError as error:
            return refused("ray.no_package", f"the package cannot be imported: "
                           f"{error}", f"pip install penstock=={version} on "
                           "all nodes, or name it in the cluster's runtime_env")
        if penstock.__version__ != version:
            return refused("ray.other_version", "its penstock is version "
                           f"{penstock.__version__}, this one {version}",
                           f"pip install penstock=={version} on all nodes")
        try:
            os.chdir(folder)  # relative paths of the job
        except OSError:
            pass  # the error of the source says what is missing
        try:
            return json.dumps(penstock.prepare(
                json.loads(document), part=(part, count), progress=False,
                **overrides))
        except Error as error:
            return json.dumps({"error": {
                "kind": error.kind, "code": error.code, "text": str(error),
                "what": error.what, "where": error.where, "why": error.why,
                "next": error.next}})

    return part_of_rows
