#!/usr/bin/env python3
"""How fast do shuffled batches of small rows come in Python?

One float32 array of rows of 16 B to 16 KiB, in batches of 64 to 8192, whole
epochs of 12 and more, both sides paying for their permutation: (a) `torch.randperm` and
`index_select`, (b) the same into a ring of as many buffers as a loader has
(`out=`), (c) into one buffer, which stays in the processor's cache, (d)
penstock.Loader with 0, 1 and 2 threads, (e) `loader.into()`, into one buffer.
All run in turns in one process; a figure is the median over the repeats of
microseconds a batch. First each way delivers an epoch whose rows are compared.

Run it in the environment of setup.sh with the package; bench/run does.
"""
import argparse
import itertools
import statistics
import time

import numpy
import torch

import penstock
from peer_result import print_result, torch_machine

ROW_BYTES = (16, 136, 1024, 16384)
BATCHES = (64, 1024, 8192)
RING = 4


def by_index_select(x, batch, buffers):
    order = torch.randperm(len(x))
    for n, at in enumerate(range(0, len(order) - batch + 1, batch)):
        rows = order[at:at + batch]
        if buffers:
            out = buffers[n % len(buffers)]
            torch.index_select(x, 0, rows, out=out)
            yield out
        else:
            yield x.index_select(0, rows)


def by_penstock(loader):
    for batch in loader:
        yield batch["x"]


def by_into(loader, into):
    for _ in loader.into(into):
        yield into["x"]


def check(name, epoch, rows):
    """Every row comes once: its first number is its own."""
    seen = numpy.concatenate([numpy.asarray(batch)[:, 0].copy()
                              for batch in epoch])
    assert len(numpy.unique(seen)) == len(seen) > rows * 0.9, name


def microseconds(epoch, batches, batch_bytes):
    """A batch of an epoch, counted from one epoch's batch RING to the next
    one's: threads that work ahead then gain and give as many batches, and a
    permutation is in it. Those batches do not fall into the next way's time.
    """
    both = itertools.chain(epoch(), epoch())
    for _ in itertools.islice(both, RING):
        pass
    start = time.perf_counter()
    for _ in itertools.islice(both, batches):
        pass
    taken = time.perf_counter() - start
    time.sleep(0.005 + RING * batch_bytes / 1e9)
    return taken / batches * 1e6


def cell(row_bytes, batch, repeats, mebibytes):
    rows = max(12 * batch, min(400_000, mebibytes * 2**20 // row_bytes))
    rows -= rows % batch
    array = numpy.zeros((rows, row_bytes // 4), "float32")
    array[:, 0] = numpy.arange(rows)
    x = torch.from_numpy(array)
    buffers = [torch.empty((batch, array.shape[1])) for _ in range(RING)]
    loaders = {n: penstock.Loader({"x": array}, batch_size=batch, shuffle=True,
                                  num_workers=n, device="cpu")
               for n in (0, 1, 2)}
    ways = {"index_select": lambda: by_index_select(x, batch, []),
            "index_select, out= a ring": lambda: by_index_select(
                x, batch, buffers),
            "index_select, out= one buffer": lambda: by_index_select(
                x, batch, buffers[:1])}
    for n, loader in loaders.items():
        ways[f"penstock, num_workers={n}"] = (
            lambda loader=loader: by_penstock(loader))
    ways["penstock, into one buffer"] = lambda: by_into(
        loaders[0], {"x": buffers[0]})
    for name, epoch in ways.items():
        check(name, epoch(), rows)
    found = {name: [] for name in ways}
    for _ in range(repeats):
        for name, epoch in ways.items():
            found[name].append(microseconds(epoch, rows // batch,
                                            batch * row_bytes))
    for loader in loaders.values():
        loader.close()
    medians = {name: statistics.median(one) for name, one in found.items()}
    ours = min(medians[f"penstock, num_workers={n}"] for n in (0, 1, 2))
    plain = medians["index_select"]
    ring = medians["index_select, out= a ring"]
    into = medians["penstock, into one buffer"]
    return {
        "row_bytes": row_bytes, "batch_size": batch, "rows": rows,
        "us_per_batch": {name: round(one, 2) for name, one in medians.items()},
        "batches_against_the_better_of_index_select":
            round(min(plain, ring) / ours, 2),
        "into_against_index_select": round(min(plain, ring) / into, 2),
        "into_against_one_buffer":
            round(medians["index_select, out= one buffer"] / into, 2),
        "two_threads_against_none":
            round(medians["penstock, num_workers=0"]
                  / medians["penstock, num_workers=2"], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--mebibytes", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1, help="torch's")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print_result(
        "small_rows", __doc__,
        f"bench/run small_rows --repeats {options.repeats} "
        f"--mebibytes {options.mebibytes} "
        f"--threads {options.threads}",
        {"machine": torch_machine(),
         "must_reach": {
             "batches_against_the_better_of_index_select":
                 "1.0 at 1024 and 8192, 0.6 at 64",
             "into_against_index_select": "1.0 at 64",
             "into_against_one_buffer": "0.9",
             "two_threads_against_none": "0.95"},
         "results": [cell(row_bytes, batch, options.repeats, options.mebibytes)
                     for row_bytes in ROW_BYTES for batch in BATCHES]})


if __name__ == "__main__":
    main()
