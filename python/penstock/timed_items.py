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

from ._dataloader.meter import processor_share, scheduled

if TYPE_CHECKING:
    from ._engine import Making, ThreadSampler

_KEPT_TIMES = 20_000  # of items
_LOOKS_EVERY = 8  # batches, at how long a maker waited for a processor


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
        self.seconds = array("d")
        self.batch_seconds = array("d")
        self.slowest, self.slowest_s = "", 0.0
        self.seen: tuple[int, ...] = (0,) * 6
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

    def add(self, other: Made) -> None:
        """How one more batch was made."""
        self.items += other.items
        self.item_s += other.item_s
        self.item_cpu_s += other.item_cpu_s
        self.collate_s += other.collate_s
        self.collate_cpu_s += other.collate_cpu_s
        _keep(self.seconds, other.seconds)
        _keep(self.batch_seconds, (other.item_s + other.collate_s,))
        if other.slowest_s > self.slowest_s:
            self.slowest, self.slowest_s = other.slowest, other.slowest_s
        self.seen = tuple(map(sum, zip(self.seen, other.seen)))
        self.ran_ns += other.ran_ns
        self.queued_ns += other.queued_ns

    def processors_got(self) -> float:
        """Of the time in which the makers could run, the share in which they
        had a processor; 1 where that is unknown."""
        return processor_share(self.ran_ns, self.queued_ns)

    def making(self) -> Making:
        from ._engine import Making

        making = Making()
        for name in ("item_s", "item_cpu_s", "collate_s", "collate_cpu_s",
                     "slowest", "slowest_s"):
            setattr(making, name, getattr(self, name))
        making.seconds = list(self.seconds)
        making.cpu_share = self.processors_got()
        making.add_seen(list(self.seen))
        return making


class _Maker:
    """Times what one process makes, thread by thread. Samplers of other
    processes, which a fork has copied, are kept and never used."""

    _of: dict[int, _Maker] = {}

    def __init__(self) -> None:
        from ._engine import ThreadSampler

        self.sampler: ThreadSampler = ThreadSampler()
        self._threads = threading.local()

    @classmethod
    def here(cls) -> _Maker:
        if os.getpid() not in cls._of:
            cls._of[os.getpid()] = cls()
        return cls._of[os.getpid()]

    @property
    def made(self) -> Made:
        """By this thread."""
        if not hasattr(self._threads, "made"):
            self._threads.made = Made()
        made: Made = self._threads.made
        return made

    def take(self) -> Made:
        made, self._threads.made = self.made, Made()
        made.seen = tuple(self.sampler.take())
        mine = self._threads
        mine.taken = getattr(mine, "taken", -1) + 1
        if mine.taken % _LOOKS_EVERY == 0:
            now = scheduled(threading.get_native_id())
            before, mine.looked = getattr(mine, "looked", None), now
            if before and now:
                made.ran_ns, made.queued_ns = (now[0] - before[0],
                                               now[1] - before[1])
        return made

    def timed(self, make: Callable[[list[float]], Any],
              name: Callable[[int], str]) -> Any:
        """What `make` makes; it notes when each of its items was there."""
        self.sampler.begin()
        cpu, ends = time.thread_time(), [time.perf_counter()]
        try:
            return make(ends)
        finally:
            self.made.add_items(ends, time.thread_time() - cpu, name)
            self.sampler.end()


class _Timed:
    """A data set whose items are timed; else it is the one behind it."""

    def __init__(self, behind: Any) -> None:
        self.__dict__["_behind"] = behind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__getitems__":
            raise AttributeError(name)  # while it is being unpickled
        return getattr(self._behind, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._behind, name, value)

    def __len__(self) -> int:
        return len(self._behind)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._behind,)


class _TimedMap(_Timed):
    def __getitem__(self, index: Any) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """torch requests a batch so where it can: what is measured for each
        item is then one look at the clock."""
        def make(ends: list[float]) -> list[Any]:
            items, dataset, now = [], self._behind, time.perf_counter
            for index in indices:
                items.append(dataset[index])
                ends.append(now())
            return items
        return cast(list[Any], _Maker.here().timed(
            make, lambda at: f"dataset[{indices[at]!r}]"))


class _TimedMapOfMany(_TimedMap):
    """The data set itself makes many items at once."""

    def __getitem__(self, index: Any) -> Any:
        def make(ends: list[float]) -> Any:
            item = self._behind[index]
            ends.append(time.perf_counter())
            return item
        return _Maker.here().timed(make, lambda at: f"dataset[{index!r}]")

    def __getitems__(self, indices: list[Any]) -> Any:
        def make(ends: list[float]) -> Any:
            items = self._behind.__getitems__(indices)
            begin, took = ends[0], time.perf_counter() - ends[0]
            count = max(1, len(indices))
            ends.extend(begin + took * i / count for i in range(1, count + 1))
            return items
        return _Maker.here().timed(
            make, lambda at: f"dataset.__getitems__({list(indices)!r})")


class _TimedIterable(_Timed):
    def __iter__(self) -> Iterator[Any]:
        items, maker, count = iter(self._behind), _Maker.here(), 0

        def make(ends: list[float]) -> Any:
            item = next(items)
            ends.append(time.perf_counter())
            return item
        while True:
            try:
                item = maker.timed(make, lambda at: f"item {count}")
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
    """A collate_fn that is timed, and whose batches say how they were made."""

    def __init__(self, behind: Callable[[Any], Any]) -> None:
        self._behind = behind

    def __call__(self, items: Any) -> Stamped:
        maker = _Maker.here()
        wall, cpu = time.perf_counter(), time.thread_time()
        batch = self._behind(items)
        made = maker.take()
        made.collate_s += time.perf_counter() - wall
        made.collate_cpu_s += time.thread_time() - cpu
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
    timed: _Timed
    if isinstance(dataset, data.IterableDataset):
        timed = _TimedIterable(dataset)
    elif getattr(dataset, "__getitems__", None):
        timed = _TimedMapOfMany(dataset)
    else:
        timed = _TimedMap(dataset)
    again = copy.copy(loop)
    # torch forbids to set these, for what it has made of them; not here.
    vars(again).update(dataset=timed, collate_fn=_Stamping(loop.collate_fn),
                       _iterator=None)
    return again
