#!/usr/bin/env python3
"""How long is the first epoch of a file of a table, from opening it on, and
how long are later ones?

A table of 20 columns, float32 and int32 in turns, as Parquet (snappy, zstd),
Arrow IPC, CSV and JSON lines, to shuffled batches of 8192 rows of float32, as
torch tensors, (a) by pyarrow's reader of the format, one array made of its
columns, and `index_select` by a permutation, and (b) by penstock.Loader with
two workers. Both begin with the path and end with the last batch; each way is a
process of its own, in turns, and the files are in the page cache. That both
deliver the same rows is checked by a sum over hashes of rows. Later epochs, whose
rows are in memory, are told beside `index_select(out=)` into one buffer. CSV and
JSON lines are also told beside pyarrow's reader alone. Where `datasets` is installed, a
third way is torch's DataLoader with two workers over that library's data set of
the file with_format("torch"): once, and for some batches, from which its epoch is
extrapolated.

Run it in the environment of setup.sh with pyarrow; bench/run does.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch

from peer_result import print_result, spread, torch_machine

COLUMNS = 20
BATCH = 8192
FORMATS = {"parquet, snappy": "snappy.parquet", "parquet, zstd": "zstd.parquet",
           "Arrow IPC": "arrow", "CSV": "csv", "JSON lines": "jsonl"}
OF_DATASETS = 8  # batches that its rate is taken from
LATER = 5  # epochs, of which the median is told
MUST = {"csv": 0.8, "jsonl": 0.8}  # of the reader alone; the others 1.0


def names():
    return [f"c{number}" for number in range(COLUMNS)]


def write_files(folder, rows, text_rows):
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
    random = numpy.random.default_rng(1)
    table = pyarrow.table({
        name: random.normal(size=rows).astype("float32") if at % 2 == 0 else
        random.integers(-10**6, 10**6, rows).astype("int32")
        for at, name in enumerate(names())})
    for codec in ("snappy", "zstd"):
        pyarrow.parquet.write_table(table, folder / f"t.{codec}.parquet",
                                    compression=codec)
    with pyarrow.ipc.new_file(folder / "t.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=1 << 16)
    text = table.slice(0, text_rows)
    pyarrow.csv.write_csv(text, folder / "t.csv")
    line = "{" + ", ".join(f'"{name}": %r' for name in names()) + "}\n"
    with open(folder / "t.jsonl", "w", encoding="utf-8") as file:
        for part in text.to_batches(max_chunksize=50_000):
            columns = [column.to_pylist() for column in part.columns]
            file.writelines(line % row for row in zip(*columns))


def read_by_pyarrow(path):
    import pyarrow
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet
    if path.endswith(".parquet"):
        return pyarrow.parquet.read_table(path)
    if path.endswith(".arrow"):
        return pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()
    if path.endswith(".csv"):
        return pyarrow.csv.read_csv(path)
    return pyarrow.json.read_json(path)


def by_pyarrow(path, told):
    table = read_by_pyarrow(path)
    told["reader_s"] = time.perf_counter() - told["start"]
    rows = numpy.empty((table.num_rows, table.num_columns), "float32")
    for at, column in enumerate(table.columns):
        rows[:, at] = column.to_numpy()
    del table
    x = torch.from_numpy(rows)
    order = torch.randperm(len(x))
    for at in range(0, len(order), BATCH):
        yield x.index_select(0, order[at:at + BATCH])
    buffer = torch.empty((BATCH, x.shape[1]))

    def again():
        order = torch.randperm(len(x))
        for at in range(0, len(order), BATCH):
            rows = order[at:at + BATCH]
            torch.index_select(x, 0, rows, out=buffer[:len(rows)])
        return len(order)
    told["again"] = again


def by_penstock(path, told):
    import penstock
    loader = penstock.Loader(path, fields={"x": {"columns": names()}},
                             batch_size=BATCH, shuffle=True, device="cpu",
                             num_workers=2)
    for batch in loader:
        yield batch.torch()["x"]

    def again():
        return sum(len(batch.torch()["x"]) for batch in loader)
    told["again"] = again


def by_datasets(path, told):
    """Some batches of torch's DataLoader over a Hugging Face data set, two
    workers; the epoch is told as if all of them took as long."""
    import datasets
    with tempfile.TemporaryDirectory() as cache:
        kind = {"parquet": "parquet", "arrow": "arrow", "csv": "csv",
                "jsonl": "json"}[path.rsplit(".", 1)[1]]
        data = datasets.load_dataset(kind, data_files=path, cache_dir=cache,
                                     split="train").with_format("torch")
        loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True,
                                             num_workers=2)
        told["made_s"] = time.perf_counter() - told["start"]
        for number, batch in enumerate(loader):
            yield torch.stack([batch[name].float() for name in names()], 1)
            if number == 0:
                first = time.perf_counter()
            if number == OF_DATASETS:
                break
        each = (time.perf_counter() - first) / OF_DATASETS
        told["extrapolated_epoch_s"] = told["made_s"] + each * len(loader)


def hash_of(batch):
    """The same for the same rows in any order."""
    bits = batch.numpy().view(numpy.uint32).astype(numpy.uint64)
    weights = numpy.arange(1, COLUMNS + 1, dtype=numpy.uint64) * numpy.uint64(
        0x9E3779B97F4A7C15)
    rows = (bits * weights).sum(1, dtype=numpy.uint64)
    return int(((rows ^ (rows >> numpy.uint64(29))) *
                numpy.uint64(0xBF58476D1CE4E5B9)).sum(dtype=numpy.uint64))


def timed(epoch, rows):
    start = time.perf_counter()
    assert epoch() == rows
    return time.perf_counter() - start


def measure(way, path, checked):
    """One epoch, in this process; told on standard output."""
    if way == "pyarrow":
        import pyarrow.csv, pyarrow.json, pyarrow.parquet  # noqa: E401, F401
    elif way == "datasets":
        import datasets  # noqa: F401
    else:
        import penstock  # noqa: F401
    told = {"start": time.perf_counter()}
    cpu = time.process_time()
    rows = total = 0
    ways = {"pyarrow": by_pyarrow, "penstock": by_penstock,
            "datasets": by_datasets}
    for batch in ways[way](path, told):
        if rows == 0:
            told["first_batch_s"] = time.perf_counter() - told["start"]
        rows += len(batch)
        if checked:
            total = (total + hash_of(batch)) % 2**64
    told["epoch_s"] = time.perf_counter() - told.pop("start")
    told["cpu_s"] = time.process_time() - cpu
    if (again := told.pop("again", None)) is not None and not checked:
        told["later_epoch_s"] = statistics.median(
            timed(again, rows) for _ in range(LATER))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**told, "rows": rows, "hash": total,
                      "peak_mib": peak // 1024}))


def run(way, path, checked=False):
    done = subprocess.run(
        [sys.executable, __file__, "--measure", way, str(path)] +
        ["--checked"] * checked, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(name, path, repeats, with_datasets):
    whole = {way: run(way, path, checked=True) for way in
             ("pyarrow", "penstock")}
    assert whole["pyarrow"]["rows"] == whole["penstock"]["rows"], whole
    assert whole["pyarrow"]["hash"] == whole["penstock"]["hash"], name
    found = {"pyarrow": [], "penstock": []}
    for _ in range(repeats):
        for way, runs in found.items():
            runs.append(run(way, path))
    result = {"format": name, "rows": whole["penstock"]["rows"],
              "file_mib": path.stat().st_size >> 20}
    for way, runs in found.items():
        for key in ("epoch_s", "first_batch_s", "cpu_s", "peak_mib",
                    "later_epoch_s"):
            result.setdefault(way, {})[key] = spread([r[key] for r in runs])
    result["pyarrow"]["reader_s"] = spread(
        [r["reader_s"] for r in found["pyarrow"]])
    ours = result["penstock"]["epoch_s"]["median"]
    result["ratio"] = result["pyarrow"]["epoch_s"]["median"] / ours
    result["later_epochs"] = {
        "ratio": result["pyarrow"]["later_epoch_s"]["median"] /
        result["penstock"]["later_epoch_s"]["median"],
        "must_reach": ">= 0.9 of index_select(out=)"}
    if with_datasets:
        theirs = run("datasets", path)
        result["datasets"] = {key: theirs[key] for key in (
            "made_s", "first_batch_s", "extrapolated_epoch_s")}
        result["of_datasets"] = {
            "ratio": theirs["extrapolated_epoch_s"] / ours,
            "must_reach": ">= 5"}
    kind = path.suffix[1:]
    if kind in MUST:
        result["of_reader"] = {
            "ratio": result["pyarrow"]["reader_s"]["median"] / ours,
            "must_reach": f">= {MUST[kind]}"}
    else:
        result["must_reach"] = ">= 1.0"
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--text-rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-datasets", action="store_true",
                        help="minutes, on a machine that others use")
    parser.add_argument("--note", default=None)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--checked", action="store_true",
                        help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(*options.measure, options.checked)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_files(folder, options.rows, options.text_rows)
        with_datasets = (not options.without_datasets and
                         importlib.util.find_spec("datasets") is not None)
        results = [compare(name, folder / f"t.{end}", options.repeats,
                           with_datasets) for name, end in FORMATS.items()]
    print_result(
        "peers_files", __doc__,
        f"bench/run peers_files --rows {options.rows} --text-rows "
        f"{options.text_rows} --repeats {options.repeats}",
        {"machine": torch_machine(), "load_average": os.getloadavg(),
         **({"note": options.note} if options.note else {}),
         "columns": COLUMNS, "batch_size": BATCH,
         "results": results})


if __name__ == "__main__":
    main()
