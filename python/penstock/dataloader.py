"""penstock.DataLoader: torch's DataLoader, with two lines changed.

    from penstock import DataLoader
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)

It takes an existing torch data set, map-style or iterable, or anything with
`__getitem__` and `__len__`, or with `__iter__`, and the arguments of torch's
DataLoader. It needs no torch: where torch is imported, batches hold tensors,
else numpy arrays. docs/how-to/dataloader.md says what each argument does here and
where the behaviour differs from torch's on purpose.
"""
from __future__ import annotations

import atexit
import importlib
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import (TYPE_CHECKING, Any, Generic, Protocol, TextIO,
                    TypeVar)

from ._dataloader import arguments
from ._dataloader import collate as _collate
from ._dataloader import server as _server
from ._dataloader import servers as _servers
from ._dataloader import threads as _threads
from ._dataloader import transfer as _transfer
from ._dataloader import worker as _worker
from ._dataloader.servers import ServerProcess
from ._dataloader.worker_pool import ProcessPool
from ._dataloader.fetching import Settings, asks_many
from ._dataloader.iteration import (Epoch, EpochCursor, FetchPolicy,
                                    InlineFetch, PooledFetch, Progress)
from ._dataloader.line import Line, shares
from ._dataloader.meter import Meter
from ._dataloader.pinning import can_pin
from ._dataloader.plans import (Batched, OwnPlan, OwnSampler, OwnSingles,
                                SamplerPlan, StreamPlan)
from ._dataloader.transfer_cost import NO_TRANSFER
from ._dataloader.replay import Replay
from ._dataloader.seeds import base_seed, drawn_seed
from ._dataloader.state import LOST_ORDER, MASK, State, state_of
from ._dataloader.worker import Job, WorkerInfo
from .arguments import checked
from .errors import refused
from .explanation import Explanation
from .page import with_page
from .progress import Screen, Shown, shown

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._engine import Order

__all__ = ["DataLoader", "get_worker_info", "start", "stop"]

_Item = TypeVar("_Item", covariant=True)

_FROZEN = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
           "persistent_workers")
# Epochs and servers that atexit must close.
_live: weakref.WeakSet[Any] = weakref.WeakSet()
start, stop = _servers.start, _servers.stop


def get_worker_info() -> WorkerInfo | None:
    """(id, num_workers, seed, dataset) in a worker process or thread, None
    elsewhere. torch.utils.data.get_worker_info() knows it too, in worker
    processes."""
    return _threads.info() or _worker.info


class _Indexed(Protocol[_Item]):
    """A map-style data set."""

    def __getitem__(self, index: Any, /) -> _Item: ...


class DataLoader(Generic[_Item]):
    """Batches of a data set, in an order that can be resumed.

    For type checkers it is DataLoader[item of the data set], as torch's.

    Arguments up to `in_order` are torch's, with torch's defaults and meaning.
    The others:

    seed        of the order and of the generators in workers. None: drawn
                once, when the first loop begins, from torch's global
                generator (torch.manual_seed) where torch is imported; else
                0 for the first such loader, 1 for the next.
    on_bad      what happens when the data set raises for a sample: "stop",
                "substitute" (another sample, drawn by the bad one's index) or
                "mask" (the same, and each batch comes as [batch, weights]).
    max_bad     how many bad samples there may be before the loop ends.
    workers     "processes", "threads", or "auto": threads when the data set
                has the attribute `releases_gil = True`.
    seeds       where workers seed Python's, numpy's and torch's generators:
                "batch": by epoch and batch, so that the same numbers are drawn
                with any number of workers and after a resume; "worker": once
                per worker, as torch does, with batches dealt out in turn;
                "auto": "worker" when a generator or a worker_init_fn is given
                or the data set is iterable, else "batch".

    Not thread-safe. Workers end with the iterator (with the loader, when
    persistent_workers), at the latest when the interpreter does. They are
    forked from a process that all loaders of a program share (penstock.start());
    with multiprocessing_context="fork" from the program itself.
    """
    _ready = False

    @checked({})
    def __init__(self, dataset: _Indexed[_Item] | Iterable[_Item],
                 batch_size: int | None = 1,
                 shuffle: bool | None = None,
                 sampler: Iterable[Any] | None = None,
                 batch_sampler: Iterable[Any] | None = None,
                 num_workers: int = 0,
                 collate_fn: Callable[[list[Any]], Any] | None = None,
                 pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0,
                 worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Any = None,
                 *, prefetch_factor: int | None = None,
                 persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True,
                 seed: int | None = None, on_bad: str = "stop",
                 max_bad: int = 100, workers: str = "auto",
                 seeds: str = "auto") -> None:
        self._iterable = arguments.is_iterable(dataset)
        arguments.check_workers(num_workers, timeout, prefetch_factor,
                                persistent_workers, multiprocessing_context)
        arguments.check_sampling(self._iterable, batch_size, shuffle, sampler,
                                 batch_sampler, drop_last)
        arguments.check_own(self._iterable, on_bad, workers, seeds, seed)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.timeout, self.in_order = timeout, in_order
        self.prefetch_factor = (2 if num_workers and prefetch_factor is None
                                else prefetch_factor)
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.on_bad, self.seed = on_bad, seed
        self._seeds, self._threads = seeds, workers == "threads" or (
            workers == "auto" and getattr(dataset, "releases_gil", False)
            is True)
        self._choose_sampling(batch_size, bool(shuffle), sampler,
                              batch_sampler, drop_last)
        if self._own:
            arguments.warn_of_ranks()
        self.collate_fn = collate_fn or _collate.default_for(self._batched)
        self._progress = Progress(Meter(max_bad))
        self._progress.meter.iterable = self._iterable
        self._progress.meter.threads = self._threads
        self._seed_is_ours = seed is None
        self._replay = None if generator is None else Replay(generator)
        self._next_epoch = 0
        self._resume: tuple[int, int] | None = None
        self._cursor: EpochCursor | None = None
        self._iterator: Epoch | None = None
        self._latest: weakref.ref[Epoch] | None = None
        self._server: ServerProcess | None = None
        self._epochs: weakref.WeakSet[Epoch] = weakref.WeakSet()
        self._forks = arguments.is_fork(multiprocessing_context)
        if num_workers and not self._threads and not self._forks and \
                hasattr(os, "memfd_create") and not _server.starting_main:
            _servers.import_ahead(dataset, collate_fn, worker_init_fn)
        self._ready = True

    def _choose_sampling(self, batch_size: int | None, shuffle: bool,
                         sampler: Any, batch_sampler: Any,
                         drop_last: bool) -> None:
        self.shuffle, self._own = shuffle, False
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif not self._iterable and sampler is None:
            if shuffle and self.generator is not None:
                data: Any = importlib.import_module("torch.utils.data")
                sampler = data.RandomSampler(self.dataset,
                                             generator=self.generator)
            else:
                self._own = True
                sampler = OwnSampler(weakref.ref(self))
        if batch_size is not None and not self._iterable:
            batch_sampler = Batched(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self._batched = batch_sampler is not None or (
            self._iterable and batch_size is not None)

    # --- The loop.

    def __iter__(self) -> Epoch:
        if _server.starting_main:
            raise refused(
                "workers.main_guard", "this loop would start itself again",
                "the main module",
                "worker processes import the main module to find the class "
                "of the data set, and this import runs the loop again",
                "put the loop under: if __name__ == \"__main__\":")
        cursor = self._begin_at()
        epoch, step = cursor.epoch, cursor.step
        again = self._iterator
        if again is not None and not again.closed:
            again.stop_round()
        else:
            again = None
        start, skip = (0, step) if self._iterable else (step, 0)
        plan, length = self._plan(), self._length_or_none()
        batches = plan.batches(epoch, start)
        base = self._base_seed(plan, epoch)
        if self._replay is not None:
            batches = self._replay.noted(
                batches, epoch, length - start if length else None)
        if again is None:
            again = self._new_epoch(batches, base, skip)
        if isinstance(again.fetch, PooledFetch):
            again.fetch.start(batches, epoch, start, skip,
                             self._iterator is again)
        if self.persistent_workers:
            self._iterator = again
        again.begin(cursor, length)
        self._latest = weakref.ref(again)
        return again

    def _begin_at(self) -> EpochCursor:
        self._take_back()
        if self._resume is not None:
            (epoch, step), self._resume = self._resume, None
        else:
            epoch, step = self._next_epoch, 0
        self._next_epoch = epoch + 1
        if self._replay is not None:
            self._replay.begin(epoch)
        self._cursor = EpochCursor(epoch, step, self.generator
                          and self.generator.get_state())
        return self._cursor

    def _take_back(self) -> None:
        """An iteration that ended before it was asked for a batch loses
        nothing: Lightning, say, makes one to see whether it can."""
        cursor, self._cursor = self._cursor, None
        if cursor is None or cursor.asked or self._resume is not None:
            return
        latest = None if self._latest is None else self._latest()
        if latest is None or latest.closed or latest is self._iterator:
            self._resume = cursor.epoch, cursor.step
            if self.generator is not None:
                self.generator.set_state(cursor.drawn)

    def _new_epoch(self, batches: Iterator[Any], base: int,
                   skip: int) -> Epoch:
        settings = self._settings()
        pin = self.pin_memory and can_pin(self.pin_memory_device)
        fetch: InlineFetch | PooledFetch
        if self.num_workers == 0:
            fetch = InlineFetch(self.dataset, self._collate(), settings,
                                batches, self._iterable, skip,
                                self._progress.meter)
            if self._threads:
                self._progress.meter.transfer = NO_TRANSFER
        else:
            job = Job(base, self._iterable, settings, self._depth())
            fetch = PooledFetch(self._pool(job), self._policy(),
                                self._progress.meter)
        try:
            epoch = Epoch(fetch, self._progress, pin, self._depth(),
                          self._iterable, self.persistent_workers)
            self._epochs.add(epoch)
            _live.add(epoch)
        except BaseException:  # Ctrl-C
            fetch.close()
            raise
        return epoch

    def _pool(self, job: Job) -> ProcessPool | _threads.ThreadPool:
        arguments.warn_of_workers(self.num_workers)
        if self._threads:
            return _threads.ThreadPool(
                self.dataset, self._collate(), self.worker_init_fn,
                self.num_workers, job)
        if not hasattr(os, "memfd_create"):
            raise refused(
                "workers.platform", "cannot start worker processes",
                sys.platform, "this system has no memfd, which Linux has",
                "set workers=\"threads\"")
        things = self.dataset, self._collate(), self.worker_init_fn
        if self._forks:
            server = _servers.fork_here(things)
            _live.add(server)
            return ProcessPool(server, self.num_workers, job, ends_server=True)
        parts, main = _transfer.pickled(*things)
        if self._server is None or not self._server.usable():
            self._server = _servers.serve()
            _live.add(self._server)
        self._server.load(parts, main)
        return ProcessPool(self._server, self.num_workers, job)

    def _settings(self) -> Settings:
        length = None if self._iterable else arguments.length(self.dataset)
        return Settings(self._batched, self.drop_last, self.on_bad, length,
                        self._seed_now(), "torch" in sys.modules)

    def _policy(self) -> FetchPolicy:
        by_batch = self._seeds_by_batch()
        may_split = (
            self._batched and not self._iterable and self.num_workers > 1
            # collate_fn of the user's may ask which object an item is; in
            # parts, it would get copies.
            and (self._threads or by_batch and self._collate() is None)
            and not asks_many(self.dataset))
        return FetchPolicy(self._depth(), self.timeout, self.in_order,
                     self._iterable, self._iterable or not by_batch,
                     may_split,
                     self._seed_now() if by_batch else None,
                     self.batch_sampler is not None)

    def _seeds_by_batch(self) -> bool:
        if self._iterable:
            return False
        if self._seeds == "auto":
            return self.generator is None and self.worker_init_fn is None
        return self._seeds == "batch"

    def _depth(self) -> int:
        return max(1, (self.prefetch_factor or 0) * self.num_workers)

    def _collate(self) -> Callable[[Any], Any] | None:
        """None for what is done without one."""
        return _collate.unless_default(self.collate_fn, self._batched)

    # --- Order, seeds, length.

    def _order(self, drop_last: bool) -> Order:
        from ._engine import Order

        return Order(len(self.dataset), self.batch_size or 1,
                     self._seed_now(), self.shuffle, drop_last)

    def _plan(self) -> OwnPlan | SamplerPlan | StreamPlan:
        if self._iterable:
            return StreamPlan(self.batch_size)
        if self._own:
            return (OwnPlan if self._batched else OwnSingles)(
                self._order(bool(self.drop_last)))
        return SamplerPlan(self.batch_sampler if self._batched
                           else self.sampler)

    def _seed_now(self) -> int:
        if self.seed is None:
            self.seed = (drawn_seed() if self.generator is None
                         else self.generator.initial_seed() & MASK)
        return self.seed

    def _base_seed(self, plan: OwnPlan | SamplerPlan | StreamPlan,
                   epoch: int) -> int:
        """Of the workers. The user's generators and samplers see the draw
        that torch would make, which is then the loader's seed, too; our own
        order draws once."""
        if "torch" not in sys.modules or not (
                plan.replays or self.generator is not None):
            return base_seed(self._seed_now(), epoch)
        drawn = drawn_seed(self.generator)
        if self.seed is None and self.generator is None:
            self.seed = drawn
        return drawn

    def __len__(self) -> int:
        if not self._iterable and not self._own:
            ids: Any = self.batch_sampler if self._batched else self.sampler
            return len(ids)
        length = len(self.dataset)
        if self._iterable:
            self._progress.announced_length = length
        if self.batch_size is None:
            return length
        from ._engine import batches_of

        return batches_of(length, self.batch_size, bool(self.drop_last))

    def _length_or_none(self) -> int | None:
        announced = self._progress.announced_length
        try:
            return len(self)
        except TypeError:
            return None
        finally:
            self._progress.announced_length = announced

    def __repr__(self) -> str:
        return arguments.described(self, self._own, self._iterable,
                                   self._threads, self._length_or_none())

    def set_epoch(self, epoch: int) -> None:
        """The number of the epoch that comes next. Not needed: every loop
        takes the next one. A place within that epoch that was loaded stays."""
        if self._resume is None or self._resume[0] != epoch:
            self._next_epoch, self._resume, self._cursor = epoch, None, None
        if not self._own and hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    # --- State.

    def state_dict(self) -> dict[str, Any]:
        """Where the latest loop stands: at most 128 bytes of JSON. A batch
        counts when it was handed out, not when it was fetched."""
        state = self._state(self.generator.initial_seed()
                            if self.generator is not None
                            else self._seed_now())
        if state.lost:
            warnings.warn("no loader can resume from this state: "
                          f"{LOST_ORDER}", stacklevel=2)
        return state.saved()

    def _state(self, seed: int) -> State:
        length = None if self._iterable else arguments.length(self.dataset)
        order = (("i" if self._iterable else "o" if self._own else "r")
                 + ("s" if self.shuffle else "")
                 + ("d" if self.drop_last else ""))
        return State(self._progress.epoch, self._progress.step, seed & MASK,
                     -1 if length is None else length, self.batch_size or 0,
                     order, self._replay is not None and not self._replay.exact)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next loop continues there. With our own order no earlier batch is
        looked at; a sampler of the user's is drawn from again, an iterable
        data set is read again, up to that batch."""
        saved = state_of(state)
        saved.check_resumes_in(self._state(saved.seed))
        self._take_over(saved)
        self._progress.epoch, self._progress.step = saved.epoch, saved.step
        self._resume = saved.epoch, saved.step

    def _take_over(self, saved: State) -> None:
        if self._replay is not None:
            self.generator.manual_seed(saved.seed)
            for earlier in range(saved.epoch):
                plan = self._plan()
                drawn = plan.batches(earlier, 0)
                self._base_seed(plan, earlier)
                for _ in () if self._own or self._iterable else drawn:
                    pass
            self._replay.replayed(saved.epoch)
            return
        if self._own and not self._seed_is_ours:
            saved.check_seed(self.seed)
        self.seed = saved.seed

    # --- How it goes, what limits, and the end.

    def progress(self, *, epochs: int = 0,
                 file: TextIO | None = None) -> Iterator[Any]:
        """One epoch, with a line on standard error (or `file`) that says how
        it goes: redrawn four times a second on a terminal and in a notebook, a
        plain line every 30 s elsewhere. `epochs`, where there is a last one,
        is for the time that is left."""
        epoch = iter(self)
        line = Line(self._progress.meter, epoch.epoch, self._progress.step,
                    self._length_or_none() or 0, epochs)
        return Shown(shown(epoch, line, Screen(file)), epoch.explain)

    def shares(self) -> str:
        """Where the time of the loop went up to now, shortly: "AU 78 % <- data
        22 %". What is not waiting counts as the accelerator's work."""
        return shares(self._progress.meter)

    def stats(self) -> dict[str, Any]:
        """Numbers since the loader was made: batches, items, seconds that the
        loop waited and worked, what a worker gets done, bad samples."""
        return self._progress.meter.stats(self.num_workers)

    def explain(self) -> Explanation:
        """What limits, the loader ("data") or the loop ("compute"), by its
        measured numbers, and what to change."""
        return self._progress.meter.explain(
            self.num_workers, self.num_workers and self.prefetch_factor or 0)

    def report(self, path: str | os.PathLike[str] | None = None
               ) -> dict[str, Any]:
        """The numbers and the verdict of explain() as a dict, and with `path`
        also as a page (HTML) like that of a run."""
        return with_page(self.explain().report, path,
                         "a loop over a penstock.DataLoader")

    def close(self) -> None:
        """Ends worker processes and threads. A new loop starts them again."""
        for epoch in list(self._epochs):
            epoch.close()
        self._iterator = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FROZEN:
            raise ValueError(f"{name} attribute should not be set after "
                             f"{type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("_iterator", "_server", "_latest", "_epochs"):
            del state[name]
        if self._own:
            for name in ("sampler", "batch_sampler"):
                del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _ready=False)
        self._iterator = self._server = self._latest = None
        self._epochs = weakref.WeakSet()
        if self._own:
            self._choose_sampling(self.batch_size, self.shuffle, None, None,
                                  self.drop_last)
        self._ready = True


@atexit.register
def _close_all() -> None:
    for thing in sorted(_live, key=lambda thing: isinstance(
            thing, ServerProcess)):
        thing.close()
    stop()
