#!/usr/bin/env python3
"""torch's DataLoader over a data set of h5py, the way it is usually written: a file
in each worker, a row for each item.

    bench/peers/hdf5.py FILE [WORKERS [ROWS [in_order]]]    needs torch and h5py

Rows of /x in an exact shuffle, or in their order; batches of 1024. Prints one JSON document: MB/s by
the wall, and per second of processor time, that of the workers too.
"""
import json
import resource
import sys
import time

import h5py
import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Rows(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None
        with h5py.File(path) as file:
            self.rows = len(file["x"])

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        if self.file is None:
            self.file = h5py.File(self.path)
        return torch.from_numpy(self.file["x"][row])


def cpu():
    return sum(used.ru_utime + used.ru_stime for used in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    data = Rows(sys.argv[1])
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else len(data)
    in_order = "in_order" in sys.argv
    some = torch.arange(rows) if in_order else torch.randperm(
        len(data), generator=torch.Generator().manual_seed(1))[:rows]
    loader = DataLoader(Subset(data, some.tolist()), batch_size=1024,
                        num_workers=workers)
    before, began = cpu(), time.perf_counter()
    count = 0
    for batch in loader:
        count += batch.numel() * batch.element_size()
    wall = time.perf_counter() - began
    del loader
    print(json.dumps({
        "peer": f"torch {torch.__version__} DataLoader, h5py {h5py.__version__}",
        "order": "in order" if in_order else "exact shuffle",
        "workers": workers, "rows": rows, "mb": count / 1e6,
        "mb_per_s": count / 1e6 / wall,
        "mb_per_cpu_s": count / 1e6 / (cpu() - before)}))


if __name__ == "__main__":
    main()
