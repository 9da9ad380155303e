"""Where the ids of an epoch's batches come from."""
import itertools

from ..errors import refused


class OwnPlan:
    """Our own order: any step of any epoch is found without walking."""
    replays = False

    def __init__(self, order):
        self.order = order

    def batches(self, epoch, start):
        return (self.order.ids(epoch, step)
                for step in range(start, self.order.steps()))


class OwnSingles(OwnPlan):
    """The same for batch_size None: one id at a time."""

    def batches(self, epoch, start):
        return (ids[0] for ids in super().batches(epoch, start))


class SamplerPlan:
    """The user's sampler or batch sampler. To start in the middle, what was
    handed out is drawn again and dropped; no item is fetched for it."""
    replays = True

    def __init__(self, sampler):
        self.sampler = sampler

    def batches(self, epoch, start):
        return self._rest(iter(self.sampler), start)

    @staticmethod
    def _rest(drawn, start):
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

    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size = sampler, batch_size
        self.drop_last = drop_last

    def __iter__(self):
        drawn = iter(self.sampler)
        while ids := list(itertools.islice(drawn, self.batch_size)):
            if len(ids) < self.batch_size and self.drop_last:
                return
            yield ids

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)


class OwnSampler:
    """What `loader.sampler` is when the order is ours: the ids of the epoch
    that comes next."""

    def __init__(self, loader):
        self._loader = loader  # a weak reference

    def __iter__(self):
        loader = self._loader()
        order, epoch = loader._order(), loader._next_epoch
        for step in range(-(-order.n // order.batch_size)):
            yield from order.ids(epoch, step)

    def __len__(self):
        return self._loader()._order().n


class StreamPlan:
    """An iterable data set: as many items as a batch takes, without end."""
    replays = True

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def batches(self, epoch, start):
        return itertools.repeat(self.batch_size)
