"""Loaders: of a job file, and in torch's words."""

from __future__ import annotations

import atexit
import builtins
import json
import operator
import os
import sys
import weakref
from typing import Any, Iterator, Mapping, Sequence, Union

from . import _engine
from .arguments import ELSEWHERE, checked, did_you_mean, tell_no_meaning
from .errors import refused
from .explanation import Explanation

Settings = Mapping[str, Any]
Fields = Union[Mapping[str, Any], Sequence[str]]

_SECTIONS = ("source", "fields", "split", "loader", "device", "model", "train",
             "output")
_LOADING = ("batch_size", "seed", "shuffle", "workers", "prefetch", "cache",
            "read", "tail")

_open: weakref.WeakSet[BaseLoader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread of ours outlives Python."""
    _engine.end_of_python()
    for loader in list(_open):
        loader.close()
    _engine.tell_messages()


class Step:
    """The time of one step: `with loader.step(): ...`."""

    def __init__(self, engine: _engine.Engine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine.begin_step()

    def __exit__(self, *raised: object) -> None:
        self._engine.end_step()


class BaseLoader:
    """Batches of a data set, in an order that is a pure function of its
    settings; what `open()` returns and `Loader` is.

    One iteration at a time: a new one ends the one before. Calls from several
    threads take turns. Waiting lets other threads run and hears Ctrl-C.
    """

    def __init__(self, job: Settings, sets: Sequence[str], side: str,
                 rank: int | None, world: int | None) -> None:
        self.rank, self.world = _place(rank, world)
        self._engine = _engine.open(_dumped(job), list(sets), side, self.rank,
                                    self.world)
        _open.add(self)

    def __len__(self) -> int:
        """Steps of an epoch, the same on every rank."""
        return self._engine.steps_per_epoch()

    def __iter__(self) -> Iterator[_engine.Batch]:
        """One epoch. After a `break` the next one begins with the next epoch;
        after `load_state_dict()` it goes on where that was saved."""
        return self._engine.epoch()

    def batches(self, steps: int | None = None) -> Iterator[_engine.Batch]:
        """`steps` batches, or batches without end, across epochs, from
        wherever the last iteration stopped."""
        if steps is not None and steps < 0:
            raise refused("loader.steps", "cannot make batches", "steps",
                          f"found {steps}", "give 0 or more, or None")
        return self._engine.batches(steps)

    def peek(self) -> _engine.Batch:
        """The next batch, which stays the next."""
        return self._engine.peek()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is of this epoch. Not needed: every epoch has an
        order of its own anyway. A saved position within that epoch stays."""
        self._engine.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch begins, in at most 128 bytes of JSON. It counts
        batches that were handed out, not those prepared ahead."""
        return dict(json.loads(self._engine.state()))

    def load_state_dict(self, state: Settings) -> None:
        """Goes on from there, at once, wherever that is. Ranks, workers,
        prefetch and cache may be others than before. Also takes the
        `state.json` of a run. Raises RequestError when rows, fields or the
        order are not the same."""
        self._engine.go_on(_dumped(state))

    def step(self) -> Step:
        """Marks a step for `explain()`: `with loader.step(): train(batch)`.
        Without it, all between two batches counts as the step."""
        return Step(self._engine)

    def stats(self) -> dict[str, Any]:
        """All numbers up to now, as in a run's report.json: `au`, `parts`,
        `samples_per_s`, `stages`, `verdict`, `plan`, `dataset`..."""
        return dict(json.loads(self._engine.report()))

    def explain(self) -> Explanation:
        """What limits the loop, by its measured numbers, and what to change."""
        return Explanation(self.stats())

    @property
    def plan(self) -> dict[str, Any]:
        """Where the prepared rows live, and why there."""
        return dict(self.stats()["plan"])

    def close(self) -> None:
        """Ends the threads and lets the memory go. Batches stay valid; the
        loader is of no more use. Called twice, it does nothing."""
        self._engine.close()

    def __enter__(self) -> BaseLoader:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class Loader(BaseLoader):
    """Batches of a source, in the words of torch's DataLoader.

    `source` is a URI ("sqlite:FILE#table", "postgresql://host/base#table") or
    a job's `source` section. `fields` maps names to how they are made: a list
    of columns, one column, or a job's rule; a list of columns makes a field of
    each. `batch_size` counts the rows of one rank. `split` is a job's section
    of that name, and `side` which part of it is read.

    `num_workers` are threads (None: from the processors that we may use; 0:
    all on the caller's thread); they never change a batch. `prefetch_factor`
    batches per worker (without `num_workers`, in all) are made ahead. `cache`
    is "auto", "device", "ram" or "none". `rank` and `world` are those of
    torch's process group where there is one, else RANK and WORLD_SIZE.

    Raises RequestError for settings, SourceError for the source,
    TransformError for rows that are not usable, OutOfMemory for a `cache` that
    does not fit, DeviceError for a `device` that is not there.
    """

    @checked(ELSEWHERE)
    def __init__(self, source: str | Settings, fields: Fields | None = None,
                 batch_size: int = 1, shuffle: bool = False, *,
                 num_workers: int | None = None,
                 prefetch_factor: int | None = None,
                 drop_last: bool = False, seed: int = 0,
                 split: Settings | None = None, side: str = "train",
                 rank: int | None = None, world: int | None = None,
                 device: str | Settings = "auto", cache: str = "auto",
                 pin_memory: bool | None = None, pin_memory_device: str = "",
                 persistent_workers: bool | None = None, timeout: float = 0,
                 multiprocessing_context: object = None,
                 in_order: bool = True) -> None:
        tell_no_meaning({"pin_memory": pin_memory,
                         "pin_memory_device": pin_memory_device,
                         "persistent_workers": persistent_workers,
                         "timeout": timeout, "multiprocessing_context":
                         multiprocessing_context, "in_order": not in_order})
        rank, world = _place(rank, world)
        try:
            batch_size = operator.index(batch_size)
        except TypeError:
            raise TypeError(f"batch_size is {batch_size!r}, expected an "
                            "integer: the rows of a batch of one rank"
                            ) from None
        loading: dict[str, Any] = {
            "batch_size": batch_size * world, "seed": seed, "shuffle": shuffle,
            "cache": cache, "tail": "drop" if drop_last else "exact"}
        ahead = 2 if prefetch_factor is None else prefetch_factor
        if num_workers is not None:
            loading["workers"] = num_workers
            ahead *= max(1, num_workers)
        loading["prefetch"] = ahead
        if isinstance(source, str):
            source = json.loads(_engine.source_section(source))
        job: dict[str, Any] = {"source": source, "fields": _rules(fields),
                               "loader": loading, "device": device}
        if split is not None:
            job["split"] = split
        super().__init__(job, (), side, rank, world)

    def __enter__(self) -> Loader:
        return self


def open(job: str | os.PathLike[str] | Settings, *, side: str = "train",
         rank: int | None = None, world: int | None = None,
         **overrides: Any) -> BaseLoader:
    """The batches of a job: a file, or the same as a dict.

    An override names a setting with "__" for the dot:
    `open("job.json", loader__batch_size=64, device="cpu")`. As in the file,
    `batch_size` is global: ranks share it. `side` is "train" or "val"; rows of
    "val" come in the order of their keys. `train.epochs` does not end an
    iteration: you do.
    """
    for name in overrides:
        section = name.split("__")[0]
        if section in _LOADING:
            raise TypeError(f"open() has no argument '{name}': did you mean "
                            f"'loader__{name}'?")
        if section not in _SECTIONS:
            raise TypeError(
                f"open() has no argument '{name}': " + did_you_mean(
                    section, (*_SECTIONS, "side", "rank", "world")))
    sets = [name.replace("__", ".") + "=" + _dumped(value)
            for name, value in overrides.items()]
    if not isinstance(job, Mapping):
        job = _read(job)
    return BaseLoader(job, sets, side, rank, world)


def _place(rank: int | None, world: int | None) -> tuple[int, int]:
    """Rank and world as they were given, else those of torch's process group,
    else as torchrun says."""
    group = sys.modules.get("torch.distributed")
    if group is not None and group.is_available() and group.is_initialized():
        rank = group.get_rank() if rank is None else rank
        world = group.get_world_size() if world is None else world
    if world is None:
        world = _number_in("WORLD_SIZE", 1)
    if rank is None:
        if world > 1 and "RANK" not in os.environ:
            raise refused("loader.rank", "cannot tell the rank", "RANK",
                          f"there are {world} ranks, but RANK is not set",
                          "give rank= and world=, or open the loader after "
                          "torch.distributed.init_process_group()")
        rank = _number_in("RANK", 0)
    return rank, world


def _number_in(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, str(otherwise))
    if not text.isdecimal():
        raise refused("loader.rank", "cannot tell the rank", variable,
                      f"found '{text}'", f"set {variable} to a number")
    return int(text)


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    try:
        with builtins.open(name, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise refused("file.read", "cannot read the job file", name,
                      error.strerror or str(error),
                      "name a file that can be read") from None
    except ValueError as error:
        raise refused("json.syntax", "cannot read the job file", name,
                      str(error), "mend the JSON at that place") from None
    if not isinstance(found, dict):
        raise refused("settings.type", "cannot use the job file", name,
                      "it is no object", "write {\"source\": ...}")
    return found


def _rules(fields: Fields | None) -> Any:
    """Fields as a job file writes them.

    >>> _rules(["a", "b"])
    {'a': {'columns': ['a']}, 'b': {'columns': ['b']}}
    >>> _rules({"x": ["a", "b"], "y": "c", "z": {"columns": ["d"]}})["x"]
    {'columns': ['a', 'b']}
    """
    if fields is None:
        raise TypeError("Loader() needs 'fields': names of columns, or "
                        "{\"x\": [\"column\", ...], ...}")
    if not isinstance(fields, Mapping):
        if isinstance(fields, str):
            fields = [fields]
        return {name: {"columns": [name]} for name in fields}
    rules: dict[str, Any] = {}
    for name, rule in fields.items():
        if isinstance(rule, str):
            rule = [rule]
        rules[name] = rule if isinstance(rule, Mapping) else {
            "columns": list(rule)}
    return rules


def _dumped(value: object) -> str:
    """JSON of settings, in which paths and numpy's integers may stand too.

    >>> _dumped({"path": __import__("pathlib").PurePosixPath("a/b")})
    '{"path": "a/b"}'
    """
    def other(thing: Any) -> object:
        if hasattr(thing, "__index__"):
            return operator.index(thing)
        if isinstance(thing, os.PathLike):
            return os.fspath(thing)
        if isinstance(thing, Mapping):
            return dict(thing)
        raise TypeError(f"{thing!r} cannot stand in settings: expected what "
                        "JSON knows, or a path")

    return json.dumps(value, default=other)
