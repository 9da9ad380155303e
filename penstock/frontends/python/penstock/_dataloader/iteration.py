"""One epoch: hands tasks to a crew, and batches out in order."""
import itertools
import os
import time
import warnings

from .board import MOST_PARTS
from ..errors import Error, refused, worded
from .errors import WorkerTimeout
from .fetching import Fetcher, Stream, count_of, grain_of
from .pinning import PinAhead, pinned_result
from .worker import BATCH, END, ERROR, Task

_PATIENCE_S = 0.1  # between two looks whether the pinning thread must stop


class Progress:
    """Where a loader stands: what is saved, and what is counted."""

    def __init__(self, meter):
        self.epoch = self.step = 0
        self.meter = meter
        self.length_told = None  # of an iterable data set, by len(loader)


class Direct:
    """Batches fetched by the thread of the loop itself."""
    failure = None

    def __init__(self, dataset, collate_fn, settings, batches, iterable, skip):
        self._batches = batches
        maker = Stream if iterable else Fetcher
        self._fetcher = maker(dataset, collate_fn, settings)
        if iterable:
            for dropped in range(skip):
                try:
                    self._fetcher.batch(next(batches), discard=True)
                except StopIteration:
                    raise _too_short(skip, dropped) from None
        self._iterable = iterable

    def take(self, stop=None):
        ids = next(self._batches)
        if self._iterable:
            return self._fetcher.batch(ids), (), ids or 1
        batch, bad = self._fetcher.batch(ids)
        return batch, bad, count_of(ids)

    def close(self):
        self._batches = iter(())


class Flow:
    """Batches from a crew. `rules` is Rules: how they are handed out."""

    def __init__(self, crew, rules, meter):
        self.crew, self._rules, self._meter = crew, rules, meter
        self._round, self.failure = 0, None

    def start(self, batches, epoch, first_step, skip, restart):
        """Begins an epoch; whatever is still on its way is dropped."""
        self._round += 1
        self.crew.start_round(self._round)
        self._batches, self._epoch = batches, epoch
        self._first_step, self._skip, self._dropped = first_step, skip, 0
        self._sent = self._due = 0
        self._tasks, self._results = {}, {}
        self._active = set(range(self.crew.size))
        self._turn = itertools.cycle(range(self.crew.size))
        if restart:
            for worker in range(self.crew.size):
                self.crew.put(self._task(-1, Task.RESTART), worker)
        for _ in range(self._rules.depth):
            self._put_next()

    def _task(self, batch, kind, ids=None, part=0, parts=1, first_row=0,
              grain=1):
        key = None
        if self._rules.seed is not None:
            key = self._rules.seed, self._epoch, self._first_step + batch
        return Task(self._round, batch, ids, part, parts, first_row, grain,
                    key, kind)

    def _put_next(self):
        if len(self._tasks) >= self._rules.depth:
            return
        ids = next(self._batches, self)
        if ids is self:
            return
        if self._rules.batch_sampler and not isinstance(ids, (list, tuple)):
            ids = list(ids)  # a generator could not travel
        worker = None
        if self._rules.fixed:
            worker = next((w for w, _ in zip(self._turn, range(self.crew.size))
                           if w in self._active), None)
            if worker is None:
                return
        number, self._sent = self._sent, self._sent + 1
        starving = not self._results and len(self._tasks) < self.crew.size
        self._tasks[number] = worker
        if self._rules.iterable:
            kind = Task.SKIP if number < self._skip else Task.NEXT
            self.crew.put(self._task(number, kind, ids), worker)
        elif starving and self._rules.may_split and count_of(ids) > 1:
            self._put_parts(number, ids)
        else:
            grain = grain_of(self._rules.batch_size or 1)
            self.crew.put(self._task(number, Task.FETCH, ids, grain=grain),
                          worker)

    def _put_parts(self, number, ids):
        grain = grain_of(self._rules.batch_size or len(ids))
        grains = -(-len(ids) // grain)
        parts = min(grains, 2 * self.crew.size, MOST_PARTS)
        ends = [grains * part // parts * grain for part in range(parts + 1)]
        for part, (begin, end) in enumerate(zip(ends, ends[1:])):
            self.crew.put(self._task(number, Task.FETCH, ids[begin:end], part,
                                     parts, begin, grain))

    def take(self, stop=None):
        """(batch, bad ones, items); StopIteration at the end."""
        if self.failure is not None:
            raise self.failure
        timeout = self._rules.timeout
        began = time.monotonic()
        while True:
            number = self._next_due()
            if number is not None:
                taken = self._handed_out(number)
                if taken is not None:
                    return taken
                continue
            now = time.monotonic()
            if timeout and now - began >= timeout:
                raise self._late(timeout)
            deadline = began + timeout if timeout else None
            if stop is not None:
                deadline = min(deadline or now + _PATIENCE_S,
                               now + _PATIENCE_S)
                if stop.is_set():
                    raise StopIteration
            try:
                self._note(self.crew.receive(deadline))
            except Error as failure:
                self.failure = failure
                raise

    def _next_due(self):
        """The batch to hand out, None when it is not there yet."""
        if not self._rules.in_order and self._results:
            return next(iter(self._results))
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

    def _note(self, result):
        if result is None:
            return
        number_of_round, number, kind, seconds, items, letter, worker = result
        self._meter.worked(seconds, items)
        if number_of_round != self._round:
            letter.discard()
        elif kind == END:
            letter.discard()
            self._active.discard(worker)
            self._tasks.pop(number, None)
            self._put_next()
        else:
            self._results[number] = kind, letter, items

    def _handed_out(self, number):
        kind, letter, items = self._results.pop(number)
        del self._tasks[number]
        self._put_next()
        result = self.crew.open(letter)
        if kind == ERROR:
            result.reraise()
        assert kind == BATCH
        batch, bad = result
        if self._dropped < self._skip:
            self._dropped += 1
            return None
        return batch, bad, items

    def _late(self, timeout):
        waiting = self._tasks.get(self._due)
        return worded(
            WorkerTimeout, "workers.timeout",
            f"DataLoader timed out after {timeout} seconds",
            f"batch {self._first_step + self._due}"
            + ("" if waiting is None else f", worker {waiting}"),
            f"{len(self._tasks)} batches were asked for and did not come",
            "raise the timeout, or look where the data set hangs (py-spy dump)")

    def close(self):
        self.crew.close()


def _too_short(step, dropped):
    return refused(
        "resume.other_data", "cannot resume in the middle of the epoch",
        f"batch {step}", f"the data set ended after {dropped} batches",
        "resume with the data set of the saved run")


class Rules:
    """How a Flow hands out batches."""

    def __init__(self, depth, timeout, in_order, iterable, fixed, may_split,
                 batch_size, seed, batch_sampler):
        self.depth, self.timeout, self.in_order = depth, timeout, in_order
        self.iterable, self.fixed, self.may_split = iterable, fixed, may_split
        self.batch_size, self.seed = batch_size, seed
        self.batch_sampler = batch_sampler


class Epoch:
    """The iterator of a loop. One thread at a time."""

    def __init__(self, flow, progress, pin, depth, iterable, persistent):
        self.flow, self._progress = flow, progress
        self._pin, self._depth, self._iterable = pin, depth, iterable
        self._persistent = persistent
        self._ahead, self._owner = None, os.getpid()
        self.closed = self.done = False

    def begin(self, epoch, step, length):
        """Called by the loader, once per epoch; the flow has been started."""
        self.epoch, self._step, self._length = epoch, step, length
        self._yielded, self.done = 0, False
        self._progress.epoch, self._progress.step = epoch, step
        if self._pin and isinstance(self.flow, Flow):
            self._ahead = PinAhead(self.flow.take, max(1, self._depth))

    def __iter__(self):
        return self

    def __len__(self):
        if self._length is None:
            raise TypeError("this data set has no length")
        return self._length

    def __next__(self):
        if os.getpid() != self._owner:
            raise refused(
                "loader.forked", "a loop cannot go on in a forked process",
                f"process {os.getpid()}",
                f"the loop and its helpers belong to process {self._owner}",
                "make a new iterator here: iter(loader)")
        if self.done:
            raise StopIteration
        if self.closed:
            raise refused(
                "loader.closed", "cannot go on with the loop",
                f"epoch {self.epoch}", "the loop was ended before",
                "make a new iterator: iter(loader)")
        meter = self._progress.meter
        asked = meter.asked()
        try:
            batch, bad, items = self._take()
        except StopIteration:
            self._finish()
            raise
        except Error as error:
            if error is self.flow.failure or isinstance(error, WorkerTimeout):
                self.close()
            raise
        except (KeyboardInterrupt, SystemExit):
            self.close()
            raise
        self._step += 1
        self._yielded += 1
        self._progress.epoch, self._progress.step = self.epoch, self._step
        self._note_bad(bad)
        meter.answered(asked, items, self._yielded == 1)
        self._warn_of_length()
        return batch

    def _take(self):
        if self._ahead is not None:
            return self._ahead()
        taken = self.flow.take()
        return pinned_result(taken) if self._pin else taken

    def _note_bad(self, bad):
        for row, item in bad:
            self._progress.meter.note_bad(self.epoch, self._step - 1, row,
                                          item)

    def _warn_of_length(self):
        told = self._progress.length_told
        if self._iterable and told is not None and self._yielded > told:
            warnings.warn(
                f"the length of the data set was {told} when len(loader) was "
                f"asked, but {self._yielded} batches have been fetched; with "
                "workers, each has a replica of an iterable data set and must "
                "take its own share (get_worker_info())", stacklevel=3)

    def _finish(self):
        self.done = True
        self._progress.epoch, self._progress.step = self.epoch + 1, 0
        self._progress.meter.paused()
        self._stop_pinning()
        if not self._persistent:
            self.close()

    def _stop_pinning(self):
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def stop_round(self):
        """Before the same iterator begins anew."""
        self._stop_pinning()

    def close(self):
        """Ends helpers and threads. The loop cannot go on."""
        if self.closed or os.getpid() != self._owner:
            return
        self.closed = True
        self._stop_pinning()
        self.flow.close()

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone

    def __reduce__(self):
        raise NotImplementedError("an iterator over a loader cannot be "
                                  "pickled; pickle the loader's state_dict()")
