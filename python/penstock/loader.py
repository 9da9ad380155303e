"""Loaders: of a job file, and in torch's words."""

from __future__ import annotations

import atexit
import builtins
import json
import operator
import os
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence,
                    TextIO, cast)

from . import _engine
from ._rows import hdf5, zarr
from .arguments import ELSEWHERE, checked, tell_no_meaning
from ._rows.array_fields import Opened
from .errors import RequestError, refused
from .explanation import Explanation
from ._loader.formats import Formatter, formatter
from .job_sections import (Fields, Settings, dumped, given, loader_section,
                           files_in_turn, mixed_sources, refuse_about,
                           section_of_source,
                           sections_of_rows, sets_of, without_comments)
from .notebook import loader_html
from .page import with_page
from .printing import printable
from .progress import Screen, Shown, shown
from ._loader.ranks import Agree, Ranks
from ._rows.table_fields import fields_of_source
from ._watch.timing import Step, Watch

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._rows.callables import Source
    from ._rows.sources import PositionSource

# Iterations keep the engines of loaders that are gone.
_open: weakref.WeakSet[_engine.Engine] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread of ours outlives Python, nor calls it later."""
    failure: BaseException | None = None
    try:
        for end in _ends():
            try:
                end()
            except BaseException as error:  # Ctrl-C, or a handler of the log
                failure = failure or error
    finally:
        _engine.end_of_calls()
    _engine.write_messages()
    if failure is not None:
        raise failure


def _ends() -> Iterator[Callable[[], None]]:
    yield _engine.end_of_python  # lets a thread in that has just opened one
    for engine in list(_open):
        yield engine.close


class BaseLoader:
    """Batches of a data set, in an order that is a pure function of its
    settings; what `open()` returns and `Loader` is.

    One iteration at a time: a new one ends the one before. Calls from several
    threads take turns. Waiting lets other threads run and Ctrl-C ends it.
    """

    def __init__(self, job: Settings, sets: Sequence[str], side: str,
                 ranks: Ranks, rows: _engine.Rows | None = None,
                 format: str | None = None) -> None:
        self.rank, self.world = ranks.rank, ranks.world
        self._format: Formatter | None = formatter(format, job, rows)
        self._formatted = None if self._format is None else \
            self._format.format
        self._engine = _engine.open(dumped(job), list(sets), side, self.rank,
                                    self.world, rows, ranks.can_agree)
        _open.add(self._engine)
        ranks.compare(self._engine)
        self._maps = 0
        self._watch = Watch(self._engine)

    def __len__(self) -> int:
        """Steps of an epoch, the same on every rank."""
        return self._engine.steps_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        """One epoch. After a `break` the next one begins with the next epoch;
        after `load_state_dict()` it continues where that was saved."""
        return self._engine.epoch(self._watch, self._formatted)

    def batches(self, steps: int | None = None) -> Iterator[Any]:
        """`steps` batches, or batches without end, across epochs, from
        wherever the last iteration stopped."""
        if steps is not None and steps < 0:
            raise refused("loader.steps", "cannot make batches", "steps",
                          f"found {steps}", "give 0 or more, or None")
        return self._engine.batches(steps, self._watch, self._formatted)

    def into(self, tensors: Mapping[str, Any],
             steps: int | None = None) -> Iterator[int]:
        """The rest of the epoch, or `steps` batches, each written into
        `tensors`, at the same addresses each time, for loops that own their
        buffers. Gives the rows of each batch, which are the first rows of the
        tensors, once they are written.

        `tensors` holds, under the name of each tensor of a batch, a contiguous
        array of its dtype in host memory that can be written to (of numpy, or a
        torch tensor), with room for the batch's rows. Samples that differ in
        length have no fixed shape: `loader.next_into`. With `workers=0` rows
        are written straight there, else they are copied.
        """
        return cast("Iterator[int]",
                    self._engine.into(dict(tensors), steps, self._watch))

    def peek(self) -> Any:
        """The next batch, which stays the next."""
        batch = self._engine.peek()
        return batch if self._formatted is None else self._formatted(batch)

    def map(self, fn: Callable[..., Mapping[str, Any]], *,
            batched: bool = False, version: object = "") -> Self:
        """Maps the rows from the next batch on, on the loader's threads. An
        iteration that is running ends (`loader.iteration`): begin a new one.

        `fn` takes a row, a mapping of names to arrays (those of a batch
        without their first dimension), or with `batched` a whole batch of this
        rank: its rows without padding and without those that are masked. It returns such a mapping, of the same names, types and shapes
        each time. What it is given it may keep and change. If it has an
        argument `rng`, it gets a numpy Generator: the same numbers for a row
        (a batch) in an epoch, whatever the workers. A second `map` maps what
        the first returns. Python's lock lets one thread at a time run Python;
        numpy lets it go in larger operations.

        `fn` is tried on the next batch here. The text of its source is part of
        the state's digest; `version` names what that does not show (a model it
        uses, a table). Raises TransformError, with what `fn` raised as its
        cause; later, in the turn of the batch. Returns the loader.
        """
        from ._rows.callables import Map, source_text

        batch = self._engine.peek()
        found = batch.host()
        arrays = {name: found[name] for name in self._engine.row_names()}
        masked = {bad["row"] for bad in batch.rejected
                  if bad["substitute"] is None}
        real = [at for at, sample in enumerate(batch.ids.tolist())
                if sample >= 0 and at not in masked]
        if not real:
            raise refused("map.no_rows", "cannot map the rows",
                          f"rank {self.rank} of {self.world}",
                          "the rank has no row in the next batch to try the "
                          "function on",
                          "map the loader at the start of an epoch")
        piece = Map(fn, batched, list(arrays), self._engine.seed,
                    self._maps + 1, self.rank)
        piece.learn({name: array[real] for name, array in arrays.items()},
                    batch.epoch, batch.step, int(batch.ids[real[0]]))
        self._engine.map(piece, piece.tensors,
                         f"{source_text(fn, version)} {batched}", batched)
        self._maps += 1
        if self._format is not None:
            self._format.forget()
        return self

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is of this epoch. Not needed: every epoch has an
        order of its own anyway. A saved position within that epoch stays."""
        self._engine.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch begins, in at most 128 bytes of JSON. It counts
        batches that were handed out, not those prepared ahead."""
        return dict(json.loads(self._engine.state()))

    def load_state_dict(self, state: Settings) -> None:
        """Continues from there, at once, wherever that is. Ranks, workers,
        prefetch and cache may be others than before. Also takes the
        `state.json` of a run. Raises RequestError when rows, fields or the
        order are not the same."""
        self._engine.load_state(dumped(state))

    def progress(self, steps: int | None = None, *, epochs: int = 0,
                 file: TextIO | None = None) -> Iterator[Any]:
        """One epoch, or `batches(steps)`, with a line on standard error (or
        `file`) that says how it goes: redrawn four times a second on a
        terminal and in a notebook, a plain line every 30 s elsewhere. `epochs`,
        where there is a last one, is for the time that is left."""
        batches = iter(self) if steps is None else self.batches(steps)
        self._engine.begin_line(epochs, operator.length_hint(batches, -1))
        return Shown(shown(batches, self._engine.line, Screen(file)),
                     self._watch.explain)

    def shares(self) -> str:
        """Where the time of the steps went up to now, shortly: "AU 71 % <-
        data 22 % host 7 %". Cheap enough for every step: what the device has
        not ended yet is left out."""
        return self._engine.shares()

    def step(self) -> Step:
        """Marks a step for `explain()`: `with loader.step(): train(batch)`.
        Without it, all between two batches counts as the step."""
        return Step(self._watch)

    def stats(self) -> dict[str, Any]:
        """All numbers up to now, as in a run's report.json: `au`, `parts`,
        `samples_per_s`, `stages`, `verdict`, `plan`, `dataset`, `epochs`
        (the last 1,000)..."""
        return self._watch.stats()

    def explain(self) -> Explanation:
        """What limits the loop, by its measured numbers, and what to change."""
        return self._watch.explain()

    def report(self, path: str | os.PathLike[str] | None = None
               ) -> dict[str, Any]:
        """The numbers and the verdict of explain() as a dict. With `path` they
        are also written there as a page (HTML) like that of a run. Raises
        RequestError, file.write, where the page cannot be written."""
        return with_page(self.explain().report, path,
                         "a loop over a penstock.Loader")

    @property
    def statistics(self) -> dict[str, Any]:
        """What values were standardised with, as in a run's statistics.json:
        of each field, by its columns or keys, "mean" and "divisor" (and what
        else was counted). `tensor * divisor + mean` is in the column's units,
        where "standardize" is true, and expm1 of it where "log1p" is. Buckets
        have their "edges", places among the rows their "quantiles". Of several
        sources "sources" lists, by source, what is not the same in all. Empty
        for arrays and sources of your own.
        """
        found: Any = self._engine.statistics()
        return dict(found or {})

    def classes(self, field: str) -> list[Any]:
        """What the numbers of a category stand for, from 0 on: texts, integers
        or booleans. The last is None where the field has an unknown class, for
        values that are missing, too rare, or in no train row. As a target these
        have no truth: `ignore_index=len(loader.classes("y")) - 1` in a loss of
        torch, or `"unknown": "error"` in the field. Of a multi_hot field, its
        labels by their places. Of mixed sources they are the same in all.
        """
        found: Any = self._engine.classes(field)
        return list(found)

    @property
    def plan(self) -> dict[str, Any]:
        """Where the prepared rows live, and why there."""
        return dict(self.stats()["plan"])

    def release(self, nbytes: int | None = None) -> int:
        """Frees at least so many bytes of the device's memory that rows take,
        or all of it, and returns how many; 0 where the device keeps none. The
        rows are kept on the host from here on, and batches go on in the same
        order. Call it where a step runs short of memory:

            try:
                step(batch)
            except torch.OutOfMemoryError:
                if not loader.release():
                    raise
                step(batch)
        """
        if nbytes is not None and nbytes < 0:
            raise ValueError(f"nbytes is {nbytes}: pass the bytes to free, or "
                             "nothing for all of them")
        return self._engine.release_memory(
            (1 << 64) - 1 if nbytes is None else nbytes)

    def close(self) -> None:
        """Ends the threads and lets the memory go. Batches stay valid; the
        loader is of no more use. Called twice, it does nothing."""
        self._engine.close()

    def __repr__(self) -> str:
        name = "penstock.Loader"
        try:
            at = self.state_dict()
            return (f"<{name}: {len(self)} steps per epoch, next is step "
                    f"{at['step']} of epoch {at['epoch']}>")
        except RequestError as error:  # closed, or in a fork
            return f"<{name}: {error.why}>"

    def _repr_html_(self) -> str:
        try:
            return loader_html(repr(self), self.stats())
        except RequestError:
            return loader_html(repr(self), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class Loader(BaseLoader):
    """Batches of a source, in the words of torch's DataLoader.

    `source` is a URI ("sqlite:FILE#table", "postgresql://host/base#table",
    "parquet:FILE") or a file ("train.parquet", "train.csv"), a
    job's `source` section, a dict of arrays (numpy, torch or others, rows
    first, in host memory; used where they lie), a data frame of pandas or
    polars, a table of pyarrow, a Hugging Face data set, a relation of DuckDB or
    anything else with `__arrow_c_stream__`, a file, group or data set of h5py, a
    group or array of zarr, or a dict of such (opened by their path; Python reads
    nothing of them), or an object of your own: with
    `columns`, `len()` and `read(positions)`, whose columns the fields take
    (see penstock.sources.PositionSource), or with `size` and `read(ids)`,
    which gives the tensors themselves (see penstock.callables.Source). `fields`
    maps names to how they are made: a list of columns, one column, or a job's
    rule; a list of columns makes a field of each. Of arrays and of tensors of
    your own it names those that a batch holds (default: all). Of all others it
    may be left out: numbers then are fields in their own type, times seconds since
    1970, texts of at most 1,000 different values categories, lists arrays
    (padded to the longest of a batch, with NAME_lengths); of files and databases
    a million rows at most are read to find what columns hold. `repr()` shows
    these rules, and which columns they leave out. `batch_size`
    counts the rows of one rank. `split` is a job's section of that name, and
    `side` which part of it is read.

    `num_workers` are threads (None: from the processors that we may use; 0:
    all on the caller's thread); they never change a batch. `prefetch_factor`
    batches per worker (without `num_workers`, in all) are made ahead. `cache`
    is "auto", "device", "pinned", "ram", "disk" or "none", or budgets,
    {"device_gib": 4, "ram_gib": 16}; "disk" keeps prepared rows in a file from
    run to run. `order` is "exact", or {"paged": {"page": 4096, "window": 16}}:
    pages of rows are shuffled, then the rows of each 16 pages.

    A list of files of one kind is all of their rows, those of one file after
    those of the other. Any other list is mixed: of files, URIs and `source`
    sections, or of mappings {"source": one of these, "weight": 1, "fields":
    ..., "split": ...}, of which all but the source may be left out. Training
    takes rows of each in proportion to its weight; `batch["source"]` says which
    one a row came from. `exhausted` is "stop" (an epoch ends before a source
    would begin again) or "repeat" (once each was used up); with it a list of
    files is mixed, too.

    `key`, `where`, `query` and `on_bad` are those of a job's `source` section:
    the column (or columns) that identifies a row, a condition in SQL, a query
    in place of a table, and what becomes of rows that cannot be used, "stop"
    or "skip". Of tables in memory there are `where` and `on_bad`.

    `weights` names a column of numbers, in proportion to which training draws
    rows, with replacement, as many an epoch as there are rows (of arrays it
    may be an array itself); `balance` names one of which it draws each value
    equally often. Both shuffle. Without `fields`, `dtypes` is "float32", which
    the columns of a table that hold numbers with a fraction become, or "keep".
    `limit` uses so many rows of each side, or a
    share such as "10%".

    `rank` and `world` are those of torch's process group where there is one, else RANK and WORLD_SIZE. All ranks must read the same rows:
    they compare them through that group, or by `agree`, a function from the
    bytes of one rank to a list of those of all (`MPI.COMM_WORLD.allgather`);
    every rank opens the same loaders, in the same order. Without both, the job
    names its rows (`source.fingerprint`).

    `format` is "torch", "numpy" or "jax": batches then hold tensors, or arrays,
    and `x, y = batch` unpacks the fields in order. Masks, lengths,
    `cu_seqlens`, `weight` and `source` are asked for by name. Without it a
    batch holds fields, which each of the three can take (`batch.torch()`).

    Raises RequestError for settings, SourceError for the source,
    TransformError for rows that are not usable, OutOfMemory for a `cache` that
    does not fit, DeviceError for a `device` that is not there.
    """

    @checked(ELSEWHERE)
    def __init__(self, source: str | os.PathLike[str] | Settings | Source
                 | PositionSource | object,
                 fields: Fields | None = None,
                 batch_size: int = 1, shuffle: bool = False, *,
                 num_workers: int | None = None,
                 prefetch_factor: int | None = None,
                 drop_last: bool = False, seed: int = 0,
                 split: float | Settings | None = None, side: str = "train",
                 rank: int | None = None, world: int | None = None,
                 agree: Agree | None = None,
                 device: str | Settings = "auto",
                 cache: str | Settings = "auto",
                 order: str | Settings = "exact",
                 weights: object = None, balance: str | None = None,
                 limit: int | str | None = None,
                 exhausted: str | None = None, dtypes: str = "float32",
                 key: str | Sequence[str] | None = None,
                 where: str | None = None, query: str | None = None,
                 on_bad: str | None = None,
                 pin_memory: bool | None = None, pin_memory_device: str = "",
                 persistent_workers: bool | None = None, timeout: float = 0,
                 multiprocessing_context: object = None,
                 in_order: bool = True,
                 format: str | None = None) -> None:
        tell_no_meaning({"pin_memory": pin_memory,
                         "pin_memory_device": pin_memory_device,
                         "persistent_workers": persistent_workers,
                         "timeout": timeout, "multiprocessing_context":
                         multiprocessing_context, "in_order": not in_order})
        ranks = Ranks(rank, world, agree)
        with ranks.opening():
            loading = loader_section(
                batch_size=batch_size, world=ranks.world, shuffle=shuffle,
                drop_last=drop_last, seed=seed, cache=cache, order=order,
                num_workers=num_workers, prefetch_factor=prefetch_factor,
                weights=weights, balance=balance, limit=limit,
                exhausted=exhausted)
            job: dict[str, Any] = {"loader": loading, "device": device,
                                   **given(split=split)}
            sections, rows = self._sections(
                files_in_turn(source) if exhausted is None else source,
                fields, balance if weights is None else weights,
                given(key=key, where=where, query=query, on_bad=on_bad),
                _keeps(dtypes, fields))
            if not isinstance(weights, (str, type(None))) and (
                    rows is None or rows.has_fields):
                raise TypeError(f"weights is a {type(weights).__name__}: "
                                "expected the name of a column; an array goes "
                                "with a dict of arrays")
            super().__init__({**job, **sections}, (), side, ranks, rows,
                             format)

    def _sections(self, source: object, fields: Fields | None,
                  drawn_by: object, about: Settings, keep: bool
                  ) -> tuple[dict[str, Any], _engine.Rows | None]:
        """The job's sections about its rows, and rows that are in memory; the
        fields that columns make by themselves are kept for repr()."""
        if (opened := _opened_by_path(source)) is not None:
            source = opened[0]
        mixed = mixed_sources(source)
        rows, rules, self._left_out = (
            _own_rows(source, fields, drawn_by, about, keep=keep)
            if mixed is None else
            (None, None, []))
        self._seen = ""
        if opened is not None and fields is None:
            rules, self._left_out = opened[1:]
        if rows is not None:  # those of `where` are selected
            about = {name: said for name, said in about.items()
                     if name != "where"}
        elif mixed is None and rules is None and fields is None:
            source = section_of_source(source, about)
            rules, self._left_out, self._seen = fields_of_source(
                source, dumped(source), keep)
        self._rules = rules
        return sections_of_rows(source, mixed, rows, rules or fields,
                                about), rows

    def __repr__(self) -> str:
        """With the fields that were made of columns by themselves, the columns
        that were left out, and which rows were read to find that."""
        text = super().__repr__()
        rules = getattr(self, "_rules", None) or {}  # unset while it is opened
        if not rules:
            return text
        lines = [f"  {name}: {dumped(rule)}" for name, rule in rules.items()]
        lines += [f"  left out: {why}" for why in self._left_out]
        if self._seen:
            lines.append(f"  types from {self._seen}; set 'fields' to choose "
                         "yourself")
        return printable("\n".join([text, *lines]))


def open(job: str | os.PathLike[str] | Settings, *, side: str = "train",
         rank: int | None = None, world: int | None = None,
         agree: Agree | None = None, format: str | None = None,
         **overrides: Any) -> BaseLoader:
    """The batches of a job: a file, or the same as a dict, whose "source" may
    be an object of your own as for `Loader`.

    An override names a setting with "__" for the dot:
    `open("job.json", loader__batch_size=64, device="cpu")`. As in the file,
    `batch_size` is global: ranks share it. `side` is "train", "val" or "test";
    rows of "val" and "test" come in the order of their keys. `train.epochs`
    does not end an iteration: you do. `rank`, `world`, `agree` and `format` are
    as for `Loader`.
    """
    sets = sets_of("open", overrides,
                   ("side", "rank", "world", "agree", "format"))
    ranks = Ranks(rank, world, agree)
    with ranks.opening():
        if not isinstance(job, Mapping):
            job = _read(job)
        rows = None
        if (opened := _opened_by_path(job.get("source"))) is not None:
            job = {"fields": opened[1], **job, "source": opened[0]}
        if not isinstance(job.get("source"), (Mapping, str, type(None))):
            chosen = {**job.get("loader", {}), **{
                name.removeprefix("loader__"): value
                for name, value in overrides.items()}}
            rows, rules, _ = _own_rows(
                job["source"], job.get("fields"),
                next((chosen[name] for name in ("weights", "balance")
                      if name in chosen), None), {},
                ({name: section for name, section in job.items()
                  if name not in ("source", "fields")}, overrides))
            own = {"source"} if rows and rows.has_fields else {
                "source", "fields"}
            job = {name: section for name, section in job.items()
                   if name not in own}
            if rules:
                job["fields"] = rules
        return BaseLoader(job, sets, side, ranks, rows, format)


def _keeps(dtypes: object, fields: object) -> bool:
    """Whether columns without `fields` keep the width of their numbers."""
    if dtypes not in ("float32", "keep"):
        raise TypeError(f"dtypes is {dtypes!r}: expected \"float32\" or "
                        "\"keep\"")
    if dtypes == "keep" and fields is not None:
        raise TypeError("dtypes is for loaders without fields: each field "
                        "sets its own, "
                        "{\"column\": \"x\", \"dtype\": \"float64\"}")
    return dtypes == "keep"


def _opened_by_path(source: object) -> Opened | None:
    """What arrays of h5py and zarr are as a job's section; None for others."""
    return hdf5.section_of(source) or zarr.section_of(source)


def _own_rows(source: object, fields: Fields | None, drawn_by: object,
              about: Settings, naming: object = (), keep: bool = False
              ) -> tuple[
        _engine.Rows | None, dict[str, Any] | None, list[str]]:
    """Rows of arrays, a table or an object with `read`, None for a job's
    source; the rules of the fields where a table makes them by itself; and the
    columns that these leave out. `naming`: settings beside `fields` that may
    name columns."""
    if isinstance(source, (str, os.PathLike)):
        return None, None, []
    from ._rows import callables, sources, tables

    tables.refuse_near(source)
    if isinstance(source, sources.PositionSource):
        refuse_about(about, source, ["on_bad"], "leave them out of its length")
        rules, left_out = (sources.fields_of(source) if fields is None
                           else (None, []))
        return sources.rows_of(source), rules, left_out
    if isinstance(source, Mapping):
        if isinstance(source.get("kind"), str):
            return None, None, []
        refuse_about(about, source, (), "select the rows beforehand, "
                     "{name: array[mask] for name, array in arrays.items()}")
        return callables.rows_of_arrays(source, fields, drawn_by), None, []
    if isinstance(source, callables.Source):
        refuse_about(about, source, (), "leave them out of its size")
        return callables.rows_of_source(source, fields), None, []
    if (found := tables.rows_of_table(source, fields, drawn_by, about,
                                      naming, keep)) is not None:
        refuse_about(about, source, ["where", "on_bad"], "")
        return found
    raise TypeError(f"Loader() cannot read a {type(source).__name__}: expected "
                    "a URI, a job's source section, a data frame or table, a "
                    "dict of arrays, or an object with 'columns', a length and "
                    "'read(positions)', or with 'size' and 'read(ids)'; a "
                    "torch Dataset goes to penstock.DataLoader")


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isfile(name):
        raise refused("file.read", "cannot read the job file", name,
                      "it is not a file", "name a readable file")
    try:
        with builtins.open(name, encoding="utf-8") as file:
            found = json.loads(without_comments(file.read()))
    except OSError as error:
        raise refused("file.read", "cannot read the job file", name,
                      error.strerror or str(error),
                      "name a readable file") from None
    except ValueError as error:
        raise refused("json.syntax", "cannot read the job file", name,
                      str(error), "correct the JSON at this place") from None
    if not isinstance(found, dict):
        raise refused("settings.type", "cannot use the job file", name,
                      "the file is not a JSON object", "write {\"source\": ...}")
    return found
