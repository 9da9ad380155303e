"""What penstock.DataLoader would give in place of a loader that was watched."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Protocol, Sequence

if TYPE_CHECKING:
    from ._dataloader.meter import Meter
    from ._dataloader.transfer_cost import TransferCost

_LEAST_BATCHES = 8
_STEADY_BATCHES = 256  # so many are gone through: the first ones count little
_CROWDED = 0.9  # of the time a thread could run, it had a processor for less
_MORE_THAN_LEFT = 1.1  # of the processors that are idle or its own
_IN_LOCK = 0.35  # of what was seen waiting
_FEWEST_SEEN = 10


class Made(Protocol):
    """How items were made, and put together to batches: in all, in seconds."""

    items: int
    item_s: float
    item_cpu_s: float
    collate_s: float
    collate_cpu_s: float
    # Looks at threads: running, in a lock, a file, the network, asleep, other.
    seen: tuple[int, ...]

    @property
    def batch_seconds(self) -> Sequence[float]:
        """Of each batch, items and collate_fn, the newest ones in their
        order."""
        ...


class Processors(NamedTuple):
    """What there is to compute with, while the loop runs."""

    cpus: int  # that it may use
    share: float = 1.0  # of a processor, that a thread gets that can run
    idle: float | None = None  # of the machine's; None: unknown


def drop_in_of(meter: Meter, made: Made, workers: int, depth: int,
               moving: TransferCost, processors: Processors,
               verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """{"workers", "samples_per_s", "gain", "up_to", "prediction": True}: the
    rate of the same loop over penstock.DataLoader with the workers that the
    verdict asks for, else with those that there are, and its gain over the
    present rate.

    A prediction, from what was measured: the batches are made again, each in
    its own time, by the workers, and handed out in their order (steady_s);
    the loop's thread does its own work and receives; all of it needs
    processors. The longest decides. `depth` is the prefetch_factor.

    Where it cannot be told, `samples_per_s` and `gain` are the least of it, and
    `up_to` has the most: {"samples_per_s", "gain", "why"}. So it is where
    other work has the processors (the kernel may divide them by threads or by
    groups of processes), and where one lock is waited for. None where too
    little was measured, or batches cannot be moved between processes.
    """
    spent = meter.wait_s + meter.loop_s
    if meter.batches < _LEAST_BATCHES or not spent or not made.items:
        return None
    if moving.why_not:
        return None
    counted = meter.batches - 1  # the first is no part of the waiting
    per_batch = meter.items / meter.batches
    batches_made = made.items / per_batch
    make = (made.item_s + made.collate_s) / batches_made
    make_cpu = (made.item_cpu_s + made.collate_cpu_s) / batches_made
    loop = meter.loop_s / counted
    to = next((action["to"] for action in verdict["actions"]
               if action["knob"] == "num_workers"), workers)
    present = per_batch * counted / spent

    # Without workers, what the loop's process used holds the making, too.
    own_cpu = max(0.0, meter.cpu_s / counted - (0 if workers else make_cpu))
    cpu = own_cpu + make_cpu + (moving.worker_s + moving.loop_s if to else 0)

    def rate(to_be_had: float, make_share: float = 1.0) -> float:
        """Of a batch's making, `make_share` is left of the wall time."""
        if to == 0:  # on a GPU, steps are done while batches are made
            took = max(make, loop) if meter.gpu_steps else make + loop
            return per_batch / max(took, 1e-9)
        times = made.batch_seconds or [make]
        took = max(
            steady_s([make_share * time + moving.worker_s for time in times],
                     to, depth, loop + moving.loop_s),
            cpu / max(to_be_had, 0.01))
        return per_batch / max(took, 1e-9)

    cpus, share = processors.cpus, processors.share
    least = most = rate(cpus)
    why = []
    had = (own_cpu + make_cpu) * counted / spent
    left = cpus if processors.idle is None else \
        min(cpus, had + processors.idle)
    if to and (share < _CROWDED or
               cpu * least / per_batch > _MORE_THAN_LEFT * left):
        now, then = processors_got(min(cpus, workers + 1 if workers else 1),
                                   to + 1, cpus, share)
        waited = max(0.0, make_cpu / share - make_cpu)
        got = max(0.0, make_cpu * min(cpus, to + 1) / then - make_cpu)
        part = 1 + (got - waited) / make if make else 1.0
        rates = (rate(min(now, left)), rate(then, max(part, 0.0)))
        least, most = min(rates), max(rates)
        why.append("other work has the processors, and may leave it no more "
                   "of them")
    if to > workers and waits_in_lock(made.seen):
        least = min(least, present)
        why.append("more workers may wait for the same lock")
    up_to = {"samples_per_s": most, "gain": most / present - 1,
             "why": "; ".join(why)} if why and most > least else None
    return {"workers": to, "samples_per_s": least, "gain": least / present - 1,
            "up_to": up_to, "prediction": True}


def steady_s(times: Sequence[float], workers: int, depth: int,
             loop_s: float) -> float:
    """Seconds per batch of a loop whose batches take so long to make, over and
    over, by so many workers, each the next one as soon as it is free, at most
    `depth` for each on their way, handed out in their order: a slow one holds
    up those behind it."""
    count = max(_STEADY_BATCHES, len(times))
    on_their_way = max(1, workers * depth)
    free = [0.0] * workers
    taken: list[float] = []
    left = 0.0  # the loop is done with the batch before
    for batch in range(count):
        asked = taken[batch - on_their_way] if batch >= on_their_way else 0.0
        done = max(free[0], asked) + times[batch % len(times)]
        heapq.heapreplace(free, done)
        taken.append(max(done, left))
        left = taken[-1] + loop_s
    return (taken[-1] - taken[0]) / (count - 1)


def processors_got(threads_now: int, threads_then: int, cpus: int,
                   share: float) -> tuple[float, float]:
    """Processors that so many threads get beside other work, when each of
    `threads_now` got `share` of one: as many as now, where the kernel divides
    them by groups of processes, and more where it does so by threads."""
    now = share * min(cpus, threads_now)
    others = max(0.0, cpus / share - threads_now)
    then = min(threads_then, cpus) if threads_then + others <= cpus else \
        cpus * threads_then / (threads_then + others)
    return now, max(now, min(then, float(cpus)))


def waits_in_lock(seen: Sequence[int]) -> bool:
    """Whether a lock is a good part of what items wait for."""
    waiting = sum(seen[1:])
    return waiting >= _FEWEST_SEEN and seen[1] >= _IN_LOCK * waiting
