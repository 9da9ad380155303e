#!/usr/bin/env python3
"""How does the time of opening a table grow with its columns?

A table of 20 rows of numbers with 2,000, 8,000 and 32,000 columns is written as
CSV, JSON lines, Parquet and safetensors, and held as a data frame with NULL. As
SQLite it has 124, 498 and 1,992 columns, near its limit. For each table, the
processor time of `penstock peek` and `penstock check` is measured in a process
of its own, less the time for a table of two columns, and that of opening a
penstock.Loader in Python and of its first epoch. "growth" is the factor for
four times the columns: 4 where time grows with the columns, 16 where it grows
with their square.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

from result import print_result, processor

COLUMNS, ROWS = (2000, 8000, 32000), 20
OF_SQLITE = (124, 498, 1992)
KINDS = ("csv", "jsonl", "parquet", "safetensors", "sqlite", "frame")
ONE_LOADER = """
import resource, sys
import penstock
kind, path, columns = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "frame":
    import numpy, pandas
    source = pandas.DataFrame(
        numpy.arange(20 * columns, dtype="float64").reshape(20, columns),
        columns=[f"c{i}" for i in range(columns)])
    source.iloc[0, 0] = None
    source["s"] = "a"
else:
    source = path
def used():
    of = resource.getrusage(resource.RUSAGE_SELF)
    return of.ru_utime + of.ru_stime
import numpy
penstock.Loader({"x": numpy.zeros((4, 2))}, batch_size=2, num_workers=0,
                device="cpu")  # loads what is loaded once
begun = used()
loader = penstock.Loader(source, batch_size=10, num_workers=0, device="cpu")
opened = used()
for batch in loader:
    batch.host()
print(opened - begun, used() - opened)
"""


def write(kind, path, columns):
    names = [f"c{i}" for i in range(columns)]
    rows = [[row * columns + at + 0.5 for at in range(columns)]
            for row in range(ROWS)]
    if kind == "csv":
        path.write_text("\n".join([",".join(names), *(
            ",".join(map(str, row)) for row in rows)]) + "\n")
    elif kind == "jsonl":
        path.write_text("".join(
            json.dumps(dict(zip(names, row))) + "\n" for row in rows))
    elif kind == "parquet":
        import pyarrow
        from pyarrow import parquet
        parquet.write_table(pyarrow.table(dict(zip(names, zip(*rows)))), path)
    elif kind == "safetensors":
        import struct
        size = 8 * ROWS
        head = json.dumps({name: {
            "dtype": "F64", "shape": [ROWS],
            "data_offsets": [size * at, size * (at + 1)]}
            for at, name in enumerate(names)}).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            for column in zip(*rows):
                file.write(struct.pack(f"<{ROWS}d", *column))
    elif kind == "sqlite":
        import sqlite3
        with sqlite3.connect(path) as table:
            table.execute("CREATE TABLE t (" + ", ".join(
                f"{name} REAL" for name in names) + ")")
            table.executemany("INSERT INTO t VALUES (" + ", ".join(
                "?" * columns) + ")", rows)


def named(kind, path):
    """The source as `penstock peek` and the Loader take it."""
    return f"sqlite:{path}#t" if kind == "sqlite" else str(path)


def processor_seconds(command):
    """Of a process that ends well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (
        before.ru_utime + before.ru_stime)


def measured(given, kind, path, columns, small):
    path.unlink(missing_ok=True)
    write(kind, path, columns)
    seconds = {}
    if kind != "frame":
        for verb in ("peek", "check"):
            seconds[verb] = min(processor_seconds(
                [given.program, verb, named(kind, path), "--json"]) - processor_seconds(
                    [given.program, verb, str(small), "--json"])
                for _ in range(given.repeats))
    runs = [tuple(map(float, subprocess.run(
        [sys.executable, "-c", ONE_LOADER, kind, named(kind, path), str(columns)],
        stdout=subprocess.PIPE, text=True, check=True).stdout.split()))
        for _ in range(given.repeats)]
    seconds["Loader"], seconds["epoch"] = map(min, zip(*runs))
    return seconds


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    given = arguments.parse_args()
    given.program = str(pathlib.Path(given.program).resolve())
    results = []
    with tempfile.TemporaryDirectory() as name:
        small = pathlib.Path(name) / "small.csv"
        write("csv", small, 2)
        for kind in given.kinds:
            path = pathlib.Path(name) / f"table.{kind}"
            before = {}
            for columns in OF_SQLITE if kind == "sqlite" else COLUMNS:
                seconds = measured(given, kind, path, columns, small)
                results.append({"kind": kind, "columns": columns,
                                "processor_s": seconds, "growth": {
                                    what: round(taken / before[what], 2)
                                    for what, taken in seconds.items()
                                    if before.get(what, 0) > 0.01}})
                before = seconds
                print(json.dumps(results[-1]), file=sys.stderr)
    print_result("wide_tables", __doc__, "bench/run wide_tables",
                 {"machine": processor(), "must_reach": {"growth": 5},
                  "results": results})


if __name__ == "__main__":
    main()
