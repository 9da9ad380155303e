"""Parquet, Arrow and Hugging Face files and object stores in the program, in both
ways that it has: by a plugin, and by the pyarrow of a Python that it starts. The
same batches and the same errors, and a child process that ends with it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import penstock
from arrow_files_test import HAVE_PYARROW, WAYS, Files, fields
from entry import main
from object_stores_test import ACCESS_KEY, S3Server, table_files
from penstock import program

PACKAGE = pathlib.Path(penstock.__file__).parent.parent


def children_of(process):
    path = pathlib.Path(f"/proc/{process}/task")
    return [int(child) for task in path.iterdir()
            for child in (task / "children").read_text().split()]


def is_running(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"


def on(processors):
    """What a process does first to use these processors only; None: all."""
    return processors and (lambda: os.sched_setaffinity(0, processors))


@unittest.skipUnless(HAVE_PYARROW, "without pyarrow")
class Program(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.files = Files(held.name)

    def environment(self, way, **variables):
        return {**os.environ, "PYTHONPATH": str(PACKAGE),
                "PENSTOCK_PYTHON": sys.executable,
                "PENSTOCK_ARROW_WAY": "scanner" if way == "scanner" else "",
                **variables}

    def run_it(self, way, *arguments, processors=None, **variables):
        return subprocess.run(
            [str(program.path()), *arguments], cwd=self.files.folder,
            env=self.environment(way, **variables), capture_output=True,
            text=True, check=False, timeout=120,
            preexec_fn=on(processors))

    def both(self, *arguments, **variables):
        """What the program writes and says; the same in both ways."""
        done = [self.run_it(way, *arguments, **variables) for way in WAYS]
        said = [re.sub("[0-9]+ rows/s", "", one.stdout) for one in done]
        self.assertEqual(said[0], said[1])
        self.assertEqual(done[0].returncode, done[1].returncode,
                         done[0].stderr + done[1].stderr)
        return done[1]

    def job(self, source, **settings):
        path = self.files.folder / "job.json"
        path.write_text(json.dumps({
            "source": source, "fields": fields(), "model": "none",
            "device": "cpu", "loader": {"batch_size": 256, "shuffle": True},
            **settings}))
        return "job.json"

    def test_batches_are_the_same_from_every_form(self):
        for form in (*Files.FORMS, "partitions"):
            with self.subTest(form):
                job = self.job(self.files.make(form))
                done = self.both("batch", job, "--steps", "0:11")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(done.stdout.splitlines()), 11)

    def test_columns_and_types_are_shown_alike(self):
        for form in ("parquet", "arrow_file"):
            path = self.files.make(form)["path"]
            done = self.both("peek", path)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_doctor_says_which_way_is_taken(self):
        said = {way: self.run_it(way, "doctor", "--parts").stdout
                for way in WAYS}
        self.assertIn("parquet: the plugin for Arrow", said["plugin"])
        self.assertRegex(said["scanner"],
                         f"parquet: pyarrow [0-9.]+ of {sys.executable}")

    def test_an_object_store_is_read_alike(self):
        server = S3Server({"train-data": {
            **table_files(), "rows.csv": b"a,b\n1,2\n3,4\n"}})
        self.addCleanup(server.close)
        variables = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
        for name in ("rows.parquet", "rows.arrow", "stream.arrow", "rows.csv"):
            with self.subTest(name):
                done = self.both("peek", f"s3://train-data/{name}",
                                 **variables)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_damaged_file_is_refused_alike(self):
        path = pathlib.Path(self.files.make("parquet")["path"])
        bytes_of = path.read_bytes()
        path.write_bytes(bytes_of[:4] + b"\xff" * 9000 + bytes_of[9004:])
        done = self.both("batch", self.job(str(path)), "--steps", "0:11",
                         "--json")
        self.assertEqual(done.returncode, 3)
        path.write_bytes(bytes_of[:-5])
        done = self.both("peek", str(path), "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["code"],
                         "files.damaged")

    def test_a_python_that_cannot_read_is_refused_with_what_to_do(self):
        path = self.files.make("parquet")["path"]
        for python, words in (("/nowhere/python3", "No such file"),
                              ("true", "ended with status 0")):
            done = self.run_it("scanner", "peek", path, "--json",
                               PENSTOCK_PYTHON=python)
            error = json.loads(done.stdout)["error"]
            self.assertEqual(error["where"], python)
            self.assertIn(words, error["why"])
            self.assertIn("PENSTOCK_PYTHON", error["next"])

    def test_what_is_missing_or_too_old_is_named(self):
        path = self.files.make("parquet")["path"]
        for text, words in (
                ("raise ModuleNotFoundError('none', name='pyarrow')",
                 "pyarrow is not installed"),
                ("__version__ = '14.0.2'", "15 or later is needed")):
            stand_in = self.files.folder / "stand_in"
            stand_in.mkdir(exist_ok=True)
            (stand_in / "pyarrow.py").write_text(text)
            done = self.run_it("scanner", "peek", path, "--json",
                               PYTHONPATH=f"{stand_in}:{PACKAGE}")
            error = json.loads(done.stdout)["error"]
            self.assertEqual(error["code"], "source.part_missing")
            self.assertIn(words, error["why"])

    def test_the_first_python_along_the_path_that_can_is_taken(self):
        first = self.files.folder / "first"
        first.mkdir()
        (first / "python3").write_text("#!/bin/sh\nexit 1\n")
        (first / "python3").chmod(0o755)
        second = self.files.folder / "second"
        second.mkdir()
        (second / "python3").write_text(
            f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
        (second / "python3").chmod(0o755)
        done = self.run_it(
            "scanner", "peek", self.files.make("parquet")["path"],
            PENSTOCK_PYTHON="", PATH=f"{first}:{second}:/usr/bin:/bin")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_of_a_module_s_name_beside_the_data_is_not_run(self):
        (self.files.folder / "pyarrow.py").write_text("raise SystemExit(9)")
        done = self.run_it("scanner", "peek",
                           self.files.make("parquet")["path"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def long_run(self, processors=None, **loader):
        """The program in an endless run, and its child processes."""
        job = self.job(self.files.make("parquets"),
                       train={"epochs": 100_000},
                       loader={"batch_size": 64, "cache": "none", **loader})
        running = subprocess.Popen(
            [str(program.path()), "train", job], cwd=self.files.folder,
            env=self.environment("scanner"), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            preexec_fn=on(processors))
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        end = time.monotonic() + 60
        while time.monotonic() < end and running.poll() is None:
            children = children_of(running.pid)
            if children and list(self.files.folder.glob("runs/*/run.json")):
                return running, children
            time.sleep(0.05)
        raise AssertionError(running.communicate()[0])

    def test_the_child_ends_with_the_program(self):
        running, children = self.long_run()
        running.send_signal(signal.SIGKILL)
        running.wait()
        end = time.monotonic() + 20
        while any(map(is_running, children)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse([one for one in children if is_running(one)])

    def test_there_are_no_more_children_than_processors(self):
        one = {min(os.sched_getaffinity(0))}
        running, _ = self.long_run(one, readers=8, workers=2)
        time.sleep(2)  # long enough for eight readers to ask for a child
        self.assertEqual(len(children_of(running.pid)), 1)
        self.assertIsNone(running.poll())

    def test_readers_that_share_a_child_get_the_rows_of_their_own(self):
        job = self.job(self.files.make("parquets"), loader={
            "batch_size": 64, "cache": "none", "readers": 8, "workers": 2})
        done = [self.run_it(way, "batch", job, "--steps", "0:40",
                            processors=processors)
                for way, processors in (
                    ("plugin", None),
                    ("scanner", {min(os.sched_getaffinity(0))}))]
        self.assertEqual(done[1].returncode, 0, done[1].stderr)
        self.assertEqual(done[0].stdout, done[1].stdout)

    def test_a_child_that_is_killed_is_told(self):
        running, children = self.long_run()
        for child in children:
            os.kill(child, signal.SIGKILL)
        said = running.communicate(timeout=60)[0]
        self.assertEqual(running.returncode, 3, said)
        self.assertIn("the process that reads files was ended by SIGKILL",
                      said.replace("\n", " "))


if __name__ == "__main__":
    main()
