#!/usr/bin/env python3
"""Does the input keep an H100 of MLPerf Storage busy?

The batch sizes, sample sizes and step times of MLPerf Storage v2.0 (its rules:
the accelerator is a pause of so long; AU must reach 0.9, for CosmoFlow 0.7; the
first step is left out; 500 steps; another seed each time; repeatable within
5 %). Samples are bytes of these sizes, read by key in a shuffled order from an
Arrow IPC file, and from the store (`loader.cache` is `disk`), and copied into
batches for the simulated accelerator. Other than there, the data set is small
enough for the page cache, and batches are copied to the device, too.

For each it is found out which share of an accelerator this machine feeds, 1 or
1/2, 1/4, ...: the largest whose AU reaches the threshold, with the steps longer
by as much. `accelerators_per_core` is the time of a step / the processor time
that its input takes, which other work on the machine does not change much.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from result import print_result, processor, spread

# Of the rules: batch, seconds per step of an H100, least AU, bytes per sample.
WORKLOADS = {
    "unet3d": (7, 0.323, 0.90, 146_600_628),
    "resnet50": (400, 0.224, 0.90, 114_660),
    "cosmoflow": (1, 0.00350, 0.70, 2_828_486)}
PROBE_STEPS, LEAST_SHARE = 40, 1 / 256


def write_arrow(path, size, count):
    import pyarrow

    schema = pyarrow.schema([("sample", pyarrow.large_binary())])
    with pyarrow.OSFile(str(path), "wb") as file, \
            pyarrow.ipc.new_file(file, schema) as writer:
        per_block = max(1, min(count, (64 << 20) // size))
        for at in range(0, count, per_block):
            rows = [os.urandom(size) for _ in range(min(per_block,
                                                        count - at))]
            writer.write_batch(pyarrow.record_batch(
                [pyarrow.array(rows, pyarrow.large_binary())], schema=schema))


def write_job(folder, name, tier, data):
    batch, step_s, _, size = WORKLOADS[name]
    job = {"source": {"kind": "arrow", "path": str(data)},
           "fields": {"sample": {"array": {
               "column": "sample", "shape": [size], "dtype": "uint8",
               "of": "uint8"}}},
           "split": {"train": 1.0, "val": 0.0},
           "loader": {"batch_size": batch, "cache": {
               "arrow": "none",
               "store": {"device_gib": 0, "ram_gib": 0, "disk_gib": 64,
                         "dir": str(folder / "stores")}}[tier]},
           "device": {"kind": "sim", "step_ms": 1e3 * step_s},
           "train": {"epochs": 1 << 20},
           "output": {"dir": str(folder / "runs")}}
    path = folder / f"{name}_{tier}.json"
    path.write_text(json.dumps(job))
    return path


class Failed(Exception):
    pass


def train(program, job, steps, step_s, seed):
    """The report of a run, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [program, "train", job, "--json", "--set", f"train.max_steps={steps}",
         "--set", f"device.step_ms={1e3 * step_s}",
         "--set", f"loader.seed={seed}"],
        capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise Failed(done.stdout + done.stderr)
    return json.loads(done.stdout), (after.ru_utime + after.ru_stime -
                                     before.ru_utime - before.ru_stime)


def measure(program, folder, name, tier, data, steps, seeds):
    batch, step_s, least, size = WORKLOADS[name]
    job = write_job(folder, name, tier, data)
    train(program, job, 2, step_s, 1)  # fills the store
    share = 1.0
    while True:  # the largest share that a short run carries
        report, short_cpu = train(program, job, PROBE_STEPS, step_s / share, 1)
        if report["au"] >= least or share <= LEAST_SHARE:
            break
        share /= 2
    runs = []
    while share >= LEAST_SHARE:
        runs = [train(program, job, steps, step_s / share, seed)
                for seed in range(2, 2 + seeds)]
        if all(report["au"] >= least for report, _ in runs):
            break
        share /= 2
    per_step = [(cpu - short_cpu) / max(1, steps - PROBE_STEPS)
                for _, cpu in runs]
    rates = [report["samples_per_s"] for report, _ in runs]
    au = spread([report["au"] for report, _ in runs])
    return {
        "workload": name, "tier": tier, "batch": batch, "bytes": size,
        "step_s": step_s, "steps": steps, "threshold": least,
        "accelerators": share, "au": au, "reached": au["min"] >= least,
        "samples_per_s": spread(rates),
        "bytes_per_s": spread([rate * size for rate in rates]),
        "apart": max(rates) / min(rates) - 1,
        "input_cpu_s_per_step": spread(per_step),
        "accelerators_per_core": step_s / spread(per_step)["median"],
        "limit": runs[-1][0]["verdict"]["limit"],
        "cause": runs[-1][0]["verdict"]["cause"]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="build/bin/penstock")
    arguments.add_argument("--workload", action="append", choices=WORKLOADS)
    arguments.add_argument("--steps", type=int, default=500)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--gib", type=float, default=2,
                           help="of samples, in each file")
    arguments.add_argument("--note", default=None)
    given = arguments.parse_args()
    program = str(pathlib.Path(given.program).resolve())
    results = []
    for name in given.workload or WORKLOADS:
        batch, _, _, size = WORKLOADS[name]
        with tempfile.TemporaryDirectory(prefix="mlperf-au-") as made:
            folder = pathlib.Path(made)
            data = folder / "samples.arrow"
            write_arrow(data, size,
                        max(2 * batch, int(given.gib * 2**30 / size)))
            for tier in ("arrow", "store"):
                print(f"{name}, {tier}", file=sys.stderr)
                results.append(measure(program, folder, name, tier, data,
                                       given.steps, given.seeds))
                print(json.dumps(results[-1]), file=sys.stderr)
    print_result(
        "mlperf_au", __doc__,
        " ".join(["bench/mlperf_au.py", *sys.argv[1:]]),
        {"machine": processor(),
         **({"note": given.note} if given.note else {}),
         "results": results})


if __name__ == "__main__":
    main()
