"""One epoch: hands tasks to a pool, and batches out in order."""

from __future__ import annotations

import itertools
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from .assembly_table import ENTRIES, MOST_PARTS
from ..errors import Error, refused, worded
from ..explanation import Explanation
from .errors import WorkerTimeout
from .fetching import (BadRows, Fetcher, Settings, Stream, count_of,
                       grain_of, no_end)
from .looks import Looks
from .meter import Meter
from .pinning import PinAhead, pinned_result
from .seeds import batch_seeds
from .threads import ThreadPool
from .transfer_cost import measured_transfer
from .worker import (BATCH, END, ERROR, FETCH, NEXT, RESTART, SKIP, WHOLE,
                     Result, Task)
from .worker_pool import ProcessPool

_LOOKS_EVERY_S = 0.02  # for each worker, while the loop waits
_PATIENCE_S = 0.1  # between two looks whether the pinning thread must stop


Taken = tuple[Any, BadRows, int]  # a batch, its bad rows, its items


class Progress:
    """Where a loader stands: what is saved, and what is counted."""

    def __init__(self, meter: Meter) -> None:
        self.epoch = self.step = 0
        self.meter = meter
        # Of an iterable data set, by len(loader).
        self.announced_length: int | None = None


class EpochCursor:
    """The place of one iteration, the state of the user's generator before
    it, and whether it was asked for a batch."""

    def __init__(self, epoch: int, step: int, drawn: Any) -> None:
        self.epoch, self.step, self.drawn = epoch, step, drawn
        self.asked = False


class InlineFetch:
    """Batches fetched by the thread of the loop itself."""
    failure: Error | None = None

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None,
                 settings: Settings, batches: Iterator[Any], iterable: bool,
                 skip: int, meter: Meter) -> None:
        self._batches, self._meter, self._looks = batches, meter, Looks()
        self._fetcher = Fetcher(dataset, collate_fn, settings)
        self._stream: Stream | None = None
        if iterable:
            self._stream = Stream(dataset, collate_fn, settings)
            for dropped in range(skip):
                try:
                    self._stream.batch(next(batches), discard=True)
                except StopIteration:
                    raise _too_short(skip, dropped) from None

    def take(self, stop: threading.Event | None = None) -> Taken:
        ids = next(self._batches)
        self._looks.begin()
        try:
            return self._made(ids)
        finally:
            self._looks.end()
            self._meter.looked(*self._looks.take())

    def _made(self, ids: Any) -> Taken:
        if self._stream is not None:
            return self._stream.batch(ids), (), ids or 1
        try:
            batch, bad = self._fetcher.batch(ids)
        except StopIteration as error:
            raise no_end(error) from error
        return batch, bad, count_of(ids)

    def close(self) -> None:
        self._batches = iter(())


class FetchPolicy(NamedTuple):
    """How a PooledFetch hands out batches: `fixed` deals them to the workers
    in turn, `may_split` lets several fetch one; `seed` is there where batches
    decide what the generators of a worker draw."""
    depth: int
    timeout: float
    in_order: bool
    iterable: bool
    fixed: bool
    may_split: bool
    seed: int | None
    batch_sampler: bool


class SendFailure:
    """In the place of a batch's message: why its ids could not be sent."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def discard(self) -> None:
        """No slot is taken."""


class PooledFetch:
    """Batches from a pool."""

    def __init__(self, pool: ProcessPool | ThreadPool, policy: FetchPolicy,
                 meter: Meter) -> None:
        self.pool, self._policy, self._meter = pool, policy, meter
        self._round = 0
        self._looks_at = 0.0
        self._may_split = policy.may_split
        self._results: dict[int, tuple[int, Any, int]] = {}
        self.failure: Error | None = None

    def start(self, batches: Iterator[Any], epoch: int, first_step: int,
              skip: int, restart: bool) -> None:
        """Begins an epoch; whatever is still on its way is dropped."""
        self._round += 1
        self.pool.start_round(self._round)
        self._batches, self._epoch = batches, epoch
        self._first_step, self._skip, self._dropped = first_step, skip, 0
        self._sent, self._due = 0, 0
        self._tasks: dict[int, int | None] = {}  # batch -> its worker, if one
        self._in_parts: dict[int, Any] = {}  # batch -> its ids
        for _, message, _ in self._results.values():
            message.discard()
        self._results.clear()
        self._active = set(range(self.pool.size))
        self._turns = itertools.cycle(range(self.pool.size))
        if restart:
            for worker in range(self.pool.size):
                self.pool.put(self._task(-1, RESTART), worker)
        for _ in range(self._policy.depth):
            self._put_next()

    def _task(self, batch: int, kind: int, ids: Any = None, part: int = 0,
              parts: int = 1, first_row: int = 0, grain: int = 1) -> Task:
        seeds = None
        if self._policy.seed is not None and kind == FETCH:
            seeds = batch_seeds(self._policy.seed, self._epoch,
                                self._first_step + batch)
        return Task(self._round, batch, ids, part, parts, first_row, grain,
                    seeds, kind)

    def _put_next(self) -> None:
        if len(self._tasks) >= self._policy.depth:
            return
        ids: Any = next(self._batches, self)
        if ids is self:
            return
        if isinstance(ids, list) or (self._policy.batch_sampler
                                     and not isinstance(ids, tuple)):
            ids = list(ids)  # a generator cannot be sent, a list may be reused
        worker = None
        if self._policy.fixed:
            worker = next((w for w, _ in zip(self._turns,
                                               range(self.pool.size))
                           if w in self._active), None)
            if worker is None:
                return
        number, self._sent = self._sent, self._sent + 1
        starving = not self._results and len(self._tasks) < self.pool.size
        self._tasks[number] = worker
        has_entry = number - next(iter(self._tasks)) < ENTRIES
        splits = (self._may_split and starving and has_entry
                  and count_of(ids) > 1)
        try:
            self._put(number, ids, worker, splits)
        except (Error, MemoryError):
            raise
        except Exception as error:  # its ids cannot be pickled
            self._results[number] = ERROR, SendFailure(error), 0

    def _put(self, number: int, ids: Any, worker: int | None,
             splits: bool) -> None:
        if self._policy.iterable:
            kind = SKIP if number < self._skip else NEXT
            self.pool.put(self._task(number, kind, ids), worker)
        elif splits:
            self._put_parts(number, ids)
        else:
            self.pool.put(self._task(number, FETCH, ids,
                                     grain=grain_of(ids)), worker)

    def _put_parts(self, number: int, ids: Any) -> None:
        self._in_parts[number] = ids
        grain = grain_of(ids)
        grains = -(-len(ids) // grain)
        parts = min(grains, 2 * self.pool.size, MOST_PARTS)
        ends = [grains * part // parts * grain for part in range(parts + 1)]
        for part, (begin, end) in enumerate(zip(ends, ends[1:])):
            self.pool.put(self._task(number, FETCH, ids[begin:end], part,
                                     parts, begin, grain))

    def take(self, stop: threading.Event | None = None) -> Taken:
        """The next batch; StopIteration at the end."""
        if self.failure is not None:
            raise self.failure
        timeout = self._policy.timeout
        began = time.monotonic()
        while True:
            number = self._next_due()
            if number is not None:
                taken = self._handed_out(number)
                if taken is not None:
                    return taken
                continue
            now = time.monotonic()
            if not self.pool.answered:
                began = now  # it is workers that have a time, not their start
            if timeout and now - began >= timeout:
                raise self._late(timeout)
            deadline = began + timeout if timeout else None
            if stop is not None:
                deadline = min(deadline or now + _PATIENCE_S,
                               now + _PATIENCE_S)
                if stop.is_set():
                    raise StopIteration
            try:
                self._look_at_workers()
                waiting = time.perf_counter()
                result = self.pool.receive(deadline)
                self._meter.blocked(time.perf_counter() - waiting)
                self._note(result)
            except Error as failure:
                self.failure = failure
                raise

    def _look_at_workers(self) -> None:
        """The loop is about to wait for them: what do they wait for?"""
        now = time.perf_counter()
        if now >= self._looks_at:
            self._looks_at = now + _LOOKS_EVERY_S * self.pool.size
            # At all of them: where they take turns, one may always do the same.
            for worker in range(self.pool.size):
                self._meter.saw(self.pool.waits_for_lock(worker))

    def _next_due(self) -> int | None:
        """The batch to hand out, None when it is not there yet."""
        if not self._policy.in_order and self._results:
            first: int = next(iter(self._results))
            return first
        while self._due < self._sent:
            if self._due in self._results:
                return self._due
            if self._due in self._tasks:
                worker = self._tasks[self._due]
                if worker is None or worker in self._active:
                    return None
                del self._tasks[self._due]  # its stream has ended
            self._due += 1
        if self._dropped < self._skip:
            self.failure = _too_short(self._skip, self._dropped)
            raise self.failure
        raise StopIteration

    def _note(self, result: Result | None) -> None:
        if result is None:
            return
        (number_of_round, number, kind, seconds, cpu_s, *looked, items, message,
         worker) = result
        self._meter.worked(seconds, items, cpu_s)
        self._meter.looked(*looked)
        if number_of_round != self._round:
            message.discard()
        elif kind == END:
            message.discard()
            self._active.discard(worker)
            self._tasks.pop(number, None)
            self._put_next()
        elif number not in self._tasks or number in self._results:
            message.discard()  # it has failed already
        elif kind == WHOLE:
            message.discard()
            self._may_split = False
            self._put(number, self._in_parts[number], None, splits=False)
        else:
            self._results[number] = kind, message, items

    def _handed_out(self, number: int) -> Taken | None:
        kind, message, items = self._results.pop(number)
        del self._tasks[number]
        self._in_parts.pop(number, None)
        self._put_next()
        if isinstance(message, SendFailure):
            raise message.error
        result = self.pool.open(message)
        if kind == ERROR:
            result.reraise()
        assert kind == BATCH
        batch, bad = result
        if self._dropped < self._skip:
            self._dropped += 1
            return None
        return batch, bad, items

    def _late(self, timeout: float) -> WorkerTimeout:
        waiting = self._tasks.get(self._due)
        return worded(
            WorkerTimeout, "workers.timeout",
            f"DataLoader timed out after {timeout} seconds",
            f"batch {self._first_step + self._due}"
            + ("" if waiting is None else f", worker {waiting}"),
            f"{len(self._tasks)} batches were requested and did not come",
            "raise the timeout, or look where the data set hangs (py-spy dump)")

    def close(self) -> None:
        self.pool.close()


def _too_short(step: int, dropped: int) -> Error:
    return refused(
        "resume.other_data", "cannot resume in the middle of the epoch",
        f"batch {step}", f"the data set ended after {dropped} batches",
        "resume with the data set of the saved run")


class Epoch:
    """The iterator of a loop. One thread at a time."""

    def __init__(self, fetch: InlineFetch | PooledFetch,
                 progress: Progress, pin: bool, depth: int,
                 iterable: bool, persistent: bool) -> None:
        self.fetch, self._progress = fetch, progress
        self._pin, self._depth, self._iterable = pin, depth, iterable
        self._persistent = persistent
        self._ahead: PinAhead | None = None
        self._owner = os.getpid()
        self.closed = self.done = False

    def begin(self, cursor: EpochCursor, length: int | None) -> None:
        """Called by the loader, once per epoch; the fetch has been started."""
        self.cursor, self.epoch, self._step = cursor, cursor.epoch, cursor.step
        self._length = length
        self._yielded, self.done = 0, False
        self._progress.epoch, self._progress.step = cursor.epoch, cursor.step
        if self._pin and isinstance(self.fetch, PooledFetch):
            self._ahead = PinAhead(self.fetch.take, max(1, self._depth))

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("this data set has no length")
        return self._length

    def __next__(self) -> Any:
        if os.getpid() != self._owner:
            raise refused(
                "loader.forked", "a loop cannot continue in a forked process",
                f"process {os.getpid()}",
                f"the loop and its workers belong to process {self._owner}",
                "make a new iterator here: iter(loader)")
        if self.done:
            raise StopIteration
        if self.closed:
            raise refused(
                "loader.closed", "cannot continue the loop",
                f"epoch {self.epoch}", "the loop was ended before",
                "make a new iterator: iter(loader)")
        self.cursor.asked = True
        meter = self._progress.meter
        asked = meter.asked()
        try:
            batch, bad, items = self._take()
        except StopIteration:
            self._finish()
            raise
        except Error as error:
            if error is self.fetch.failure or isinstance(error, WorkerTimeout):
                self.close()
            raise
        except (KeyboardInterrupt, SystemExit):
            self.close()
            raise
        self._step += 1
        self._yielded += 1
        self._note_place()
        self._note_bad(bad)
        meter.answered(asked, items, self._yielded == 1)
        if isinstance(self.fetch, InlineFetch) and meter.wants_transfer_cost():
            meter.note_transfer(measured_transfer(batch, items))
        self._warn_of_length()
        return batch

    def explain(self) -> Explanation:
        """The verdict on its loader's loop, as `loader.explain()` gives it."""
        if not isinstance(self.fetch, PooledFetch):
            return self._progress.meter.explain(0)
        workers = self.fetch.pool.size
        return self._progress.meter.explain(workers, self._depth // workers)

    def _take(self) -> Taken:
        if self._ahead is not None:
            return self._ahead()
        taken = self.fetch.take()
        return pinned_result(taken) if self._pin else taken

    def _note_place(self) -> None:
        """After the last batch the place is the beginning of the next epoch:
        a loop that counts its steps does not ask for the end."""
        at_end = not self._iterable and self._step == self._length
        self._progress.epoch = self.epoch + 1 if at_end else self.epoch
        self._progress.step = 0 if at_end else self._step

    def _note_bad(self, bad: BadRows) -> None:
        for row, item in bad:
            self._progress.meter.note_bad(self.epoch, self._step - 1, row,
                                          item)

    def _warn_of_length(self) -> None:
        announced = self._progress.announced_length
        if self._iterable and announced is not None and \
                self._yielded > announced:
            warnings.warn(
                f"the length of the data set was {announced} when len(loader) "
                f"was called, but {self._yielded} batches have been fetched; "
                "with workers, each has a replica of an iterable data set and "
                "must take its own share (get_worker_info())", stacklevel=3)

    def _finish(self) -> None:
        self.done = True
        self._progress.epoch, self._progress.step = self.epoch + 1, 0
        self._progress.meter.paused()
        self._stop_pinning()
        if not self._persistent:
            self.close()

    def _stop_pinning(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def stop_round(self) -> None:
        """Before the same iterator begins again."""
        self._stop_pinning()

    def close(self) -> None:
        """Ends workers and threads. The loop cannot continue."""
        if self.closed or os.getpid() != self._owner:
            return
        self.closed = True
        self._stop_pinning()
        self.fetch.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone

    def __reduce__(self) -> NoReturn:
        raise NotImplementedError("an iterator over a loader cannot be "
                                  "pickled; pickle the loader's state_dict()")
