"""One table with missing numbers, texts, times and lists, in every form that a
table has: the batches are the same, byte for byte. A form whose library or
server is not there is skipped."""
import contextlib
import csv
import datetime
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import sqlite3
import struct
import subprocess
import tempfile
import unittest

import penstock

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("pandas", "polars", "pyarrow")}
POSTGRES = os.environ.get("PENSTOCK_TEST_POSTGRES")
NAMES = ("id", "x", "n", "kind", "good", "heard_at", "v")
FIELDS = {
    "x": {"column": "x", "missing": "mean", "standardize": True},
    "n": {"columns": ["n"], "missing": "mask", "dtype": "int64"},
    "kind": {"category": {"column": "kind"}},
    "good": {"column": "good", "dtype": "bool"},
    "when": {"time": {"column": "heard_at", "parts": ["hour", "weekday"]}},
    "seconds": {"time": {"column": "heard_at"}},
    "v": {"array": {"column": "v", "shape": [3]}},
    "number": {"column": "id", "dtype": "int64"}}


def rows(count=300):
    draw = random.Random(11)
    begin = datetime.datetime(2026, 1, 1)
    for i in range(count):
        yield (i, None if i % 11 == 3 else round(draw.gauss(4, 2), 6),
               None if i % 7 == 5 else draw.randrange(-9, 10),
               None if i % 13 == 2 else draw.choice(("ä b", "cat", "dog")),
               draw.random() < 0.5, begin + datetime.timedelta(
                   seconds=draw.randrange(10**7)),
               [draw.randrange(-64, 64) / 8 for _ in range(3)])


def iso(row):
    """With the time as a text, and the list unchanged."""
    return (*row[:5], row[5].isoformat(sep=" "), row[6])


class Forms:
    """Makes the forms of the table in a folder: a source, and what of the
    fields differs."""

    def __init__(self, folder):
        self.folder, self.rows = pathlib.Path(folder), list(rows())

    def csv(self):
        with open(self.folder / "t.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(NAMES)
            for row in map(iso, self.rows):
                writer.writerow((*row[:6], json.dumps(row[6])))
        return str(self.folder / "t.csv"), {}

    def jsonl(self):
        with open(self.folder / "t.jsonl", "w") as file:
            for row in map(iso, self.rows):
                print(json.dumps(dict(zip(NAMES, row))), file=file)
        return str(self.folder / "t.jsonl"), {}

    def sqlite_texts(self, as_list=json.dumps, kind="TEXT"):
        path = self.folder / f"{kind}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, "
                         "n INTEGER, kind TEXT, good BOOLEAN, "
                         f"heard_at TIMESTAMP, v {kind})")
            base.executemany("INSERT INTO t VALUES (?,?,?,?,?,?,?)", [
                (*row[:6], as_list(row[6])) for row in map(iso, self.rows)])
        return f"sqlite:{path}#t", {}

    def sqlite_blobs(self):
        source, _ = self.sqlite_texts(lambda v: struct.pack("<3f", *v), "BLOB")
        return source, {"v": {"array": {"column": "v", "shape": [3],
                                        "of": "float32"}}}

    def table(self):
        import pyarrow
        columns = dict(zip(NAMES, map(list, zip(*self.rows))))
        return pyarrow.table(
            {**columns,
             "heard_at": pyarrow.array(columns["heard_at"],
                                       pyarrow.timestamp("us")),
             "v": pyarrow.array(columns["v"],
                                pyarrow.list_(pyarrow.float32()))})

    def parquet(self):
        import pyarrow.parquet
        pyarrow.parquet.write_table(self.table(), self.folder / "t.parquet",
                                    row_group_size=64)
        return str(self.folder / "t.parquet"), {}

    def arrow(self):
        import pyarrow
        table = self.table()
        with pyarrow.ipc.new_file(self.folder / "t.arrow",
                                  table.schema) as file:
            file.write_table(table, max_chunksize=50)
        return str(self.folder / "t.arrow"), {}

    def pyarrow(self):
        return self.table(), {}

    def pandas(self):
        import pandas
        return pandas.DataFrame(self.rows, columns=NAMES), {}

    def polars(self):
        import polars
        return polars.DataFrame(self.rows, schema=list(NAMES),
                                orient="row"), {}

    def postgres(self):
        def literal(value):
            if value is None:
                return "NULL"
            if isinstance(value, list):
                return "'{%s}'" % ",".join(map(repr, value))
            if isinstance(value, str):
                return f"'{value}'"
            return str(value)
        values = ",".join(f"({','.join(map(literal, row))})"
                          for row in map(iso, self.rows))
        psql = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_BIN"], "psql")
        subprocess.run(
            [psql, "-q", "-v", "ON_ERROR_STOP=1", POSTGRES],
            input="DROP TABLE IF EXISTS same_table; CREATE TABLE same_table ("
            "id bigint PRIMARY KEY, x double precision, n integer, kind text, "
            "good boolean, heard_at timestamp, v real[]);"
            f"INSERT INTO same_table VALUES {values};", text=True, check=True)
        return f"{POSTGRES}#same_table", {}


def digests(source, more, **settings):
    found = []
    with penstock.Loader(source, {**FIELDS, **more}, batch_size=32,
                         shuffle=True, seed=5,
                         split={"val": 0.25, "seed": 3, "by": "id"},
                         **settings) as loader:
        for _ in range(2):
            for batch in loader:
                digest = hashlib.sha256()
                for name, array in batch.numpy().items():
                    digest.update(f"{name} {array.dtype} {array.shape}"
                                  .encode())
                    digest.update(array.tobytes())
                found.append(digest.hexdigest())
    return found


class SameTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.forms = Forms(folder.name)
        self.expected = digests(*self.forms.csv())
        self.assertEqual(len(set(self.expected)), len(self.expected))

    def same(self, form):
        source, more = form()
        for workers in (0, 2):
            self.assertEqual(digests(source, more, num_workers=workers),
                             self.expected)

    def test_of_json_lines(self):
        self.same(self.forms.jsonl)

    def test_of_sqlite_with_lists_as_texts_or_bytes(self):
        self.same(self.forms.sqlite_texts)
        self.same(self.forms.sqlite_blobs)

    @unittest.skipUnless(HAVE["pyarrow"], "without pyarrow")
    def test_of_parquet_and_arrow(self):
        try:
            self.same(self.forms.parquet)
        except penstock.SourceError as error:
            if error.code != "source.part_missing":
                raise
            self.skipTest("built without Arrow")
        self.same(self.forms.arrow)

    @unittest.skipUnless(HAVE["pyarrow"], "without pyarrow")
    def test_of_a_table_of_pyarrow(self):
        self.same(self.forms.pyarrow)

    @unittest.skipUnless(HAVE["pandas"] and HAVE["pyarrow"], "without pandas")
    def test_of_a_data_frame_of_pandas(self):
        self.same(self.forms.pandas)

    @unittest.skipUnless(HAVE["polars"], "without polars")
    def test_of_a_data_frame_of_polars(self):
        self.same(self.forms.polars)

    @unittest.skipUnless(POSTGRES, "without a PostgreSQL server")
    def test_of_postgresql(self):
        self.same(self.forms.postgres)


if __name__ == "__main__":
    unittest.main()
