"""What penstock.DataLoader would give in place of a loader that was watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Protocol

if TYPE_CHECKING:
    from ._dataloader.meter import Meter
    from ._dataloader.transfer_cost import TransferCost

_LEAST_BATCHES = 8


class Made(Protocol):
    """How items were made, and put together to batches: in all, in seconds."""

    items: int
    item_s: float
    item_cpu_s: float
    collate_s: float
    collate_cpu_s: float


def drop_in_of(meter: Meter, made: Made, workers: int, moving: TransferCost,
               cpus: float, verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """{"workers", "samples_per_s", "gain", "prediction": True}: the rate of the
    same loop over penstock.DataLoader with the workers that the verdict asks
    for, else with those that there are, and its gain over the present rate.

    A prediction, from what was measured: making a batch (items and collate_fn)
    is shared by the workers; the loop's thread does its own work and receives;
    all of it needs processors. The longest of the three decides. None where
    too little was measured, or batches cannot be moved between processes.
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
    if to == 0:
        took = loop + make
    else:
        # Without workers, what the loop's process used holds the making, too.
        own_cpu = meter.cpu_s / counted - (0 if workers else make_cpu)
        took = max(loop + moving.loop_s, (make + moving.worker_s) / to,
                   (max(0.0, own_cpu) + make_cpu + moving.worker_s +
                    moving.loop_s) / max(cpus, 0.01))
    if took <= 0:
        return None
    rate = per_batch / took
    present = per_batch * counted / spent
    return {"workers": to, "samples_per_s": rate, "gain": rate / present - 1,
            "prediction": True}
