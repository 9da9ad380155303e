#!/usr/bin/env python3
"""What does format="torch" cost beside batch.torch(), over the same rows?

Batches of 256 rows of four fields out of memory, in the loop's own thread, and
a loop that takes the first element of each field. Both ways take turns, first
one and then the other, in as many pairs as asked for. Each pair gives a ratio.
Needs torch.
"""
import argparse
import random
import sys
import time

import numpy
import torch

import penstock
from result import print_result, processor, spread

ROWS, BATCH = 65536, 256
NAMES = ("a", "b", "c", "y")


def plain(loader):
    for batch in loader:
        a, b, c, y = batch.torch().values()
        a[0], b[0], c[0], y[0]


def formatted(loader):
    for a, b, c, y in loader:
        a[0], b[0], c[0], y[0]


def seconds(take, loader):
    begin = time.perf_counter()
    take(loader)
    return time.perf_counter() - begin


def main():
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=40)
    pairs = arguments.parse_args().pairs
    torch.set_num_threads(1)
    draw = numpy.random.default_rng(1)
    arrays = {name: draw.random((ROWS, 16), dtype=numpy.float32)
              for name in NAMES}
    settings = {"batch_size": BATCH, "shuffle": True, "num_workers": 0}
    ways = [(plain, penstock.Loader(arrays, **settings)),
            (formatted, penstock.Loader(arrays, format="torch", **settings))]
    for _ in range(3):
        for way in ways:
            seconds(*way)
    ratios, times = [], ([], [])
    order = [0, 1]
    for _ in range(pairs):
        random.shuffle(order)
        took = {at: seconds(*ways[at]) for at in order}
        ratios.append(took[1] / took[0])
        for at in order:
            times[at].append(1e6 * took[at] * BATCH / ROWS)
    print_result("formats", __doc__, " ".join(["bench/run", "formats",
                                               *sys.argv[1:]]), {
        "machine": processor(), "versions": {"torch": torch.__version__},
        "results": [
            {"way": name, "us_per_batch": spread(of)} for name, of in zip(
                ("batch.torch()", 'format="torch"'), times)],
        "ratio": spread(ratios)})


if __name__ == "__main__":
    main()
