"""What the tests of users' own models begin with: a folder with a table, a
job over it, and modules of torch as text."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import penstock
from penstock import program
from positions import has
from refused import Refused

ROWS = 200
needs_torch = unittest.skipUnless(has("torch"), "torch is not installed")

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, kind, width=8):
        super().__init__()
        self.kind = torch.nn.Embedding(len(kind.classes), 3)
        self.norm = torch.nn.BatchNorm1d(5)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(5, width), torch.nn.ReLU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(width, 1))

    def forward(self, x, kind):
        return self.layers(self.norm(torch.cat([x, self.kind(kind)], 1)))
"""


_KINDS = {kind.kind: kind for kind in (penstock.RequestError,
                                       penstock.TransformError,
                                       penstock.OutOfMemory)}


class Case(unittest.TestCase):
    """In a folder of its own: train.sqlite, net.py, and a job."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="penstock-own-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        self.folder = pathlib.Path(folder)
        with sqlite3.connect("train.sqlite") as base:
            base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a REAL, "
                         "b REAL, kind TEXT, y REAL, big INTEGER)")
            base.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
                ((i, i % 7, i % 11, "uvw"[i % 3], i % 7 - 2 * (i % 11),
                  i % 7 > 3) for i in range(ROWS)))
        base.close()
        self.write("net.py", NET)

    def write(self, name, text):
        pathlib.Path(name).write_text(text)
        return name

    def job(self, named="net.py:Net", **sections):
        """A job whose model is that one; {"train": {...}} changes one."""
        made = {
            "source": {"kind": "sqlite", "path": "train.sqlite",
                       "table": "rows"},
            "fields": {
                "x": {"columns": ["a", "b"], "standardize": True},
                "kind": {"category": {"column": "kind"}},
                "y": {"column": "y"},
                "big": {"category": {"column": "big", "unknown": "error"}}},
            "split": {"train": 0.75, "val": 0.25, "seed": 1},
            "loader": {"batch_size": 16, "workers": 2, "seed": 3},
            "model": {"kind": "own", "class": named, "target": "y"},
            "train": {"epochs": 2, "lr": 0.01, "warmup_steps": 3, "threads": 1},
            "device": "cpu"}
        for name, section in sections.items():
            both = {**made.get(name, {}), **section}
            made[name] = {key: value for key, value in both.items()
                          if value is not None}
        return made

    def train(self, job, model=None, **arguments):
        """A run of the job, without a word."""
        return penstock.train(job, model, progress=False, **arguments)

    def resume(self, folder, **arguments):
        return self.train(None, resume=folder, **arguments)

    def stopped_after(self, steps, job):
        """The folder of a run that Ctrl-C ended after so many steps."""
        from penstock._training.stepper import Stepper
        step = Stepper.step

        def stops(stepper, batch, number):
            summed = step(stepper, batch, number)
            if number + 1 == steps:
                os.kill(os.getpid(), signal.SIGINT)
            return summed

        with unittest.mock.patch.object(Stepper, "step", stops), \
                self.assertRaises(KeyboardInterrupt):
            self.train(job)
        folder = os.path.realpath("runs/latest")
        self.assertEqual(len(steps_of(folder)), steps)
        return folder

    def refused(self, kind, code, *names):
        return Refused(self, _KINDS[kind], code, names)


def steps_of(run):
    """(epoch, step, loss) of each line of steps.jsonl."""
    lines = (pathlib.Path(run) / "steps.jsonl").read_text().splitlines()
    return [(line["epoch"], line["step"], line.get("loss"))
            for line in map(json.loads, lines)]


def weights_of(run):
    """The bytes of the newest checkpoint, but for what names no tensor."""
    state = json.loads((pathlib.Path(run) / "state.json").read_text())
    return (pathlib.Path(run) / state["checkpoint"]).read_bytes()


def run_train(*arguments, env=None, stdout=subprocess.PIPE):
    """The program's `train` with this Python."""
    package = str(pathlib.Path(penstock.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package,
                                         os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [str(program.path()), "train", *map(str, arguments)],
        stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120,
        check=False, env={
            **os.environ, "PYTHONPATH": path,
            "PENSTOCK_PYTHON": sys.executable, **(env or {})})


def quietly(work):
    """What it writes to standard error, and what it returns."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        made = work()
    return told.getvalue(), made
