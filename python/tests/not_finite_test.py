"""NaN and infinities in a column of numbers mean the same wherever the rows
come from. A form whose library or server is not there is skipped."""

import contextlib
import importlib.util
import json
import math
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

import numpy

import penstock
import penstock.program
from entry import main

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("pandas", "polars", "pyarrow")}
POSTGRES = os.environ.get("PENSTOCK_TEST_POSTGRES")
NAN, INF = math.nan, math.inf


class Forms:
    """Makes forms of a table with the column x, of float64 where that can be
    said: a source. None is NULL."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def csv(self, values):
        path = self.folder / "t.csv"
        path.write_text("k,x\n" + "".join(
            f"{at},{'' if value is None else value}\n"
            for at, value in enumerate(values)))
        return str(path)

    def jsonl(self, values):
        path = self.folder / "t.jsonl"
        path.write_text("".join(  # JSON has no NaN
            json.dumps({"k": at, "x": None if value != value else value}) +
            "\n" for at, value in enumerate(values)))
        return str(path)

    def sqlite(self, values):
        path = self.folder / "t.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("DROP TABLE IF EXISTS t")
            base.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, x REAL)")
            base.executemany("INSERT INTO t VALUES (?, ?)", enumerate(values))
        return f"sqlite:{path}#t"  # where NaN is NULL

    def table(self, values):
        import pyarrow
        return pyarrow.table({
            "k": pyarrow.array(range(len(values))),
            "x": pyarrow.array(values, pyarrow.float64())})

    def parquet(self, values):
        import pyarrow.parquet
        path = self.folder / "t.parquet"
        pyarrow.parquet.write_table(self.table(values), path)
        return str(path)

    def arrow(self, values):
        import pyarrow
        path = self.folder / "t.arrow"
        table = self.table(values)
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        return str(path)

    def pandas(self, values):
        import pandas
        return pandas.DataFrame({"k": range(len(values)), "x": pandas.Series(
            [NAN if value is None else value for value in values])})

    def polars(self, values):
        import polars
        return polars.DataFrame({"k": range(len(values)), "x": polars.Series(
            values, dtype=polars.Float64)})

    def postgres(self, values, kind="float8"):
        shown = ",".join(f"({at}, {'NULL' if value is None else repr(str(value))})"
                         for at, value in enumerate(values))
        psql = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_BIN"], "psql")
        subprocess.run(
            [psql, "-q", "-v", "ON_ERROR_STOP=1", POSTGRES],
            input="SET client_min_messages = error; "
            "DROP TABLE IF EXISTS not_finite; CREATE TABLE not_finite "
            f"(k bigint PRIMARY KEY, x {kind}); INSERT INTO not_finite VALUES "
            f"{shown};", text=True, check=True)
        return f"{POSTGRES}#not_finite"

    def all(self, values):
        if INF not in values:  # which JSON has not
            yield self.jsonl
        yield self.csv
        yield self.sqlite
        if HAVE["pyarrow"]:
            yield self.table
            yield self.parquet
            yield self.arrow
        if HAVE["pyarrow"] and HAVE["pandas"]:
            yield self.pandas
        if HAVE["polars"]:
            yield self.polars
        if POSTGRES:
            for kind in ("float4", "float8", "numeric"):
                def of_kind(values, kind=kind):
                    return self.postgres(values, kind)
                of_kind.__name__ = f"postgres {kind}"
                yield of_kind


class NotFinite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.forms = Forms(folder.name)

    def read(self, source, *arguments, **named):
        with penstock.Loader(source, *arguments, batch_size=16, shuffle=False,
                             num_workers=0, **named) as loader:
            return {name: array.tolist() for name, array in
                    next(iter(loader)).numpy().items()}

    def same(self, values, rule, *expected):
        """What the field x is by this rule, and perhaps its mask."""
        for form in self.forms.all(values):
            with self.subTest(form.__name__, rule=rule):
                found = self.read(form(values), {"x": {"column": "x", **rule}})
                for name, wanted in zip(("x", "x_mask"), expected):
                    numpy.testing.assert_array_equal(found[name], wanted)

    def test_nan_becomes_what_missing_says(self):
        values = [1.5, NAN, None, 3.0, NAN, 6.0]
        for dtype in ("float32", "float64"):
            of = {"dtype": dtype}
            self.same(values, {"missing": "nan", **of},
                      [1.5, NAN, NAN, 3, NAN, 6])
            self.same(values, {"missing": "mean", **of},
                      [1.5, 3.5, 3.5, 3, 3.5, 6])
        self.same(values, {"missing": "median"}, [1.5, 3, 3, 3, 3, 6])
        self.same(values, {"missing": "zero"}, [1.5, 0, 0, 3, 0, 6])
        self.same(values, {"missing": -7}, [1.5, -7, -7, 3, -7, 6])
        self.same(values, {"missing": "mask"}, [1.5, 0, 0, 3, 0, 6],
                  [1, 0, 0, 1, 0, 1])

    def test_infinities_stay_where_nan_stays(self):
        values = [1.5, INF, NAN, -INF, None, 3.0]
        for dtype in ("float32", "float64", "float16"):
            self.same(values, {"missing": "nan", "dtype": dtype},
                      [1.5, INF, NAN, -INF, NAN, 3])

    def test_without_fields_all_values_are_as_they_are(self):
        values = [1.5, INF, NAN, -INF, None, 3.25]
        for form in self.forms.all(values):
            with self.subTest(form.__name__):
                found = self.read(form(values))
                numpy.testing.assert_array_equal(
                    found["x"], [1.5, INF, NAN, -INF, NAN, 3.25])

    def test_check_says_the_same(self):
        if not penstock.program.path().exists():
            self.skipTest("without the program")
        values = [1.5, INF, NAN, -INF, None, 3.25]
        for form in self.forms.all(values):
            source = form(values)
            if isinstance(source, str):
                with self.subTest(form.__name__):
                    found = subprocess.run(
                        [penstock.program.path(), "check", source, "--json"],
                        capture_output=True, text=True, check=True)
                    self.assertEqual(json.loads(found.stdout)["bad_rows"], 0)

    def test_elsewhere_an_infinity_is_a_bad_row(self):
        values = [1.5, INF, None, 3.0]
        for rule in ({"missing": "mean"}, {"missing": "zero"},
                     {"missing": "nan", "standardize": True},
                     {"missing": "nan", "min_max": True},
                     {"missing": "nan", "clip": [0, 1]}):
            for form in self.forms.all(values):
                with self.subTest(form.__name__, rule=rule), \
                        self.assertRaises(penstock.TransformError) as raised:
                    self.read(form(values), {"x": {"column": "x", **rule}})
                self.assertEqual(raised.exception.code, "data.bad_rows")
                self.assertIn("an infinity", str(raised.exception))

    def test_without_missing_nan_is_a_bad_row(self):
        values = [1.5, NAN, 3.0]
        for form in self.forms.all(values):
            with self.subTest(form.__name__), \
                    self.assertRaises(penstock.TransformError) as raised:
                self.read(form(values), {"x": {"column": "x"}})
            self.assertEqual(raised.exception.code, "data.bad_rows")


if __name__ == "__main__":
    main()
