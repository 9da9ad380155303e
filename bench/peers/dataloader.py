#!/usr/bin/env python3
"""How fast is a Python data set through penstock.DataLoader, when is its first
batch there, and how much memory do its helpers take, beside torch's own?

An item costs 2 ms of processor time in Python and holds 16 KB; 64 items are a
batch. Neither side forks the process of the loop: torch starts its workers by
forkserver, Penstock by its server process. Every run is a process of its own,
which has imported torch and the loader before the clock starts; the sides take
turns. The clock of the first batch starts before the loader is made. Rate: items per
second from batch 8 to the last but one (an even number of batches, since two
workers of torch end theirs together), and the processor time of all processes
over the same batches. Memory: the proportional set size of all processes but
that of the loop, while 4 workers are at work.

The data set is a plain class without torch; `torch_dataset` is the same as a
torch.utils.data.Dataset, for which both sides must import torch in the
helpers. `next_epoch` is the first batch of a second loop over the same loader.
torch with fork is shown for comparison, where it is faster and where not. What
both deliver is compared first.

Run it in the environment of setup.sh, with penstock importable (--package).
"""
import json
import os
import sys
import time

import torch

from dataloader_runs import (BATCH, begin, cpu_s, in_turns, options_of,
                             print_runs, pss_bytes, run, tree)
from dataloader_set import Busy
from dataloader_set_torch import BusyDataset

WORK_S = 0.002
FROM = 8  # the batch from which the rate is taken
DATA = {"plain": Busy, "torch_dataset": BusyDataset}


def loader_of(side, data, workers):
    named = {"batch_size": BATCH, "num_workers": workers}
    if side == "penstock":
        return sys.modules["penstock"].DataLoader(data, **named)
    return torch.utils.data.DataLoader(
        data, multiprocessing_context=side.removeprefix("torch_"), **named)


def one(side, data, workers, items, memory):
    """One run, in this process."""
    made = DATA[data](items, WORK_S)
    start = time.perf_counter()
    loader = loader_of(side, made, workers)
    loop = iter(loader)
    count = len(next(loop)[1])
    result = {"first_batch_s": time.perf_counter() - start}
    last = items // BATCH - 2
    for number, batch in enumerate(loop, 1):
        count += len(batch[1])
        if number in (FROM, last):
            pids = tree(os.getpid()) | {os.getpid()}
            now, cpu = time.perf_counter(), cpu_s(pids)
            if number == last:
                timed = (last - FROM) * BATCH
                result["items_per_s"] = timed / (now - begun[0])
                result["cpu_ms_per_item"] = (cpu - begun[1]) / timed * 1000
            begun = now, cpu
        if memory and number == last // 2:
            pids = tree(os.getpid())
            result["processes"] = len(pids)
            result["helpers_pss_bytes"] = pss_bytes(pids)
            result["total_pss_bytes"] = pss_bytes(pids | {os.getpid()})
    assert count == items
    result["epoch_s"] = time.perf_counter() - start
    if not memory:
        start = time.perf_counter()
        next(iter(loader))
        result["next_epoch_s"] = time.perf_counter() - start
    return result


def check():
    """Both deliver the same tensors, in the same order."""
    data = Busy(300, 0)
    ours = list(loader_of("penstock", data, 2))
    theirs = list(loader_of("torch_fork", data, 2))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert type(a) is type(b) and len(a) == len(b)
        assert all(torch.equal(x, y) and x.dtype == y.dtype
                   for x, y in zip(a, b))
    return len(data)


def ratio(ours, theirs, name):
    return ours[name]["median"] / theirs[name]["median"]


def verdict(data, ours, theirs, memory):
    """What must be reached holds for the plain data set."""
    def said(what, name, holds, must):
        value = ratio(ours, theirs, name)
        entry = {"what": what, "value": value}
        if data == "plain":
            entry |= {"must_reach": must, "reached": holds(value)}
        return entry
    if memory:
        return [said("memory of the helpers / torch's", "helpers_pss_bytes",
                     lambda value: value <= 1, "<= 1")]
    return [said("items per second / torch's", "items_per_s",
                 lambda value: value >= 1, ">= 1"),
            said("time of the first batch / torch's", "first_batch_s",
                 lambda value: value <= 0.5, "<= 0.5")]


def measure(options):
    results = []
    for data, workers, memory, sides in (
            ("plain", 2, False, ("penstock", "torch_forkserver",
                                 "torch_fork")),
            ("torch_dataset", 2, False, ("penstock", "torch_forkserver",
                                         "torch_fork")),
            ("plain", 4, True, ("penstock", "torch_forkserver",
                                "torch_fork")),
            ("torch_dataset", 4, True, ("penstock", "torch_forkserver"))):
        more = ["--memory"] if memory else []
        entry = {"data_set": data, "workers": workers, "measured": "memory"
                 if memory else "time"}
        entry |= in_turns(sides, options.repeats, lambda side: run(
            __file__, options, side, data, workers, options.items, *more))
        entry["compared_with_forkserver"] = verdict(
            data, entry["penstock"], entry["torch_forkserver"], memory)
        results.append(entry)
    return results


def main():
    parser = options_of(__doc__, 5, nargs=4, metavar=("SIDE", "DATA", "WORKERS",
                                                      "ITEMS"))
    parser.add_argument("--items", type=int, default=3200)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    begin(options)
    if options.one:
        side, data, workers, items = options.one
        print(json.dumps(one(side, data, int(workers), int(items),
                             options.memory)))
        return
    items = check()
    print_runs(
        "peers_dataloader", __doc__,
        f"bench/run peers_dataloader --items {options.items} --repeats "
        f"{options.repeats}", options,
        {"equal": {"items": items}, "item_ms": WORK_S * 1000,
         "results": measure(options)})


if __name__ == "__main__":
    main()
