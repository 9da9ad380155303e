#!/usr/bin/env python3
"""What does the memory guard cost a step that has memory enough?

A table of numbers in CSV trains a small and a larger model, in pairs of runs: one with
`train.oom` "guard", one with "stop", by turns in either order. Of each run the median
time between two steps after the first ten counts, and the processor time of the whole
run, which other programs disturb less; the ratio of a pair is guard / stop.

    bench/run guard_cost [--pairs N] [--steps N]
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

from result import machine_of, print_result, processor_seconds, spread

FIRST = 10  # steps that do not count
WORKLOADS = {"small": {"width": 32, "depth": 1, "batch": 64},
             "larger": {"width": 256, "depth": 3, "batch": 128}}


def make_table(path, rows=4096, columns=16):
    drawn = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        print(*[f"c{c}" for c in range(columns)], "y", sep=",", file=file)
        for _ in range(rows):
            numbers = [round(drawn.gauss(0, 1), 3) for _ in range(columns)]
            print(*numbers, round(sum(numbers) / 4, 3), sep=",", file=file)
    return [f"c{c}" for c in range(columns)]


def job_of(columns, workload, steps):
    return {"source": {"kind": "csv", "path": "rows.csv"},
            "fields": {"x": {"columns": columns, "standardize": True},
                       "y": {"columns": ["y"]}},
            "loader": {"batch_size": workload["batch"], "cache": "ram",
                       "tune": "off"},
            "model": {"kind": "tabular", "target": "y",
                      "width": workload["width"], "depth": workload["depth"]},
            "train": {"max_steps": steps, "epochs": 10**6, "threads": 1},
            "device": "cpu"}


def measured_run(program, folder, oom):
    """Seconds between two steps, and of the processors in all."""
    before = processor_seconds()
    done = subprocess.run(
        [program, "train", "job.json", "--json", "--set", f"train.oom={oom}"],
        cwd=folder, check=True, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    used = processor_seconds() - before
    run = folder / json.loads(done.stdout)["run"]
    ends = [json.loads(line)["seconds"] for line in
            (run / "steps.jsonl").read_text().splitlines()][FIRST:]
    return statistics.median(
        after - before for before, after in zip(ends, ends[1:])), used


def measured(program, folder, pairs):
    runs = {"guard": [], "stop": []}
    for pair in range(pairs):
        for oom in (("guard", "stop"), ("stop", "guard"))[pair % 2]:
            runs[oom].append(measured_run(program, folder, oom))

    def compared(name, of, scale):
        seconds = {oom: [run[of] for run in all_of]
                   for oom, all_of in runs.items()}
        return {name: {oom: spread([scale * one for one in all_of])
                       for oom, all_of in seconds.items()},
                f"ratio_of_{name}": spread([
                    guard / stop for guard, stop in zip(*seconds.values())])}

    return {**compared("step_ms", 0, 1e3), **compared("processor_s", 1, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.program)
    results = []
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        columns = make_table(folder / "rows.csv")
        for name, workload in WORKLOADS.items():
            (folder / "job.json").write_text(json.dumps(
                job_of(columns, workload, chosen.steps)))
            measured_run(program, folder, "guard")  # warm up
            results.append({"workload": name, **workload,
                            **measured(program, folder, chosen.pairs)})
            load.append(os.getloadavg()[0])
    print_result("guard_cost", __doc__,
                 f"bench/run guard_cost --pairs {chosen.pairs} --steps "
                 f"{chosen.steps}",
                 {"machine": machine_of(program),
                  "load_average": {"before": load[0], "after": load[1:]},
                  "bar": "the median ratio is at most 1.01",
                  "results": results})


if __name__ == "__main__":
    main()
