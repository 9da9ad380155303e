#!/usr/bin/env python3
"""Are rows predicted as fast as a run validates them?

A model of a table is trained for a few steps, and all its held-out rows are
validated. Then `penstock predict` gets files with these rows, and with a tenth of
them: the difference of both leaves out what a program takes to start. The rate of a
validation pass is that of the run, whose rows are in memory already; predict reads
CSV and writes CSV.

    bench/run predict_rate [--rows N] [--repeats N]
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

from guard_cost import job_of, make_table
from result import machine_of, print_result, spread

WORKLOADS = {"small": {"width": 64, "depth": 2, "batch": 1024},
             "larger": {"width": 512, "depth": 4, "batch": 1024}}


def call(program, folder, *arguments):
    done = subprocess.run([program, *arguments, "--json"], cwd=folder,
                          check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def validated(program, folder, columns, workload):
    """Rows per second of the run's passes over its held-out rows."""
    job = job_of(columns, workload, 4)
    job["loader"]["tail"] = "exact"
    job["split"] = {"val": 0.9}
    job["train"].update(validate_every_steps=2)
    (folder / "job.json").write_text(json.dumps(job))
    report = call(program, folder, "train", "job.json", "--output", "out")
    return report["dataset"]["val"] * 2 / report["outside"]["validation_s"]


def predicted_in(program, folder, name):
    began = time.perf_counter()
    told = call(program, folder, "predict", "out", name, "--out", "answers.csv")
    return told["rows"], time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.program)
    results = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        columns = make_table(folder / "rows.csv", chosen.rows)
        make_table(folder / "few.csv", chosen.rows // 10)
        for name, workload in WORKLOADS.items():
            validation, prediction = [], []
            for _ in range(chosen.repeats):
                validation.append(
                    validated(program, folder, columns, workload))
                few, short = predicted_in(program, folder, "few.csv")
                all_rows, long = predicted_in(program, folder, "rows.csv")
                prediction.append((all_rows - few) / (long - short))
            results.append({
                "workload": name, **workload,
                "validated_rows_per_second": spread(validation),
                "predicted_rows_per_second": spread(prediction),
                "ratio": spread([p / v for p, v in
                                 zip(prediction, validation)])})
    print_result("predict_rate", __doc__,
                 f"bench/run predict_rate --rows {chosen.rows} "
                 f"--repeats {chosen.repeats}",
                 {"machine": machine_of(program),
                  "must_reach": "a ratio of 0.9", "results": results})


if __name__ == "__main__":
    main()
