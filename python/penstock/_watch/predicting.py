"""What penstock.DataLoader would give in place of a loader that was watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Protocol, Sequence

from .. import _engine

if TYPE_CHECKING:
    from .._dataloader.meter import Meter
    from .._dataloader.transfer_cost import TransferCost

_LEAST_BATCHES = 8
_CROWDED = 0.9  # of the time a thread could run, it had a processor for less
_MORE_THAN_LEFT = 1.1  # of the processors that are idle or its own


class Made(Protocol):
    """How items were made, and put together to batches: in all, in seconds."""

    items: int
    item_s: float
    item_cpu_s: float
    collate_s: float
    collate_cpu_s: float
    # Of looks at threads: running, in a lock, in one of their own process, a
    # file, the network, asleep, elsewhere; and how many looks.
    seen: tuple[int, ...]

    @property
    def batch_seconds(self) -> Sequence[float]:
        """Of each batch, items and collate_fn, the newest ones in their
        order."""
        ...


class Loop(NamedTuple):
    """The loop that was watched."""

    meter: Meter
    # The waits for the first batches of later epochs, which the meter leaves
    # out, as far as these were made meanwhile.
    again_made_s: float
    workers: int
    depth: int  # prefetch_factor
    epoch: int  # batches; 0: not known, or without end


class Processors(NamedTuple):
    """What there is to compute with, while the loop runs."""

    cpus: int  # that it may use
    share: float = 1.0  # of a processor, that a thread gets that can run
    idle: float | None = None  # of the machine's; None: unknown


def drop_in_of(loop: Loop, made: Made, moving: TransferCost,
               processors: Processors, verdict: Mapping[str, Any]
               ) -> dict[str, Any] | None:
    """{"workers", "samples_per_s", "gain", "up_to", "prediction": True}: the
    rate of the same loop over penstock.DataLoader with the workers that the
    verdict asks for, else with those that there are, and its gain over the
    present rate.

    A prediction, from what was measured: the batches are made again, each in
    its own time, by the workers, and handed out in their order, as for the
    verdict (seconds_in_order() of the engine); the loop's thread does its own
    work and receives; all of it needs processors. The longest decides.

    Where it cannot be told, `samples_per_s` and `gain` are the least of it, and
    `up_to` has the most: {"samples_per_s", "gain", "why"}. So it is where
    other work has the processors (the kernel may divide them by threads or by
    groups of processes), and where one lock is waited for. None where too
    little was measured, or batches cannot be moved between processes.
    """
    now, workers = _measured(loop, made), loop.workers
    if now is None or moving.why_not:
        return None
    to = next((action["to"] for action in verdict["actions"]
               if action["knob"] == "num_workers"), workers)
    there = _There(now, list(made.batch_seconds) or [now.make_s], to, loop,
                   moving)
    least = most = there.rate(processors.cpus)
    why = []
    left = processors.cpus if processors.idle is None else \
        min(processors.cpus, now.processors + processors.idle)
    if to and (processors.share < _CROWDED or
               there.cpu_s * least / now.rows > _MORE_THAN_LEFT * left):
        rates = _beside_other_work(there, workers, left, processors)
        least, most = min(rates), max(rates)
        why.append("the machine is too busy with other work for a prediction")
    if to > workers and _engine.waits_in_lock(list(made.seen)):
        least = min(least, now.rate)
        why.append("more workers may wait for the same lock")
    up_to = {"samples_per_s": most, "gain": most / now.rate - 1,
             "why": "; ".join(why)} if why and most > least else None
    return {"workers": to, "samples_per_s": least, "gain": least / now.rate - 1,
            "up_to": up_to, "prediction": True}


class _Measured(NamedTuple):
    """What a batch took on the average, in the loop that is watched."""

    rows: float
    make_s: float
    make_cpu_s: float
    loop_s: float
    own_cpu_s: float  # of the loop's process, without the making
    rate: float  # samples per second
    processors: float  # that were used


def _measured(loop: Loop, made: Made) -> _Measured | None:
    meter = loop.meter
    spent = meter.wait_s + meter.loop_s + loop.again_made_s
    if meter.batches < _LEAST_BATCHES or not spent or not made.items:
        return None
    counted = meter.batches - 1  # the first is no part of the waiting
    rows = meter.items / meter.batches
    batches_made = made.items / rows
    make_cpu = (made.item_cpu_s + made.collate_cpu_s) / batches_made
    if meter.worker_items:  # threads of their own may work for workers
        make_cpu = max(make_cpu,
                       meter.worker_cpu_s * rows / meter.worker_items)
    # Without workers, what the loop's process used holds the making, too.
    own_cpu = max(0.0, meter.cpu_s / counted - (0 if loop.workers else make_cpu))
    return _Measured(
        rows=rows, make_s=(made.item_s + made.collate_s) / batches_made,
        make_cpu_s=make_cpu, loop_s=meter.loop_s / counted, own_cpu_s=own_cpu,
        rate=rows * counted / spent,
        processors=(own_cpu + make_cpu) * counted / spent)


class _There(NamedTuple):
    """The same loop over penstock.DataLoader."""

    now: _Measured
    batch_seconds: Sequence[float]
    workers: int
    loop: Loop
    moving: TransferCost

    @property
    def cpu_s(self) -> float:
        """Of all processors, for a batch."""
        moved = self.moving.worker_s + self.moving.loop_s
        return self.now.own_cpu_s + self.now.make_cpu_s + \
            (moved if self.workers else 0)

    def rate(self, processors: float, make_share: float = 1.0) -> float:
        """Samples per second with so many processors, where `make_share` of the
        time that making a batch takes now is left."""
        now = self.now
        if self.workers == 0:
            # Steps of a GPU are done while batches are made.
            took = max(now.make_s, now.loop_s) if self.loop.meter.gpu_steps \
                else now.make_s + now.loop_s
            return now.rows / max(took, 1e-9)
        made = _engine.seconds_in_order(
            [make_share * time + self.moving.worker_s
             for time in self.batch_seconds], self.workers, self.loop.depth,
            now.loop_s + self.moving.loop_s, self.loop.epoch)
        return now.rows / max(made, self.cpu_s / max(processors, 0.01), 1e-9)


def _beside_other_work(there: _There, workers: int, left: float,
                       processors: Processors) -> tuple[float, float]:
    """Rates where the kernel divides the processors by groups of processes, and
    where it does so by threads."""
    cpus, share, make_cpu = processors.cpus, processors.share, \
        there.now.make_cpu_s
    by_groups, by_threads = processors_got(
        min(cpus, workers + 1 if workers else 1), there.workers + 1, cpus, share)
    by_groups = max(by_groups, min(there.now.processors, left))
    waited = max(0.0, make_cpu / share - make_cpu)
    got = max(0.0, make_cpu * min(cpus, there.workers + 1) / by_threads - make_cpu)
    part = 1 + (got - waited) / there.now.make_s if there.now.make_s else 1.0
    return (there.rate(min(by_groups, left)),
            there.rate(by_threads, max(part, 0.0)))


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
