"""Runs the program as a script would, and checks what scripts rely on.

The program is named by the environment variable PENSTOCK. Each test gets a
folder of its own, in which it makes databases and job files by plain Python.
"""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ.get("PENSTOCK", "build/bin/penstock")
RESULT_OF = {"request": 2, "source": 3, "transform": 4, "device": 5,
             "out_of_memory": 6, "internal": 70}
PATIENCE_S = 120
COLUMNS = "id INTEGER PRIMARY KEY, heard TEXT, y REAL"


class Answer:
    """What one call of the program left: exit code, the two outputs."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        """Standard output as exactly one document."""
        return json.loads(self.out)

    def lines(self):
        """Standard output as one document per line."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments, cwd=None, prefix=(), stdout=subprocess.PIPE, **variables):
    """Runs the program to its end. `variables` go to its environment."""
    done = subprocess.run(
        [*prefix, PROGRAM, *map(str, arguments)], cwd=cwd, stdout=stdout,
        stderr=subprocess.PIPE, timeout=PATIENCE_S, text=True,
        env={**os.environ, **variables}, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


@functools.cache
def _parts():
    told = run("doctor", "--parts", "--json").json()["parts"]
    return {part["part"]: part["there"] for part in told}


def has_part(name):
    """Whether this build has that optional part, and can load it here."""
    return _parts()[name]


def has_library(name):
    """Whether this build has the optional library libNAME, which no part of
    doctor's stands for."""
    folder = pathlib.Path(PROGRAM).resolve().parents[1]
    return any(folder.rglob(f"lib{name}.so"))


def read_safetensors(path):
    """Name -> (dtype, shape, bytes), in the order of the file."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    data = raw[8 + length:]
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def floats(tensor):
    """The numbers of an F32 tensor, flat."""
    dtype, _, data = tensor
    assert dtype == "F32", dtype
    return [number for (number,) in struct.iter_unpack("<f", data)]


def order_digest(ids):
    """What `order_digest` must be for these sample ids."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}q", *ids)).hexdigest()


def without_roots_rights():
    """A prefix under which file modes hold, even for root; None: there is no
    such thing here."""
    if os.geteuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    prefix = ["setpriv", "--bounding-set=" + rights, "--inh-caps=" + rights]
    if shutil.which("setpriv") is None:
        return None
    can = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if can.returncode == 0 else None


def tree_of(folder):
    """Every file under a folder with its bytes, and every link."""
    tree = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            tree[name] = "-> " + os.readlink(path)
        elif path.is_file():
            tree[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return tree


class Case(unittest.TestCase):
    """A folder, a job over a table of 64 small rows, and the usual checks."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    # -- what a test has to begin with

    def database(self, rows, declared=COLUMNS, name="d.sqlite", table="t"):
        """Makes a table of these rows."""
        path = self.folder / name
        with sqlite3.connect(path) as base:
            base.execute(f'CREATE TABLE "{table}" ({declared})')
            for row in rows:
                marks = ",".join("?" * len(row))
                base.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)
        base.close()
        return path

    @staticmethod
    def rows(count=64):
        """Good rows: id, a list of 1 to 4 elements, a number."""
        return [(i + 1,
                 json.dumps([{"a": i + j / 4, "b": j % 2 == 0}
                             for j in range(1 + i % 4)]),
                 i / 2) for i in range(count)]

    def job(self, **sections):
        """A job over d.sqlite; a section replaces the one of that name."""
        document = {
            "source": {"kind": "sqlite", "path": "d.sqlite", "table": "t"},
            "fields": {
                "heard": {"json_set": {"column": "heard", "keys": ["a", "b"],
                                       "max": 3}, "standardize": True},
                "y": {"columns": ["y"]}},
            "loader": {"batch_size": 16, "seed": 3},
            "device": {"kind": "sim", "step_ms": 1, "clock": "virtual"},
            **sections}
        return {key: value for key, value in document.items()
                if value is not None}

    def write_job(self, document=None, name="job.json"):
        text = document if isinstance(document, str) else json.dumps(
            self.job() if document is None else document)
        (self.folder / name).write_text(text)
        return name

    def good_start(self, **sections):
        self.database(self.rows())
        return self.write_job(self.job(**sections))

    # -- calls

    def run_it(self, *arguments, **variables):
        return run(*arguments, cwd=self.folder, **variables)

    def succeed(self, *arguments, **variables):
        answer = self.run_it(*arguments, **variables)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        return answer

    def train(self, *arguments):
        return self.succeed("train", "job.json", "--json", *arguments).json()

    def batches(self, *arguments, job="job.json"):
        return self.succeed("batch", job, *arguments).lines()

    def start(self, *arguments, prefix=()):
        """Starts the program and leaves it running."""
        process = subprocess.Popen(
            [*prefix, PROGRAM, *map(str, arguments)], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def wait_for(self, holds, what):
        """Waits until `holds()` gives something, and returns it."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = holds()
            if found:
                return found
            time.sleep(0.005)
        return self.fail("waited in vain for " + what)

    def newest_run(self, *files):
        """The newest folder of a run, once it holds these files."""
        def found():
            runs = sorted((self.folder / "runs").glob("2*"))
            return runs and all((runs[-1] / file).exists() for file in files) \
                and runs[-1]
        return self.wait_for(found, "a run with " + ", ".join(files))

    def end_by(self, process, number=signal.SIGINT):
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        return Answer(process.returncode, out, err)

    # -- checks

    def refused(self, answer, kind, code, *names):
        """The answer is this error, as a document that helps: it names each of
        `names`, says where it is, what was found and what to do next."""
        self.assertEqual(answer.code, RESULT_OF[kind], answer.out + answer.err)
        document = answer.json()
        self.assertEqual(list(document), ["error"])
        error = document["error"]
        self.assertEqual(list(error),
                         ["kind", "code", "what", "where", "why", "next"])
        self.assertEqual((error["kind"], error["code"]), (kind, code), error)
        for part in ("what", "where", "why", "next"):
            self.assertTrue(error[part], f"'{part}' is empty in {error}")
        text = " | ".join(error.values())
        for name in names:
            self.assertIn(name, text)
        return error

    def refuse(self, kind, code, *names, arguments=None, sets=()):
        """Training the job ends in this error; with no --json, standard output
        stays empty and the same is told on standard error."""
        arguments = arguments or ["train", "job.json"]
        for change in sets:
            arguments = [*arguments, "--set", change]
        error = self.refused(self.run_it(*arguments, "--json"), kind, code,
                             *names)
        plain = self.run_it(*arguments)
        self.assertEqual((plain.code, plain.out), (RESULT_OF[kind], ""))
        told = plain.err.splitlines()[-1]
        self.assertTrue(told.startswith("penstock: "), told)
        for name in names:
            self.assertIn(name, told)
        return error
