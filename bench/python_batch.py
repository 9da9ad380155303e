#!/usr/bin/env python3
"""What does a batch cost on its way to Python, and what does importing cost?

A batch has 4 fields of 64 rows whose rows are resident; the loader works on the
caller's own thread (`num_workers=0`), and filling the batch is measured by
itself ("bare": the batch is taken and dropped) and subtracted. So what is left
is the binding: fields, capsules, arrays. Beside the time on the clock stands
that of the processor, which other programs disturb less. With torch installed,
its tensors too. All forms run in turns; each number is the median over the
rounds.

An import is timed in a process of its own that has imported numpy before.
bench/run builds the package and runs this with it.
"""
import argparse
import importlib.util
import os
import pathlib
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy

import penstock
from result import print_result, spread

ROWS, BATCH = 4096, 64
FIELDS = {name: [name] for name in "abcd"}
FORMS = {
    "bare": lambda batch: None,
    "fields": lambda batch: dict(batch),
    "numpy": lambda batch: batch.numpy(),
    "torch": lambda batch: batch.torch(),
}
MUST = {"numpy": 8, "torch": 8}
IMPORT = ("import numpy, time; start = time.perf_counter(); import penstock; "
          "print(1e3 * (time.perf_counter() - start))")


def table(folder):
    path = pathlib.Path(folder) / "rows.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a REAL, b REAL, "
                     "c REAL, d REAL)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)",
                         ((i, i, i, i, i) for i in range(ROWS)))
    base.close()
    return path


def us_per_batch(loader, form, batches):
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in loader.batches(batches):
        form(batch)
    return (1e6 * (time.perf_counter() - wall) / batches,
            1e6 * (time.process_time() - cpu) / batches)


def import_ms(rounds):
    def one():
        return float(subprocess.run([sys.executable, "-c", IMPORT], check=True,
                                    capture_output=True, text=True).stdout)
    one()
    return spread([one() for _ in range(rounds)])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--batches", type=int, default=20000)
    given = arguments.parse_args()
    forms = dict(FORMS)
    versions = {"python": platform.python_version(),
                "numpy": numpy.__version__}
    if importlib.util.find_spec("torch"):
        import torch
        torch.set_num_threads(1)
        versions["torch"] = torch.__version__
    else:
        del forms["torch"]
    taken = {name: [] for name in forms}
    with tempfile.TemporaryDirectory() as folder:
        with penstock.Loader(f"sqlite:{table(folder)}#t", FIELDS, BATCH,
                             num_workers=0, device="cpu") as loader:
            for name, form in forms.items():
                us_per_batch(loader, form, given.batches // 10)
            for _ in range(given.rounds):
                for name, form in forms.items():
                    taken[name].append(us_per_batch(loader, form,
                                                    given.batches))
            machine = loader.stats()["machine"]
    results = []
    for name, values in taken.items():
        result = {"workload": name, "fields": 4, "batch_size": BATCH,
                  "us_per_batch": spread([wall for wall, _ in values]),
                  "cpu_us_per_batch": spread([cpu for _, cpu in values])}
        if name != "bare":
            for place, key in enumerate(("us_beyond_bare",
                                         "cpu_us_beyond_bare")):
                result[key] = spread([v[place] - b[place] for v, b in zip(
                    values, taken["bare"])])
        if name in MUST:
            result["must_reach"] = f"us_beyond_bare at most {MUST[name]}"
        results.append(result)
    results.append({"workload": "import", "ms_beyond_numpy":
                    import_ms(max(5, given.rounds)),
                    "must_reach": "ms_beyond_numpy at most 60"})
    print_result(
        "python_batch", __doc__,
        f"bench/run python_batch --rounds {given.rounds} --batches "
        f"{given.batches}",
        {"machine": machine, "versions": versions,
         "load_before": os.getloadavg()[0], "results": results})


if __name__ == "__main__":
    main()
