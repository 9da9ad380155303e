"""What `penstock.open()` returns and `penstock.Loader` is: an engine's batches."""

from __future__ import annotations

import atexit
import json
import operator
import os
import weakref
from typing import (TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence,
                    TextIO, cast)

from .. import _engine
from .._watch.timing import Step, Watch
from ..errors import RequestError, refused
from ..explanation import Explanation
from ..job_sections import Settings, dumped
from ..notebook import loader_html
from ..page import with_page
from ..progress import Screen, Shown, shown
from .formats import Formatter, formatter
from .ranks import Ranks

if TYPE_CHECKING:
    from typing_extensions import Self

# Iterations keep the engines of loaders that are gone.
open_engines: weakref.WeakSet[_engine.Engine] = weakref.WeakSet()


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
    for engine in list(open_engines):
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
        open_engines.add(self._engine)
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
        from .._rows.callables import Map, source_text

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
