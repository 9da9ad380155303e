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
    """Batches of a table, files or arrays, with the arguments of torch's
    DataLoader.

        loader = penstock.Loader("train.csv", {"x": ["a", "b"], "y": "label"},
                                 batch_size=256, shuffle=True, format="torch")

    What is read:

    source      a path, a text, a dict or an object that has the rows. A file
                or list of files ("train.parquet"), a URI ("sqlite:FILE#table",
                "postgresql://host/base#table"), or a job's `source` section; a
                dict of arrays in host memory (numpy, torch, JAX), used where
                they are; a data frame of pandas or polars, a table of pyarrow,
                a Hugging Face data set, or another object with
                `__arrow_c_stream__`; a file, group or data set of h5py, or a
                group or array of zarr, which native threads read; or an object
                of your own (penstock.sources.PositionSource,
                penstock.callables.Source). Other lists are mixed: entries are
                sources, or {"source": ..., "weight": 3, "fields": ...}.
    fields      dict or list: how columns become the tensors of a batch, by
                name. A column ("label"), a list of columns (["a", "b"], one
                float32 tensor [rows, 2]), or a job's rule, such as
                {"columns": ["a"], "standardize": True}. A list of names makes a
                field of each. Default: a field of each column that can be one,
                of each array otherwise; `print(loader)` shows them, and what is
                left out. To find them, at most a million rows of a file are
                read.
    key         str or list of str: the column, or columns, that identify a row,
                such as "id". Default: the table's primary key, else the row's
                position.
    where       str: a condition in SQL that selects rows, such as
                "x > 0 AND kind = 'a'". Default: all rows.
    query       str: a query in place of a table, such as "SELECT id, a FROM t
                ORDER BY id". Default: the table of the source.
    on_bad      "stop" or "skip": whether a row that cannot be used is an error,
                or left out and counted. Default: "stop".
    dtypes      "float32" or "keep": without `fields`, the type of columns of
                fractions, or their own. Default: "float32".
    split       float or dict: how rows are divided, by a hash of their keys.
                The share that is trained on, such as 0.9, or a job's `split`
                section, such as {"val": 0.1, "test": 0.1, "by": "user"}.
                Default: all rows are trained on.
    side        "train", "val" or "test": the part of `split` that is read. Rows
                of the last two come in the order of their keys. Default:
                "train".
    limit       int or str: the rows of each side that are used, such as 10_000
                or "10%". Default: all.

    Which rows a batch holds:

    batch_size  int, rows: the size of a batch of this rank, such as 256.
                Default: 1.
    shuffle     bool: whether each epoch has a new order. Default: False.
    seed        int: all orders and random changes follow from it. The same
                seed, such as 7, gives the same batches. Default: 0.
    drop_last   bool: whether a shorter last batch is left out. Default: False.
    order       str or dict: "exact" shuffles over all rows; {"paged": {"page":
                4096, "window": 16}} shuffles pages of 4,096 rows, then the rows
                of each 16 pages, which reads disks in longer runs. Default:
                "exact".
    weights     str: a column of numbers, in proportion to which rows are drawn
                with replacement, such as "importance". Of arrays it may be an
                array. Default: each row once.
    balance     str: a column whose values are drawn equally often, such as
                "label". Default: each row once.
    exhausted   "stop" or "repeat": whether an epoch of mixed sources ends when
                the first is used up, or when all are. With it, a list of files
                is mixed, too. Default: "stop".

    How fast it is, and what it takes:

    num_workers      int, threads that prepare batches, such as 4. They never
                     change a batch; 0 works on the calling thread. Default: one
                     per processor, adapted while the loop runs.
    prefetch_factor  int, batches that each worker makes ahead (without
                     `num_workers`, in total), such as 4. Default: 2.
    device           str or dict: where batches are, such as "cpu", "cuda",
                     "cuda:1" or a job's `device` section. Default: "auto", a
                     GPU if there is one.
    cache            str or dict: where prepared rows are kept between epochs:
                     "auto", "device", "pinned", "ram", "disk" or "none", or
                     limits in GiB, such as {"device_gib": 4, "ram_gib": 16}.
                     "disk" keeps them for later runs, too. Default: "auto".

    Ranks, which must all read the same rows:

    rank   int: the number of this rank, from 0. Default: that of torch's
           process group, else the variable RANK, else 0.
    world  int: how many ranks there are, such as 8. Default: as for `rank`,
           from WORLD_SIZE, else 1.
    agree  function from the bytes of this rank to the list of those of all, by
           which ranks compare their rows, such as MPI.COMM_WORLD.allgather.
           Default: torch's process group. Without either, name the rows in a
           job (`source.fingerprint`). All ranks open the same loaders, in one
           order.

    What a batch is:

    format  "torch", "numpy" or "jax": a batch holds tensors or arrays, and
            `x, y = batch` unpacks its fields in order. Masks, lengths,
            `cu_seqlens`, `weight` and `source` are asked for by name. Default:
            a penstock.Batch, which each library can take (`batch.torch()`).

    `pin_memory`, `pin_memory_device`, `persistent_workers`, `timeout`,
    `multiprocessing_context` and `in_order` are accepted for torch's sake:
    they change nothing here, and a warning says why.

    One thread iterates at a time; other calls may come from any thread.

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
