#!/usr/bin/env python3
"""How fast do rows come out of compressed chunks of HDF5 and Zarr, beside torch's
DataLoader over h5py and zarr?

Rows of 256 float32 (1 KB each; spectra in steps of 1/8 dB) in chunks of 64 rows:
HDF5 with shuffle and deflate, Zarr with zstd as zarr writes it. Batches of 1,024 to
torch tensors, (a) by a DataLoader with 2 workers whose data set opens the file in
each worker and reads a row for each item, the way it is usually written, and (b) by
penstock.Loader with as many workers, in turns; each reads all rows in their order,
and a part of them in a shuffle: (a) exactly, (b) exactly with all decoded rows in
memory (a first epoch, then a later one), and by pages without any kept. MB of rows a
second by the wall, and per second of all processors. In order the tensors must be
equal.

Run it in the environment of setup.sh with h5py and zarr; bench/run does.
"""
import argparse
import pathlib
import tempfile
import time

import h5py
import numpy
import torch
import zarr
from torch.utils.data import DataLoader, Dataset, Subset

import penstock
from peer_result import (print_result, processor_seconds, spread,
                         torch_machine)

VALUES, CHUNK, BATCH, WORKERS = 256, 64, 1024, 2


def spectra(rows):
    noise = numpy.random.default_rng(1).uniform(-3, 3, (rows, VALUES))
    for at in range(1, VALUES):
        noise[:, at] += 0.9 * noise[:, at - 1]
    return (numpy.round(8 * (noise - 40)) / 8).astype("f4")


def write(folder, rows):
    values = spectra(rows)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(CHUNK, VALUES),
                            shuffle=True, compression="gzip", compression_opts=4)
    group = zarr.open_group(folder / "x.zarr", mode="w")
    group.create_array("x", data=values, chunks=(CHUNK, VALUES))


class Rows(Dataset):
    """A file in each worker, a row for each item."""

    def __init__(self, open_array, rows):
        self.open_array, self.rows, self.array = open_array, rows, None

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        if self.array is None:
            self.array = self.open_array()
        return torch.from_numpy(self.array[row])


def theirs(open_array, rows, count, shuffled):
    some = torch.randperm(rows, generator=torch.Generator().manual_seed(1))[
        :count].tolist() if shuffled else range(rows)
    return DataLoader(Subset(Rows(open_array, rows), some), BATCH,
                      num_workers=WORKERS)


def ours(array, **options):
    return penstock.Loader({"x": array}, batch_size=BATCH, num_workers=WORKERS,
                           device="cpu", **options)


def tensors(loader):
    for batch in loader:
        yield batch if torch.is_tensor(batch) else batch.torch()["x"]


def timed(loader):
    before, began = processor_seconds(), time.perf_counter()
    mb = sum(batch.numel() * 4 for batch in tensors(loader)) / 1e6
    wall = time.perf_counter() - began
    return mb / wall, mb / (processor_seconds() - before)


def compare(name, open_array, rows, count, repeats):
    array = open_array()
    for mine, other in zip(tensors(ours(array, shuffle=False, cache="none")),
                           theirs(open_array, rows, rows, False), strict=True):
        assert torch.equal(mine, other)
    paged = {"paged": {"page": CHUNK, "window": 31}}
    found = {}
    for _ in range(repeats):
        kept = ours(array, shuffle=True, cache="ram")
        ways = {"in order, theirs": theirs(open_array, rows, rows, False),
                "in order": ours(array, shuffle=False, cache="none"),
                "shuffled, theirs": theirs(open_array, rows, count, True),
                "shuffled, first epoch": kept, "shuffled, later epoch": kept,
                "by page": ours(array, shuffle=True, cache="none", order=paged)}
        for way, loader in ways.items():
            found.setdefault(way, []).append(timed(loader))
    wall = {way: spread([one for one, _ in rates]) for way, rates in found.items()}

    def times(way, other):
        return wall[way]["median"] / wall[other]["median"]
    return {"format": name, "equal": True, "mb_per_s": wall,
            "mb_per_cpu_s": {way: spread([one for _, one in rates])
                             for way, rates in found.items()},
            "times_as_fast": {
                "in order": times("in order", "in order, theirs"),
                **{way: times(way, "shuffled, theirs") for way in (
                    "shuffled, first epoch", "shuffled, later epoch", "by page")}},
            "must_reach": 5}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shuffled-rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, options.rows)
        opened = {"HDF5": lambda: h5py.File(folder / "x.h5")["x"],
                  "Zarr": lambda: zarr.open_group(folder / "x.zarr", mode="r")["x"]}
        results = [compare(name, opener, options.rows, options.shuffled_rows,
                           options.repeats) for name, opener in opened.items()]
    print_result("peers_chunks", __doc__,
                 f"bench/run peers_chunks --rows {options.rows} --shuffled-rows "
                 f"{options.shuffled_rows} --repeats {options.repeats}",
                 {"machine": torch_machine(), "h5py": h5py.__version__,
                  "zarr": zarr.__version__, "rows": options.rows,
                  "batch": BATCH, "workers": WORKERS, "results": results})


if __name__ == "__main__":
    main()
