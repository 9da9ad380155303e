"""Where the ids of an epoch's batches come from."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import refused

if TYPE_CHECKING:
    from .._engine import Order


class OwnPlan:
    """Our own order: any step of any epoch is found without walking."""
    replays = False

    def __init__(self, order: Order) -> None:
        self.order = order

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        return (self.order.ids(epoch, step)
                for step in range(start, self.order.steps()))


class OwnSingles(OwnPlan):
    """The same for batch_size None: one id at a time."""

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        return (ids[0] for ids in super().batches(epoch, start))


class SamplerPlan:
    """The user's sampler or batch sampler. To start in the middle, what was
    handed out is drawn again and dropped; no item is fetched for it."""
    replays = True

    def __init__(self, sampler: Iterable[Any]) -> None:
        self.sampler = sampler

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        return self._rest(iter(self.sampler), start)

    @staticmethod
    def _rest(drawn: Iterator[Any], start: int) -> Iterator[Any]:
        for dropped in range(start):
            if next(drawn, drawn) is drawn:
                raise refused(
                    "resume.other_data", "cannot resume in the middle of the "
                    "epoch", f"batch {start}",
                    f"the sampler ended after {dropped} batches",
                    "resume with the sampler and data set of the saved run")
        yield from drawn


class Batched:
    """The ids of a sampler, so many at a time."""

    def __init__(self, sampler: Any, batch_size: int,
                 drop_last: bool) -> None:
        self.sampler, self.batch_size = sampler, batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        drawn = iter(self.sampler)
        while ids := list(itertools.islice(drawn, self.batch_size)):
            if len(ids) < self.batch_size and self.drop_last:
                return
            yield ids

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        from .._engine import batches_of

        return batches_of(len(self.sampler), self.batch_size,
                          bool(self.drop_last))


class OwnSampler:
    """What `loader.sampler` is when the order is ours: the ids of the epoch
    that comes next."""

    def __init__(self, loader: weakref.ref[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[int]:
        loader: Any = self._loader()
        order, epoch = loader._order(drop_last=False), loader._next_epoch
        for step in range(order.steps()):
            yield from order.ids(epoch, step)

    def set_epoch(self, epoch: int) -> None:
        loader: Any = self._loader()
        loader.set_epoch(epoch)

    def __len__(self) -> int:
        loader: Any = self._loader()
        return len(loader.dataset)


class StreamPlan:
    """An iterable data set: as many items as a batch takes, without end."""
    replays = True

    def __init__(self, batch_size: int | None) -> None:
        self.batch_size = batch_size

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        return itertools.repeat(self.batch_size)
