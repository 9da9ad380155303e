#!/usr/bin/env python3
"""Does the tuner find the threads of a job that reads from a database 2 ms away, and are its batches the same?

The positions of the demo in PostgreSQL, behind a proxy that hands each byte on 1
ms later, in both directions. A loop takes a batch, then pauses for a step. Rows
are not kept. First each setting of a sweep (workers, readers, prefetch) runs by
itself, with the tuner off; then the job runs without any of them set, from 1
reader and 1 worker on where `--cpus 1`, and the tuner may change what it likes.
The rate of its last windows is compared with that of the best of the sweep, and
the SHA-256 of its first batches with those of a loader without threads.
"""
import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import time

import penstock
from late_proxy import further_away
from result import print_result, processor

WORKERS, READERS, PREFETCH = (1, 2), (1, 4, 8, 16, 32), (2, 8, 16)
COMPARED = 200  # batches


def job_of(uri, given, **loader):
    return {"source": {"kind": "postgres", "uri": uri, "table": "measurements"},
            "fields": {
                "receivers": {"json_set": {
                    "column": "receivers", "keys": ["snr_db", "lat", "lon"],
                    "max": 10, "overflow": "strongest", "sort_by": "snr_db"},
                    "standardize": True},
                "target": {"columns": ["tx_lat", "tx_lon"],
                           "standardize": True}},
            "loader": {"batch_size": given.batch, "seed": 1, "cache": "none",
                       **loader},
            "device": "cpu"}


def batches_of(loader):
    while True:
        yield from loader


def rate_of(job, given, seconds):
    """Samples a second in the last third of so many, and what was set."""
    with penstock.open(job) as loader:
        begun = time.perf_counter()
        since = begun + seconds * 2 / 3
        counted = first = last = 0
        for batch in batches_of(loader):
            with loader.step():
                time.sleep(given.step_ms / 1000)
            now = time.perf_counter()
            if now >= since and first == 0:
                first = last = now
            elif first:
                counted, last = counted + len(batch["target"]), now
            if now - begun >= seconds:
                break
        return counted / (last - first), loader.stats()


def digest_of(job):
    digest = hashlib.sha256()
    with penstock.open(job) as loader:
        for batch in itertools.islice(batches_of(loader), COMPARED):
            for name, tensor in sorted(batch.numpy().items()):
                digest.update(name.encode() + tensor.tobytes())
            time.sleep(0.002)
    return digest.hexdigest()


def sweep(uri, given):
    rows = []
    for workers, readers, prefetch in itertools.product(WORKERS, READERS,
                                                        PREFETCH):
        rate, _ = rate_of(job_of(uri, given, tune="off", workers=workers,
                                 readers=readers, prefetch=prefetch),
                          given, given.sweep_s)
        rows.append({"workers": workers, "readers": readers,
                     "prefetch": prefetch, "samples_per_s": rate})
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="build/bin/penstock")
    arguments.add_argument("--rows", type=int, default=60000)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--step-ms", type=float, default=1)
    arguments.add_argument("--delay-ms", type=float, default=1,
                           help="in each direction")
    arguments.add_argument("--sweep-s", type=float, default=6)
    arguments.add_argument("--tuned-s", type=float, default=120)
    arguments.add_argument("--runs", type=int, default=3)
    given = arguments.parse_args()
    uri = os.environ["PENSTOCK_BENCH_POSTGRES"]
    subprocess.run([given.program, "demo", "positions", "--rows",
                    str(given.rows), "--to", uri + "#measurements",
                    "--replace"], check=True, stdout=sys.stderr)
    with further_away(uri, given.delay_ms / 1000) as far:
        swept = sweep(far, given)
        best = max(swept, key=lambda row: row["samples_per_s"])
        tuned = []
        for _ in range(given.runs):
            rate, stats = rate_of(job_of(far, given), given, given.tuned_s)
            tuned.append({"samples_per_s": rate,
                          "of_best": rate / best["samples_per_s"],
                          "tuner": stats.get("tuner")})
            print(json.dumps(tuned[-1]), file=sys.stderr)
        same = digest_of(job_of(far, given)) == digest_of(
            job_of(far, given, workers=0, tune="off"))
    print_result("tuner_postgres", __doc__,
                 " ".join(["bench/run tuner_postgres", *sys.argv[1:]]),
                 {"machine": processor(),
                  "rows": given.rows, "batch": given.batch,
                  "step_ms": given.step_ms,
                  "round_trip_ms": 2 * given.delay_ms, "sweep": swept,
                  "best": best, "tuned": tuned, "same_batches": same,
                  "must_reach": {"of_best": 0.95, "same_batches": True}})


if __name__ == "__main__":
    main()
