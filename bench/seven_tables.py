#!/usr/bin/env python3
"""Are the weights that `penstock train --init` keeps as good as those of a long run?

Seven small tables that courses use: of each one `train --init`, and the same job
without patience. It compares the best values of the metric that decides which weights
are kept, and both with the baseline, which knows the held-out rows' mean or commonest
class alone. The tables come from PyPI's `palmerpenguins` and `vega_datasets`, which
are fetched.

    bench/run seven_tables [--epochs N]
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from result import machine_of, print_result

TABLES = {  # file of a package, target
    "penguins": ("palmerpenguins/data/penguins.csv", "species"),
    "cars": ("vega_datasets/_data/cars.json", "Miles_per_Gallon"),
    "iris": ("vega_datasets/_data/iris.json", "species"),
    "stocks": ("vega_datasets/_data/stocks.csv", "price"),
    "seattle weather": ("vega_datasets/_data/seattle-weather.csv", "weather"),
    "riots": ("vega_datasets/_data/la-riots.csv", "type"),
    "barley": ("vega_datasets/_data/barley.json", "yield")}
LARGER_IS_BETTER = ("accuracy", "auc", "f1", "macro_f1", "r2", "top5_accuracy")


def fetch(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet",
                    "--no-deps", "--dest", str(folder), "palmerpenguins",
                    "vega_datasets"], check=True, stdout=sys.stderr)
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder)


def as_csv(path, to):
    if path.suffix == ".csv":
        to.write_bytes(path.read_bytes())
        return
    rows = json.loads(path.read_text(encoding="utf-8"))
    with open(to, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def train(program, folder, *arguments):
    done = subprocess.run([program, "train", *arguments, "--json"], cwd=folder,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr[-2000:])
    return json.loads(done.stdout)


def compared(name, kept, long):
    metric, value = kept["best"]["metric"], kept["best"]["value"]
    larger = metric in LARGER_IS_BETTER
    of_long = [epoch[f"val_{metric}"] for epoch in long["epochs"]]
    best = max(of_long) if larger else min(of_long)
    worse = (best - value if larger else value - best) / abs(best)
    told = {name[4:]: number for name, number in kept["baseline"].items()
            if name.startswith("val_")}
    measure = metric if metric in told else next(iter(told))
    of_kept = kept["epochs"][kept["best"]["epoch"]][f"val_{measure}"]
    return {"workload": name, "metric": metric, "kept": value,
            "epochs": len(kept["epochs"]), "long_best": best,
            "long_epochs": len(long["epochs"]), "worse_by": round(worse, 4),
            "within_2_percent": worse <= 0.02, "measure": measure,
            "of_kept": of_kept, "of_baseline": told[measure],
            "better_than_baseline": of_kept != told[measure] and
            (of_kept > told[measure]) == (measure in LARGER_IS_BETTER)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--epochs", type=int, default=60,
                        help="of the run without patience")
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.program)
    results = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        fetch(folder)
        for name, (path, target) in TABLES.items():
            as_csv(folder / path, folder / "table.csv")
            (folder / "table.json").unlink(missing_ok=True)
            kept = train(program, folder, "--init", "table.csv", "--target",
                         target)
            long = train(program, folder, "table.json", "--set",
                         "train.patience=null", "--set",
                         f"train.epochs={chosen.epochs}")
            results.append(compared(name, kept, long))
            print(json.dumps(results[-1]), file=sys.stderr)
    print_result("seven_tables", __doc__,
                 f"bench/run seven_tables --epochs {chosen.epochs}",
                 {"machine": machine_of(program),
                  "must_reach": "worse_by <= 0.02, and better than the "
                                "baseline", "results": results})


if __name__ == "__main__":
    main()
