"""Loaders: of a job file, and in torch's words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _engine
from ._loader.base import BaseLoader
from ._loader.ranks import Agree, Ranks
from ._rows.own_rows import opened_by_path, own_rows
from ._rows.table_fields import fields_of_source
from .arguments import ELSEWHERE, checked, tell_no_meaning
from .job_sections import (Fields, Settings, dumped, files_in_turn, given,
                           job_of_file, loader_section, mixed_sources,
                           section_of_source, sections_of_rows, sets_of)
from .printing import printable

if TYPE_CHECKING:
    from ._rows.callables import Source
    from ._rows.sources import PositionSource

__all__ = ["BaseLoader", "Loader", "open"]


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
        if (opened := opened_by_path(source)) is not None:
            source = opened[0]
        mixed = mixed_sources(source)
        rows, rules, self._left_out = (
            own_rows(source, fields, drawn_by, about, keep=keep)
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
            job = job_of_file(job)
        rows = None
        if (opened := opened_by_path(job.get("source"))) is not None:
            job = {"fields": opened[1], **job, "source": opened[0]}
        if not isinstance(job.get("source"), (Mapping, str, type(None))):
            chosen = {**job.get("loader", {}), **{
                name.removeprefix("loader__"): value
                for name, value in overrides.items()}}
            rows, rules, _ = own_rows(
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
