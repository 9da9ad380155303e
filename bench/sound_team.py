#!/usr/bin/env python3
"""What does a team gain whose accelerator waits for spectrograms in HDF5?

Rows of 256 float32 (1 KB each), with a label, in chunks of 64 rows, shuffle and
deflate level 4, on a simulated accelerator whose step takes 1/30 or 1/50 of a
second. Before: torch's DataLoader over a data set of h5py, as usually written
(a file in each worker, a row for each item), with 4 and 8 workers and batches of
5,632 and 8,192. After: `penstock train` of the same file with batches of 8,192, (a)
with the rows kept in memory, decoded once, and (b) with none kept, in an order of
pages, as where they do not fit. Rows are shuffled; the first step is not counted,
and seams between epochs are. A loop that waits is measured for some steps, and its
epoch told as if all of them took as long.

`resident` is what a batch of rows in memory takes when no step is waited for.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import h5py
import numpy
import torch

from result import machine_of, print_result

VALUES, CHUNK = 256, 64
DECODED_GIB = 0.04  # a window of pages, and some of the next
STEPS_PER_S = (30, 50)
BATCH = 8192
BEFORE = ((4, 5632), (8, 5632), (4, BATCH), (8, BATCH))  # workers, batch


def write_file(path, rows):
    """Levels in steps of 1/8 dB that wander, as those of sound do."""
    draw = numpy.random.default_rng(1)
    noise = draw.uniform(-3, 3, (rows, VALUES)).astype("float32")
    levels = numpy.empty_like(noise)
    level = numpy.zeros(rows, "float32")
    for at in range(VALUES):
        level = numpy.float32(0.9) * level + noise[:, at]
        levels[:, at] = numpy.round(8 * (level - 40)) / 8
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=levels, chunks=(CHUNK, VALUES),
                            shuffle=True, compression="gzip",
                            compression_opts=4)
        file.create_dataset("y", data=draw.integers(0, 10, rows))


class LabelledRows(torch.utils.data.Dataset):
    """The way it is usually written: a file in each worker, a row for each item."""

    def __init__(self, path):
        self.path, self.file = path, None
        with h5py.File(path) as file:
            self.rows = len(file["x"])

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        if self.file is None:
            self.file = h5py.File(self.path)
        return torch.from_numpy(self.file["x"][row]), int(self.file["y"][row])


def before(path, workers, batch, step_s, steps):
    """The loop as it was, for `steps` steps after the first."""
    rows = LabelledRows(path)
    loader = torch.utils.data.DataLoader(rows, batch, shuffle=True,
                                         num_workers=workers, drop_last=True)
    started = time.perf_counter()
    done, begun, first = 0, None, None
    while done <= steps:
        for x, _ in loader:
            first = first or time.perf_counter() - started
            assert x.shape == (batch, VALUES)
            time.sleep(step_s)
            if done == 0:
                begun = time.perf_counter()
            done += 1
            if done > steps:
                break
    each = (time.perf_counter() - begun) / steps
    return {"au": step_s / each, "batches_per_s": 1 / each,
            "epoch_s": len(rows) / batch * each, "first_batch_s": first,
            "steps": steps}


def after(program, folder, path, tier, step_s, steps):
    loader = {"batch_size": BATCH, "cache": "ram"}
    if tier == "pages":
        loader = {"batch_size": BATCH, "cache": "none", "order": {
            "paged": {"page": CHUNK, "window": 4 * BATCH // CHUNK}}}
    job = folder / "job.json"
    job.write_text(json.dumps({
        "source": {"kind": "hdf5", "path": str(path), "decoded_gib": DECODED_GIB},
        "fields": {"x": {"array": {"column": "/x", "shape": [VALUES]}},
                   "y": {"column": "/y", "dtype": "int64"}},
        "split": {"train": 1.0, "val": 0.0},
        "loader": loader, "device": {"kind": "sim", "step_ms": step_s * 1000},
        "train": {"epochs": 1 << 20, "max_steps": steps},
        "output": {"dir": str(folder / "runs")}}))
    done = subprocess.run([program, "train", str(job), "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    report = json.loads(done.stdout)
    rate = report["samples_per_s"] / BATCH
    return {"au": report["au"], "batches_per_s": rate,
            "epoch_s": report["dataset"]["rows"] / BATCH / rate,
            "first_batch_s": report["first_batch_ms"] / 1000, "steps": steps}


def table(program, folder, path, given):
    results = []
    for rate in STEPS_PER_S:
        def add(loop, workers, batch, found, step_s=1 / rate):
            results.append({"loop": loop, "workers": workers, "batch": batch,
                            "step_s": step_s, **found})
            print(json.dumps(results[-1]), file=sys.stderr)
        # It waits for its rows, so that the other step time says no more.
        for workers, batch in BEFORE if rate == STEPS_PER_S[0] else ():
            add("h5py and torch's DataLoader", workers, batch,
                before(path, workers, batch, 1 / rate, given.before_steps))
        for tier in ("ram", "pages"):
            found = after(program, folder, path, tier, 1 / rate,
                          int(given.seconds * rate))
            if tier == "ram":
                found["must_reach"] = "au >= 0.98"
            add("penstock, " + {"ram": "rows in memory",
                                "pages": "none kept, by pages"}[tier],
                None, BATCH, found)
    return results


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--rows", type=int, default=131_072)
    arguments.add_argument("--before-steps", type=int, default=12)
    arguments.add_argument("--seconds", type=float, default=20,
                           help="of steps, after")
    arguments.add_argument("--note", default=None)
    given = arguments.parse_args()
    program = str(pathlib.Path(given.program).resolve())
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = pathlib.Path(name)
        path = folder / "sounds.h5"
        write_file(path, given.rows)
        results = table(program, folder, path, given)
        resident = after(program, folder, path, "ram", 1e-6, 2000)
        size = path.stat().st_size
    print_result(
        "sound_team", __doc__,
        f"bench/run sound_team --rows {given.rows} --before-steps "
        f"{given.before_steps} --seconds {given.seconds:g}",
        {"machine": machine_of(program), "load_before": load,
         **({"note": given.note} if given.note else {}),
         "versions": {"torch": torch.__version__, "h5py": h5py.__version__},
         "rows": given.rows, "file_mb": size / 1e6,
         "resident": {"batch": BATCH, "ms_per_batch":
                      1000 / resident["batches_per_s"],
                      "must_reach": "<= 6 ms"},
         "results": results})


if __name__ == "__main__":
    main()
