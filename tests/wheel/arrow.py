"""Parquet with the wheel and the pyarrow that is installed beside it: run by the
Python of an environment that holds both.

    arrow.py WAY [unittest's arguments]    WAY: plugin or scanner
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pyarrow
from pyarrow import parquet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / "end_to_end"))
from s3_server import ACCESS_KEY, S3Server  # noqa: E402

ROWS = 500
READ = """
import sys, penstock
before = "pyarrow" in sys.modules
with penstock.Loader(sys.argv[1], {"x": {"column": "x", "dtype": "float64"}},
                     50) as loader:
    rows = [x for batch in loader for x in batch.numpy()["x"].tolist()]
import json
maps = open("/proc/self/maps").read()
print(json.dumps({"rows": rows, "before": before,
                  "imported": "pyarrow" in sys.modules,
                  "plugin": "libpenstock_source_arrow" in maps,
                  "libraries": sorted({line.split()[-1] for line
                                       in maps.splitlines()
                                       if "/libarrow.so." in line})}))
import pyarrow.parquet
print(len(pyarrow.parquet.read_table(sys.argv[1])))
"""

READ_STORED = """
import json, sys, penstock
with penstock.Loader(sys.argv[1], {"x": {"column": "x", "dtype": "float64"}},
                     50) as loader:
    rows = [x for batch in loader for x in batch.numpy()["x"].tolist()]
print(json.dumps({"rows": rows, "imported": "pyarrow" in sys.modules,
                  "plugin": "libpenstock_object_store"
                            in open("/proc/self/maps").read()}))
"""


class Arrow(unittest.TestCase):
    way = ""

    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = pathlib.Path(held.name)
        cls.rows = [None if i % 9 == 4 else i / 8 for i in range(ROWS)]
        parquet.write_table(pyarrow.table({"x": [x or 0 for x in cls.rows]}),
                            cls.folder / "t.parquet", row_group_size=70)

    def run_python(self, *arguments, env=None):
        return subprocess.run([sys.executable, *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False,
                              env=env)

    def test_it_is_read_in_the_way_that_fits(self):
        done = self.run_python("-c", READ, "t.parquet")
        self.assertEqual(done.returncode, 0, done.stderr)
        told, again = done.stdout.splitlines()
        told = json.loads(told)
        self.assertEqual(told["rows"], [x or 0 for x in self.rows])
        self.assertFalse(told["before"], "penstock imports it when asked")
        self.assertEqual(told["plugin"], self.way == "plugin")
        self.assertEqual(told["imported"], self.way == "scanner")
        folder = pathlib.Path(pyarrow.__file__).parent
        self.assertEqual([pathlib.Path(path).parent
                          for path in told["libraries"]], [folder])
        self.assertEqual(again, str(ROWS), "pyarrow works beside it")

    def test_a_file_in_an_object_store_is_read_in_either_way(self):
        server = S3Server({"train-data": {
            "t.parquet": (self.folder / "t.parquet").read_bytes(),
            "t.csv": b"x\n" + b"\n".join(b"%d" % (i // 9) for i in
                                          range(ROWS))}})
        self.addCleanup(server.close)
        variables = {
            **os.environ, "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
        for name in ("t.parquet", "t.csv"):
            done = self.run_python("-c", READ_STORED,
                                   f"s3://train-data/{name}", env=variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual(len(told["rows"]), ROWS)
            self.assertEqual(told["plugin"], self.way == "plugin")
            self.assertEqual(told["imported"], self.way == "scanner")

    def test_the_program_reads_it_too(self):
        done = self.run_python("-m", "penstock", "peek", "t.parquet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("500", done.stdout)

    def test_the_program_says_in_which_way(self):
        done = self.run_python("-m", "penstock", "doctor", "--parts")
        self.assertEqual(done.returncode, 0, done.stderr)
        major = pyarrow.__version__.split(".")[0]
        self.assertIn(f"parquet: the plugin for Arrow {major}"
                      if self.way == "plugin" else
                      f"parquet: pyarrow {pyarrow.__version__}", done.stdout)


if __name__ == "__main__":
    Arrow.way = sys.argv.pop(1)
    unittest.main()
