"""Times how the items of a DataLoader of torch are made, where they are made: in
worker processes, too. `penstock.watch` iterates over a copy that does."""

from __future__ import annotations

import copy
import os
import sys
import threading
import time
from array import array
from operator import sub
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, cast

from .._dataloader.looks import scheduled, scheduled_process
from .._dataloader.meter import processor_share

if TYPE_CHECKING:
    from .._engine import Making, ThreadSampler

_KEPT_TIMES = 20_000  # of items
# How long a maker waited for a processor is looked at after the first of these,
# and then when half as much time again has passed.
_LOOKS_FIRST_S, _LOOKS_LATER = 0.05, 0.5
_ALL_OF = 64  # batches of a maker: each is timed
_TIMED_EVERY_S = 0.05  # of making one is, from then on: timing costs 60 us
_MOST_SKIPPED = 31
_SLOW = 10  # times what a batch usually takes


def _keep(times: array[float], more: Iterable[float]) -> None:
    """At least the last _KEPT_TIMES of them, and at most twice as many."""
    times.extend(more)
    if len(times) > 2 * _KEPT_TIMES:
        del times[:-_KEPT_TIMES]


class Made:
    """How one process made items since this was handed on last."""

    def __init__(self) -> None:
        self.items = 0
        self.item_s = self.item_cpu_s = 0.0
        self.collate_s = self.collate_cpu_s = 0.0
        # Of all threads of a worker, while one made items.
        self.process_cpu_s = 0.0
        self.seconds = array("d")
        self.batch_seconds = array("d")
        self.slowest, self.slowest_s = "", 0.0
        self.batches = 0
        # What each batch took that was skipped before it (_Timing.to_skip).
        self.skipped = array("d")
        self.seen: tuple[int, ...] = (0,) * 8
        self.ran_ns = self.queued_ns = 0  # on a processor, and waiting for one

    def add_items(self, ends: list[float], cpu_s: float,
                  name: Callable[[int], str]) -> None:
        """One after the other; `ends` begins with the begin of the first, and
        `name(i)` names the i-th."""
        times = list(map(sub, ends[1:], ends))
        self.items += len(times)
        self.item_s += ends[-1] - ends[0]
        self.item_cpu_s += cpu_s
        self.seconds.extend(times)
        slowest = max(times, default=0.0)
        if slowest > self.slowest_s:
            named = name(times.index(slowest))
            self.slowest = named if len(named) < 60 else named[:57] + "..."
            self.slowest_s = slowest

    @property
    def took_s(self) -> float:
        return self.item_s + self.collate_s

    def with_skipped(self) -> tuple[float, float, int]:
        """This batch and those skipped before it: seconds, how many times its
        own, and items."""
        seconds = self.took_s + sum(self.skipped)
        return (seconds, seconds / self.took_s if self.took_s else 1.0,
                (1 + len(self.skipped)) * self.items)

    def add(self, other: Made) -> None:
        """How one more batch was made, and those that were skipped: what each
        of them took is known, the rest is as of this one."""
        _, times, items = other.with_skipped()
        usual = other.took_s if not self.batches else \
            min(other.took_s, self.took_s / self.batches)
        self.batches += 1 + len(other.skipped)
        self.items += items
        self.item_s += times * other.item_s
        self.item_cpu_s += times * other.item_cpu_s
        self.collate_s += times * other.collate_s
        self.collate_cpu_s += times * other.collate_cpu_s
        _keep(self.seconds, other.item_seconds(usual))
        _keep(self.batch_seconds, [*other.skipped, other.took_s])
        if other.slowest_s > self.slowest_s:
            self.slowest, self.slowest_s = other.slowest, other.slowest_s
        if any(other.seen):
            self.seen = tuple(map(sum, zip(self.seen, other.seen)))
        self.ran_ns += other.ran_ns
        self.queued_ns += other.queued_ns

    def item_seconds(self, usual: float) -> array[float]:
        """Of all items, those that were skipped too. `usual`: of a batch; of
        one that took many times as long it was one item."""
        own = self.seconds
        if self.took_s > _SLOW * usual:
            own = array("d", [usual / max(1, self.items)] * self.items)
        slow = [took for took in self.skipped if took > _SLOW * usual]
        times = len(self.skipped) * own
        for place, took in enumerate(slow if self.items else ()):
            times[place * self.items] += took - usual
        return times + self.seconds

    def processors_got(self) -> float:
        """Of the time in which the makers could run, the share in which they
        had a processor; 1 where that is unknown."""
        return processor_share(self.ran_ns, self.queued_ns)

    def making(self, items: int) -> Making:
        """Of all that was made, where the loop has got so many items: the last
        ones may have been skipped."""
        from .._engine import Making

        making = Making()
        making.slowest, making.slowest_s = self.slowest, self.slowest_s
        of_all = max(1.0, items / self.items) if self.items else 1.0
        for name in ("item_s", "item_cpu_s", "collate_s", "collate_cpu_s"):
            setattr(making, name, of_all * getattr(self, name))
        making.seconds = list(self.seconds)
        making.batch_seconds = list(self.batch_seconds)
        making.cpu_share = self.processors_got()
        making.add_seen(list(self.seen))
        return making


class _Timing:
    """Times what the batches of a loop are made of, where they are made: each
    worker has one of its own."""

    def __init__(self) -> None:
        self._made = Made()
        self._sampler: ThreadSampler | None = None
        self._process = 0  # whose threads it looks at
        self._in_worker = False
        # The batch at hand is not timed: the next one that is stands for it.
        # Batches that are made quickly are timed in their turn only, or it
        # would cost more than it tells.
        self.to_skip = 0
        self._taken = 0
        self._skipped, self._items_s = array("d"), 0.0
        self._spent = self._began = self._looks_at = 0.0
        self._looked: tuple[int, int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def _sampler_here(self) -> ThreadSampler:
        """A fork of the process has another one."""
        process = os.getpid()
        if self._sampler is None or self._process != process:
            from .._engine import ThreadSampler

            self._sampler, self._process = ThreadSampler(), process
            self._in_worker = _torch_data().get_worker_info() is not None
        return self._sampler

    def take(self) -> Made:
        """How the batch was made."""
        made, self._made = self._made, Made()
        made.seen = tuple(self._sampler_here().take())
        made.skipped, self._skipped = self._skipped, array("d")
        return made

    def took(self, made: Made) -> None:
        """The batch is there, and how long collate_fn took: how many are
        skipped after it?"""
        self._taken += 1
        self._spent += made.took_s
        if self._taken >= _ALL_OF:
            each = max(self._spent / self._taken, 1e-6)
            self.to_skip = min(
                _MOST_SKIPPED, max(0, int(_TIMED_EVERY_S / each) - 1))
        now = time.perf_counter()
        if now < self._looks_at:
            return
        self._began = self._began or now
        self._looks_at = now + max(_LOOKS_FIRST_S,
                                   _LOOKS_LATER * (now - self._began))
        # Threads of a worker may work for one that waits for them.
        before, self._looked = self._looked, scheduled_process() \
            if self._in_worker else scheduled(threading.get_native_id())
        if before and self._looked:  # a thread may have ended
            made.ran_ns, made.queued_ns = (
                max(0, now - then) for now, then in zip(self._looked, before))

    def timed(self, make: Callable[[list[float]], Any],
              name: Callable[[int], str]) -> Any:
        """What `make` makes; it notes when each of its items was there."""
        sampler = self._sampler_here()
        sampler.begin()
        of_process = time.process_time() if self._in_worker else 0.0
        cpu, ends = time.thread_time(), [time.perf_counter()]
        try:
            return make(ends)
        finally:
            self._made.add_items(ends, time.thread_time() - cpu, name)
            if self._in_worker:
                self._made.process_cpu_s += time.process_time() - of_process
            sampler.end()

    def not_timed(self, make: Callable[[], Any]) -> Any:
        """The same for a batch that is skipped: its thread is looked at."""
        sampler = self._sampler  # there since a batch was timed
        assert sampler is not None
        sampler.begin()
        began = time.perf_counter()
        try:
            return make()
        finally:
            self._items_s += time.perf_counter() - began
            sampler.end()

    def skip(self, collate_s: float) -> None:
        """A batch is there that is skipped."""
        self.to_skip -= 1
        self._skipped.append(self._items_s + collate_s)
        self._items_s = 0.0


class _Timed:
    """A data set whose items are timed; else it is the one behind it."""

    def __init__(self, behind: Any, timing: _Timing) -> None:
        self.__dict__.update(_behind=behind, _timing=timing)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__getitems__":
            raise AttributeError(name)  # while it is being unpickled
        return getattr(self._behind, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._behind, name, value)

    def __len__(self) -> int:
        return len(self._behind)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._behind, self._timing)


class _TimedMap(_Timed):
    def __getitem__(self, index: Any) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """torch requests a batch so where it can: what is measured for each
        item is then one look at the clock."""
        timing, dataset = self._timing, self._behind
        if timing.to_skip:
            return cast(list[Any], timing.not_timed(
                lambda: [dataset[index] for index in indices]))

        def make(ends: list[float]) -> list[Any]:
            items, now = [], time.perf_counter
            for index in indices:
                items.append(dataset[index])
                ends.append(now())
            return items
        return cast(list[Any], timing.timed(
            make, lambda at: f"dataset[{indices[at]!r}]"))


class _TimedMapOfMany(_TimedMap):
    """The data set itself makes many items at once."""

    def __getitem__(self, index: Any) -> Any:
        timing = self._timing
        if timing.to_skip:
            return timing.not_timed(lambda: self._behind[index])

        def make(ends: list[float]) -> Any:
            item = self._behind[index]
            ends.append(time.perf_counter())
            return item
        return timing.timed(make, lambda at: f"dataset[{index!r}]")

    def __getitems__(self, indices: list[Any]) -> Any:
        timing = self._timing
        if timing.to_skip:
            return timing.not_timed(lambda: self._behind.__getitems__(indices))

        def make(ends: list[float]) -> Any:
            items = self._behind.__getitems__(indices)
            begin, took = ends[0], time.perf_counter() - ends[0]
            count = max(1, len(indices))
            ends.extend(begin + took * i / count for i in range(1, count + 1))
            return items
        return timing.timed(
            make, lambda at: f"dataset.__getitems__({list(indices)!r})")


class _TimedIterable(_Timed):
    def __iter__(self) -> Iterator[Any]:
        items, timing, count = iter(self._behind), self._timing, 0

        def make(ends: list[float]) -> Any:
            item = next(items)
            ends.append(time.perf_counter())
            return item
        while True:
            try:
                item = timing.not_timed(lambda: next(items)) \
                    if timing.to_skip else timing.timed(make, lambda at: f"item {count}")
            except StopIteration:
                return
            count += 1
            yield item


class Stamped:
    """A batch with how it was made, on its way to the loop."""

    def __init__(self, batch: Any, made: Made) -> None:
        self.batch, self.made = batch, made

    def pin_memory(self, *device: Any) -> Stamped:
        """Called by torch's pinning thread, for what it does not know."""
        pinning: Any = sys.modules["torch.utils.data._utils.pin_memory"]
        return Stamped(pinning.pin_memory(self.batch, *device), self.made)


class _Stamping:
    """A collate_fn that is timed, and whose batches say how they were made, but
    for those that are skipped."""

    def __init__(self, behind: Callable[[Any], Any],
                 timing: _Timing) -> None:
        self.behind, self.timing = behind, timing

    def __call__(self, items: Any) -> Any:
        timing = self.timing
        if timing.to_skip:
            began = time.perf_counter()
            batch = self.behind(items)
            timing.skip(time.perf_counter() - began)
            return batch
        made = timing.take()
        wall, cpu = time.perf_counter(), time.thread_time()
        batch = self.behind(items)
        made.collate_s += time.perf_counter() - wall
        made.collate_cpu_s += time.thread_time() - cpu
        timing.took(made)
        return Stamped(batch, made)


def _torch_data() -> Any:
    """torch.utils.data, where the program uses it."""
    return sys.modules.get("torch.utils.data")


def timed_copy(loop: Any) -> Any | None:
    """A copy of a DataLoader of torch that times what it makes; None for
    anything else, and for a data set that torch treats in its own way."""
    data = _torch_data()
    if data is None or type(loop) is not data.DataLoader:
        return None
    dataset = loop.dataset
    pipes = getattr(data, "IterDataPipe", ()), getattr(data, "MapDataPipe", ())
    if isinstance(dataset, tuple(filter(None, pipes))):
        return None
    timing = _Timing()
    timed: _Timed
    if isinstance(dataset, data.IterableDataset):
        timed = _TimedIterable(dataset, timing)
    elif getattr(dataset, "__getitems__", None):
        timed = _TimedMapOfMany(dataset, timing)
    else:
        timed = _TimedMap(dataset, timing)
    again = copy.copy(loop)
    # torch forbids to set these, for what it has made of them; not here.
    vars(again).update(dataset=timed, _iterator=None,
                       collate_fn=_Stamping(loop.collate_fn, timing))
    return again


def update_copy(again: Any, loop: Any) -> None:
    """Brings the copy up to date with attributes of the loop that were set
    since it was made."""
    changed = {name: value for name, value in vars(loop).items()
               if name not in ("dataset", "_iterator", "collate_fn")
               and vars(again).get(name) is not value}
    vars(again).update(changed)
    stamping = again.collate_fn
    if stamping.behind is not loop.collate_fn:
        vars(again)["collate_fn"] = _Stamping(loop.collate_fn, stamping.timing)
