"""What penstock.DataLoader would give in place of a loader that was watched."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Mapping, Protocol, Sequence

if TYPE_CHECKING:
    from ._dataloader.meter import Meter
    from ._dataloader.transfer_cost import TransferCost

_LEAST_BATCHES = 8
_STEADY_BATCHES = 256  # so many are gone through: the first ones count little
_CROWDED = 0.9  # of the time a thread could run, it had a processor for less
_IN_LOCK = 0.35  # of what was seen waiting
_FEWEST_SEEN = 10


class Made(Protocol):
    """How items were made, and put together to batches: in all, in seconds."""

    items: int
    item_s: float
    item_cpu_s: float
    collate_s: float
    collate_cpu_s: float
    # Of each batch, items and collate_fn, the newest ones in their order.
    batch_seconds: Sequence[float]
    # Looks at threads: running, in a lock, a file, the network, asleep, other.
    seen: tuple[int, ...]


def drop_in_of(meter: Meter, made: Made, workers: int, depth: int,
               moving: TransferCost, cpus: int, cpu_share: float,
               verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """{"workers", "samples_per_s", "gain", "up_to", "prediction": True}: the
    rate of the same loop over penstock.DataLoader with the workers that the
    verdict asks for, else with those that there are, and its gain over the
    present rate.

    A prediction, from what was measured: the batches are made again, each in
    its own time, by the workers, and handed out in their order (steady_s);
    the loop's thread does its own work and receives; all of it needs
    processors. The longest decides. `depth` is the prefetch_factor, `cpu_share`
    the share of a processor that a thread gets that can run.

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

    def rate(processors: float, make_share: float) -> float:
        """Of a batch's making, `make_share` is left of the wall time."""
        if to == 0:
            return per_batch / max(loop + make, 1e-9)
        # Without workers, what the loop's process used holds the making, too.
        own_cpu = meter.cpu_s / counted - (0 if workers else make_cpu)
        times = made.batch_seconds or [make]
        took = max(
            steady_s([make_share * time + moving.worker_s for time in times],
                     to, depth, loop + moving.loop_s),
            (max(0.0, own_cpu) + make_cpu + moving.worker_s + moving.loop_s)
            / max(processors, 0.01))
        return per_batch / max(took, 1e-9)

    least = most = rate(cpus, 1.0)
    why = []
    if to and cpu_share < _CROWDED:
        now = min(cpus, workers + 1 if workers else 1)
        before, then = processors_got(now, to + 1, cpus, cpu_share)
        share = then / min(cpus, to + 1)
        waited = max(0.0, make_cpu / cpu_share - make_cpu)
        got = max(0.0, make_cpu / share - make_cpu)
        part = 1 + (got - waited) / make if make else 1.0
        rates = (rate(before, 1.0), rate(then, max(part, 0.0)))
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
