"""The program's batches, rows, statistics and run folders, over SQLite and
PostgreSQL, against program.json. By the standard library of Python alone.

The program is named by the environment variable PENSTOCK.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import tables
from cases import ALL, CASES, CATEGORIES, SHARE, SIM, SPLIT, WAYS, Case
from golden import (POSTGRES, Golden, batches_entry, digest, main,
                    rows_entries)

PROGRAM = os.environ.get("PENSTOCK", "build/bin/penstock")
SERVER = os.environ.get("PENSTOCK_TEST_POSTGRES")
GOLDEN = Golden("program.json")

RUNS = {
    "plain": {},
    "five steps": {"train.max_steps": 5},
    "two epochs": {"train.epochs": 2, "split": SPLIT, "loader.tail": "exact"},
    "all fields": {**ALL.settings, "train.epochs": 3, "train.max_steps": 20},
    "categories": {"fields": CATEGORIES, "split": SPLIT},
    **{case.name: case.settings for case in CASES if "skip" in case.name},
}


def tearDownModule():
    GOLDEN.finish(without=None if SERVER else POSTGRES)


def call(folder, *arguments):
    """Standard output of the program, which must end well."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder,
                          capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def names_in(value, path=""):
    """The keys of a document: "a.b", of a list's elements "a[].b"."""
    if isinstance(value, dict):
        return {path}.union(*(names_in(inner, f"{path}.{name}".lstrip("."))
                              for name, inner in value.items()))
    if isinstance(value, list):
        return {path}.union(*(names_in(inner, path + "[]") for inner in value))
    return {path}


class Face:
    """What is tested over each kind of source."""

    maxDiff = None
    prefix = ""  # of what this kind of source has apart

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-golden-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def name(self, case, what):
        prefix = self.prefix if what in case.apart else ""
        return f"{prefix}{case.name}: {what}"

    def write_job(self, job):
        """In a folder of its own, into which its runs go."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "job.json").write_text(json.dumps(job))
        return folder

    def batches(self, case):
        folder = self.write_job(case.job(self.source))
        lines = call(folder, "batch", "job.json", "--steps", "0:100000",
                     "--epoch", case.epoch, "--split", case.side, "--rank",
                     case.rank, "--world", case.world)
        return batches_entry([json.loads(line) for line in lines.splitlines()])

    def run_of(self, settings, *arguments, device=SIM):
        """The folder of a run of this job."""
        job = Case("", {"device": device, **settings}).job(self.source)
        folder = self.write_job(job)
        call(folder, "train", "job.json", *arguments)
        return folder / "runs" / "latest"

    def found(self, case):
        """What there is to look at, by name."""
        entries = {"batches": self.batches(case)}
        if case.rows:
            run = self.run_of(case.settings, "--set", "train.max_steps=1")
            report = json.loads((run / "report.json").read_text())
            statistics = json.loads((run / "statistics.json").read_text())
            entries.update(rows_entries(report["dataset"], statistics))
        return entries

    def side_by_side(self, function, cases):
        """Each case with what the function finds of it, once it is asked."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(function, case) for case in cases]
        return zip(cases, (future.result for future in futures))

    def test_1_cases(self):
        cases = [case for case in CASES
                 if case.only in ("", self.source["kind"])]
        for case, found in self.side_by_side(self.found, cases):
            with self.subTest(case=case.name):
                for what, entry in found().items():
                    with self.subTest(what=what):
                        GOLDEN.check(self, self.name(case, what), entry)

    def test_2_ways_that_change_no_batch(self):
        ways = [case.but(**way) for case in (ALL, SHARE)
                for way in WAYS + self.own_ways]
        for case, found in self.side_by_side(self.batches, ways):
            with self.subTest(case=case.name, **case.job({})["loader"]):
                GOLDEN.check(self, self.name(case, "batches"), found())

    def test_3_run_folders(self):
        for name, settings in RUNS.items():
            run = self.run_of(settings)
            files = {file.name: file.read_text() for file in run.iterdir()}
            with self.subTest(run=name):
                self.check_run(name, files)
        self.check_names(files)

    def check_run(self, name, files):
        report = json.loads(files["report.json"])
        GOLDEN.check(self, f"run {name}: state.json",
                     json.loads(files["state.json"]))
        GOLDEN.check(self, f"run {name}: report.json", {
            **rows_entries(report["dataset"],
                           json.loads(files["statistics.json"])),
            "tier": report["plan"]["tier"], "steps": report["steps"],
            "samples": report["samples"],
            "epochs": [(epoch["epoch"], epoch["samples"])
                       for epoch in report["epochs"]]})
        lines = files.get("quarantine.jsonl", "").splitlines()
        bad = [[row["key"], row["column"], row.get("byte")]
               for row in map(json.loads, lines)]
        GOLDEN.check(self, f"run {name}: quarantine.jsonl",
                     {"rows": len(bad), "first": bad[:5], "all": digest(bad)})

    def check_names(self, files):
        """What a script may look for is still there; more may come."""
        lines = files["steps.jsonl"].splitlines()
        for file, document in (
                ("run.json", json.loads(files["run.json"])),
                ("report.json", json.loads(files["report.json"])),
                ("steps.jsonl", [json.loads(line) for line in lines])):
            # The machine and what is advised are others every time; the rest
            # is the job's own.
            varied = ("machine.", "verdict.", "job.", "settings.fields",
                      "settings.source")
            GOLDEN.check_names(self, f"names of {file}", {
                name for name in names_in(document) - {""}
                if not name.startswith(varied)})

    def test_4_a_resumed_run(self):
        run = self.run_of({"train.epochs": 2}, "--set", "train.max_steps=5")
        call(run.parent.parent, "train", "--resume", run.resolve(), "--set",
             "train.max_steps=17")
        GOLDEN.check(self, "resumed: state.json",
                     json.loads((run / "state.json").read_text()))

    def test_5_peek(self):
        seen = json.loads(call(self.folder, "peek", self.uri, "--json"))
        # What the rows of a column hold came later, and has tests of its own.
        kept = ("name", "type", "primary_key")
        GOLDEN.check(self, f"{self.prefix}peek", {
            "columns": [{key: column[key] for key in kept if key in column}
                        for column in seen["columns"]],
            "first": seen["first"]})


class OverSqlite(Face, unittest.TestCase):
    own_ways = []

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.folder / "d.sqlite"
        tables.write_sqlite(path)
        cls.source = {"kind": "sqlite", "path": str(path)}
        cls.uri = f"sqlite:{path}#rows"


@unittest.skipUnless(SERVER, "no server: run this through tools/with_postgres")
class OverPostgres(Face, unittest.TestCase):
    """The same results as from SQLite, but where a case says why not."""

    prefix = POSTGRES
    own_ways = [{"source__connections": count} for count in (1, 5)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        psql = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_BIN"], "psql")
        schema = f"golden_{os.getpid()}"
        tables.write_postgres(psql, SERVER, schema)
        cls.addClassCleanup(subprocess.run, [
            psql, "-qX", SERVER, "-c",
            f"SET client_min_messages = error; DROP SCHEMA {schema} CASCADE"],
                            check=True)
        uri = f"{SERVER}&options=-csearch_path%3D{schema}"
        cls.source = {"kind": "postgres", "uri": uri}
        cls.uri = uri + "#rows"


if __name__ == "__main__":
    main()
