#!/usr/bin/env python3
"""What does the start of a DataLoader with workers cost, of the first and the
second one of a program and of later epochs, and how much memory do three take,
beside torch's own?

A torch.utils.data.Dataset of items of 16 KB without work, batches of 64, two
workers. Every run is a process of its own, which has imported torch and the
loader before the clock starts; the sides take turns. The clock of a loader
starts before it is made and ends with its first batch; that of an epoch starts
with iter(). Memory is the proportional set size of the program and all below
it, while three loaders have given a batch each. The default of Penstock forks
its workers from a process that all loaders share, as forkserver does; with
multiprocessing_context="fork" from the program itself, as torch's fork does.

Run it in the environment of setup.sh, with penstock importable (--package).
"""
import json
import os
import sys
import time

import torch

from dataloader_runs import (BATCH, begin, in_turns, options_of, print_runs,
                             pss_bytes, run, tree)
from dataloader_set_torch import BusyDataset

ITEMS, EPOCHS = 6400, 5
SIDES = ("penstock", "penstock_fork", "torch_forkserver", "torch_fork")


def loader_of(side, persistent):
    whose, _, method = side.partition("_")
    named = {"multiprocessing_context": method} if method else {}
    if whose == "torch":
        kind = torch.utils.data.DataLoader
    else:
        kind = sys.modules["penstock"].DataLoader
    return kind(BusyDataset(ITEMS, 0), batch_size=BATCH, num_workers=2,
                persistent_workers=persistent, **named)


def one(side, persistent):
    """One run, in this process."""
    result, loaders, loops = {}, [], []
    for name in ("first_loader_s", "second_loader_s", "third_loader_s"):
        start = time.perf_counter()
        loaders.append(loader_of(side, persistent))
        loops.append(iter(loaders[-1]))
        batch = next(loops[-1])
        result[name] = time.perf_counter() - start
        assert len(batch[1]) == BATCH
    time.sleep(0.5)  # for the batches that are fetched ahead
    pids = tree(os.getpid())
    result["processes"] = len(pids)
    result["three_loaders_pss_bytes"] = pss_bytes(pids | {os.getpid()})
    for loop in loops:
        for batch in loop:
            pass
    del loop
    loops.clear()
    taken = []
    for _ in range(EPOCHS):
        start = time.perf_counter()
        loop = iter(loaders[0])
        next(loop)
        taken.append(time.perf_counter() - start)
        for batch in loop:
            pass
        del loop
    result["later_epoch_s"] = sorted(taken)[EPOCHS // 2]
    return result


def verdict(sides):
    def median(side, name):
        return sides[side][name]["median"]

    def said(what, value, most):
        return {"what": what, "value": value, "must_reach": f"<= {most}",
                "reached": value <= most}

    def ratio(name, ours, theirs):
        return median(ours, name) / median(theirs, name)
    return [
        said("first loader / torch's with forkserver",
             ratio("first_loader_s", "penstock", "torch_forkserver"), 1),
        said("second loader, seconds",
             median("penstock", "second_loader_s"), 0.15),
        said("second loader / torch's with fork",
             ratio("second_loader_s", "penstock", "torch_fork"), 1),
        said("later epochs / torch's with fork",
             ratio("later_epoch_s", "penstock", "torch_fork"), 1),
        said("memory of three loaders / torch's with fork",
             ratio("three_loaders_pss_bytes", "penstock", "torch_fork"), 1.6),
        said("first loader, forked / torch's with fork",
             ratio("first_loader_s", "penstock_fork", "torch_fork"), 1)]


def main():
    options = options_of(__doc__, 5, nargs=2, metavar=(
        "SIDE", "PERSISTENT")).parse_args()
    begin(options)
    if options.one:
        side, persistent = options.one
        print(json.dumps(one(side, bool(int(persistent)))))
        return
    results = []
    for persistent in (0, 1):
        entry = {"persistent_workers": bool(persistent)}
        entry |= in_turns(SIDES, options.repeats, lambda side: run(
            __file__, options, side, persistent))
        entry["compared"] = verdict(entry)
        results.append(entry)
    print_runs("peers_dataloader_start", __doc__,
               f"bench/run peers_dataloader_start --repeats {options.repeats}",
               options, {"results": results})


if __name__ == "__main__":
    main()
