#!/usr/bin/env python3
"""How fast do shuffled batches of arrays in memory come in Python?

Rows of 1 KiB of float32 and a label, in batches of 8192, as torch tensors, by
(a) torch's DataLoader over a TensorDataset, which stacks the rows one by one,
(b) a loop of `index_select` by hand, with a permutation per epoch, (c) the same
into memory that is used again (`out=`), and (d) penstock.Loader with 0, 1 and 2
threads. All run in turns in one process; rates are medians over the repeats. A
DataLoader epoch is long: a part of it is timed. First each way delivers an
epoch whose rows are compared. (c) writes to one batch's memory over and over,
which stays in the processor's cache; it has nothing ready ahead.

Run it in the environment of setup.sh with the package; bench/run does.
"""
import argparse
import statistics
import time

import numpy
import torch
from torch.utils.data import DataLoader, TensorDataset

import penstock
from peer_result import print_result, spread, torch_machine

FEATURES = 256  # of 4 bytes


def arrays_of(rows):
    x = numpy.random.default_rng(1).random((rows, FEATURES), "float32")
    return {"x": x, "y": numpy.arange(rows)}


def by_index_select(tensors, batch):
    order = torch.randperm(len(tensors["y"]))
    for at in range(0, len(order) - batch + 1, batch):
        rows = order[at:at + batch]
        yield {name: tensor.index_select(0, rows)
               for name, tensor in tensors.items()}


def by_index_select_again(tensors, batch):
    out = {name: torch.empty((batch, *tensor.shape[1:]), dtype=tensor.dtype)
           for name, tensor in tensors.items()}
    order = torch.randperm(len(tensors["y"]))
    for at in range(0, len(order) - batch + 1, batch):
        rows = order[at:at + batch]
        for name, tensor in tensors.items():
            torch.index_select(tensor, 0, rows, out=out[name])
        yield out


def by_data_loader(tensors, batch):
    for x, y in DataLoader(TensorDataset(tensors["x"], tensors["y"]), batch,
                           shuffle=True, drop_last=True):
        yield {"x": x, "y": y}


def by_penstock(loader):
    for batch in loader:
        yield batch.torch()


def check(name, epoch, arrays):
    """Every row once, and each with its label."""
    seen = []
    for batch in epoch:
        y = batch["y"].numpy()
        numpy.testing.assert_array_equal(batch["x"].numpy(), arrays["x"][y],
                                         name)
        seen.append(y.copy())
    seen = numpy.concatenate(seen)
    assert len(numpy.unique(seen)) == len(seen), name


def rate(epoch, batch, most):
    """Batches per second; of those that follow the first."""
    next(epoch)
    start, done = time.perf_counter(), 0
    for _ in epoch:
        done += 1
        if done == most:
            break
    return done / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None,
                        help="torch's; default: as torch likes it")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    arrays = arrays_of(options.rows)
    tensors = {name: torch.from_numpy(array)
               for name, array in arrays.items()}
    batch = options.batch
    loaders = {workers: penstock.Loader(arrays, batch_size=batch, shuffle=True,
                                        drop_last=True, num_workers=workers,
                                        device="cpu")
               for workers in (0, 1, 2)}
    ways = {
        "DataLoader(TensorDataset)": (
            lambda: by_data_loader(tensors, batch), 3),
        "index_select by hand": (lambda: by_index_select(tensors, batch), None),
        "index_select by hand, out=": (
            lambda: by_index_select_again(tensors, batch), None)}
    for workers, loader in loaders.items():
        ways[f"penstock.Loader, num_workers={workers}"] = (
            lambda loader=loader: by_penstock(loader), None)
    for name, (epoch, _) in ways.items():
        check(name, epoch(), arrays)
    rates = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, (epoch, most) in ways.items():
            rates[name].append(rate(epoch(), batch, most))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    best = max((name for name in medians if name.startswith("penstock")),
               key=medians.get)
    print_result(
        "peers_arrays", __doc__,
        f"bench/run peers_arrays --rows {options.rows} --batch "
        f"{batch} --repeats {options.repeats}",
        {"machine": torch_machine(), "rows": options.rows, "batch_size": batch,
         "row_bytes": 4 * FEATURES + 8,
         "results": [{"way": name, "batches_per_s": spread(found)}
                     for name, found in rates.items()],
         "best": best,
         "of_data_loader": {
             "ratio": medians[best] / medians["DataLoader(TensorDataset)"],
             "must_reach": ">= 20"},
         "of_index_select": {
             "ratio": medians[best] / medians["index_select by hand"],
             "must_reach": ">= 0.9"},
         "of_index_select_out": {
             "ratio": medians[best] / medians["index_select by hand, out="]}})


if __name__ == "__main__":
    main()
