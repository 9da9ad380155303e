"""What the tests of the Python package begin with: a folder with a small table
of positions and a job over it, made by the program that comes with the
package."""
import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy

import penstock
from penstock import program
from refused import Refused

# Tests hold many batches at once, of which the engine warns.
logging.getLogger("penstock").setLevel(logging.ERROR)

ROWS = 300
BATCH = 24
DEVICES = ("cpu", {"kind": "sim", "clock": "virtual", "step_ms": 1})
WORKERS = (0, 1, 2, 8)


def run_program(*arguments, cwd=None):
    """Standard output of the program, which must end well."""
    done = subprocess.run([str(program.path()), *map(str, arguments)],
                          cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def run_python(text, *arguments, env=None, timeout=60):
    """A process of its own that runs `text` with this package."""
    package = str(pathlib.Path(penstock.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package,
                                         os.environ.get("PYTHONPATH")]))
    return subprocess.run([sys.executable, "-c", text, *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, "PYTHONPATH": path, **(env or {})},
                          check=False)


def has(module):
    """Whether a library is installed, without importing it."""
    import importlib.util
    return importlib.util.find_spec(module) is not None


def rows_of(loader, name):
    """All that a loader, or an iteration, gives of one tensor."""
    return numpy.concatenate([batch.numpy()[name].copy() for batch in loader])


class Case(unittest.TestCase):
    """A folder for the whole class, with d.sqlite and job.json."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-py-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.base = cls.folder / "d.sqlite"
        run_program("demo", "positions", "--rows", ROWS, "--seed", 1, "--to",
                    f"sqlite:{cls.base}")
        cls.path = cls.folder / "job.json"
        cls.path.write_text(json.dumps(cls.job()))

    @classmethod
    def job(cls, **loader):
        return {
            "source": {"kind": "sqlite", "path": str(cls.base),
                       "table": "measurements"},
            "fields": {
                "receivers": {"json_set": {
                    "column": "receivers", "keys": ["snr_db", "lat", "lon"],
                    "max": 5}, "standardize": True},
                "target": {"columns": ["tx_lat", "tx_lon"],
                           "standardize": True},
                "number": {"columns": ["id"], "dtype": "int64"}},
            "split": {"train": 0.8, "val": 0.2, "seed": 1, "by": "session"},
            "loader": {"batch_size": BATCH, "seed": 7, **loader},
            "device": "cpu"}

    def open(self, **arguments):
        """The job's loader, closed when the test has ended."""
        loader = penstock.open(self.path, **arguments)
        self.addCleanup(loader.close)
        return loader

    def loader(self, **arguments):
        """A loader in torch's words over the same table."""
        given = {"fields": {"target": ["tx_lat", "tx_lon"], "number": {
            "columns": ["id"], "dtype": "int64"}}, "batch_size": BATCH,
                 "device": "cpu", **arguments}
        source = given.pop("source", f"sqlite:{self.base}#measurements")
        loader = penstock.Loader(source, **given)
        self.addCleanup(loader.close)
        return loader

    def rank_loader(self, **arguments):
        """The same as one of several ranks, which cannot ask the others."""
        alone = self.loader(rank=0, world=1)
        return self.loader(source={
            "kind": "sqlite", "path": str(self.base), "table": "measurements",
            "fingerprint": fingerprint_of(alone)}, **arguments)

    def refused(self, kind, code, *names):
        """The block ends in this error, which says where, why and what next."""
        return Refused(self, kind, code, names)


def fingerprint_of(loader):
    return loader.stats()["dataset"]["fingerprint"]


def bytes_of(batch):
    """All tensors of a batch, one after the other, as the program digests
    them."""
    return b"".join(array.tobytes() for array in batch.numpy().values())
