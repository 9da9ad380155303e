#!/usr/bin/env python3
"""How many steps per second does a GPU take at batch size 1, with CUDA graphs and without?

The demo's positions train on the GPU in pairs of runs: one with `train.graphs` "off",
one with "auto", by turns in either order. The time from the first step after the
hundredth to the last one counts. Both runs of a pair must end with the same losses.
Where there is no GPU, or no graph was recorded, it reports why and measures nothing.

    bench/run graphs [--pairs N] [--steps N] [--batch N]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from result import ROOT, machine_of, print_result, spread

FIRST = 100  # steps that do not count


def job_of(batch, steps):
    job = json.loads((ROOT / "examples/positions/job.json").read_text())
    job["source"]["path"] = "d.sqlite"
    return {**job, "device": "cuda",
            "loader": {"batch_size": batch, "seed": 1},
            "train": {"max_steps": steps, "epochs": 10**6}}


def measured_run(program, folder, graphs):
    """Steps per second, and the losses."""
    done = subprocess.run(
        [program, "train", "job.json", "--json", "--set",
         f"train.graphs={graphs}"],
        cwd=folder, check=False, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"not measured: {(done.stderr + done.stdout).strip()}")
    run = folder / json.loads(done.stdout)["run"]
    told = json.loads((run / "run.json").read_text())["effective"]["graphs"]
    if told["got"] != graphs:
        sys.exit(f"not measured: there are no graphs: {told['why']}")
    model = json.loads((run / "report.json").read_text())["model"]
    if graphs == "auto" and model["graphs"] == 0:
        sys.exit("not measured: no graph was recorded; see the warnings: "
                 + done.stderr.strip())
    steps = [json.loads(line)
             for line in (run / "steps.jsonl").read_text().splitlines()]
    counted = steps[FIRST:]
    return ((len(counted) - 1) /
            (counted[-1]["seconds"] - counted[0]["seconds"]),
            [step["loss"] for step in steps])


def measured(program, folder, pairs):
    rates = {"off": [], "auto": []}
    for pair in range(pairs):
        losses = {}
        for graphs in (("off", "auto"), ("auto", "off"))[pair % 2]:
            rate, losses[graphs] = measured_run(program, folder, graphs)
            rates[graphs].append(rate)
        if losses["off"] != losses["auto"]:
            sys.exit("the losses with graphs are not those without")
    return {"steps_per_second": {graphs: spread(all_of)
                                 for graphs, all_of in rates.items()},
            "ratio": spread([auto / off for off, auto in zip(*rates.values())])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1100)
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    if args.steps < FIRST + 2:
        parser.error(f"--steps: {FIRST} do not count, and two are measured")
    program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([program, "demo", "positions", "--rows", "1000", "--seed",
                        "5", "--to", "sqlite:d.sqlite"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (folder / "job.json").write_text(
            json.dumps(job_of(args.batch, args.steps)))
        results = measured(program, folder, args.pairs)
    print_result("graphs", __doc__, "bench/run graphs",
                 {"machine": machine_of(program), "batch": args.batch,
                  "steps": args.steps, "results": results})


if __name__ == "__main__":
    main()
