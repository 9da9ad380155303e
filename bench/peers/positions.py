#!/usr/bin/env python3
"""How long does the first epoch take, connecting included, when torch's
DataLoader asks the database itself, and when Penstock feeds it?

The demo's rows with the fields of the quick start's job, in Penstock's shuffled
order, in batches of 256. Each method first delivers a whole epoch of a small
table, whose tensors are compared with what `penstock batch --out` writes: bit
for bit without standardisation, within one unit in the last place with it.
Then each is timed on a large table, in turns. A method that would take long
is timed for a part of the epoch (at least 10 s and 1,000 samples; with a new
connection per sample 1,000 samples) and its epoch is extrapolated from that,
which the result says. Penstock's time is the life of the process `penstock
train`; those of the peers begin after their imports, and they are given mean
and deviation, which Penstock finds out. Where the package `penstock` can be
imported, a loop over `penstock.open(...)` in this process that takes every
batch as torch tensors is timed too, and its tensors are compared as well.

Run it in the environment of setup.sh; bench/run does.
"""
import argparse
import functools
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import time

import numpy as np
import orjson
import psycopg
import torch
from torch.utils.data import DataLoader

try:
    import penstock
except ImportError:
    penstock = None

from peer_result import ROOT, machine_of, print_result, spread
from position_rows import COLUMNS, PerSample, Rules, Sqlite, tensors_of

BATCH = 256
LONG_SECONDS, LONG_SAMPLES = 10, 1000


# --- The methods: data sets that ask a query per sample, or per batch.

class Postgres(PerSample):
    def __init__(self, keys, rules, uri, table):
        super().__init__(keys, rules)
        self.uri, self.table = uri, table

    def connect(self):
        connection = psycopg.connect(self.uri, autocommit=True)
        # The faster parser, in favour of the peer.
        psycopg.types.json.set_json_loads(orjson.loads, connection)
        return connection

    def fetch(self, connection, key):
        return connection.execute(
            f"SELECT {COLUMNS} FROM {self.table} WHERE id = %s",
            (key,)).fetchone()


class NewConnection(Postgres):
    """A connection per sample: what a session per sample comes to."""

    def __getitem__(self, at):
        with self.connect() as connection:
            return tensors_of(self.fetch(connection, self.keys[at]), self.rules)


class AnyOfBatch(Postgres):
    """One `= ANY` query per batch; the answer is put in order here."""

    def __getitem__(self, batch):
        if self.connection is None:
            self.connection = self.connect()
        keys = [self.keys[at] for at in batch]
        rows = self.connection.execute(
            f"SELECT id, {COLUMNS} FROM {self.table} WHERE id = ANY(%s)",
            (keys,)).fetchall()
        by_key = {row[0]: row[1:] for row in rows}
        parts = [tensors_of(by_key[key], self.rules) for key in keys]
        return [torch.stack(part) for part in zip(*parts)]


def loader_of(dataset, workers):
    order = range(len(dataset))  # the keys are in the order of the epoch
    batches = [order[at:at + BATCH] for at in range(0, len(order), BATCH)]
    if isinstance(dataset, AnyOfBatch):
        return DataLoader(dataset, sampler=batches, batch_size=None)
    return DataLoader(dataset, batch_sampler=batches, num_workers=workers)


# --- Penstock, as its user calls it.

def job_of(source, folder, standardize=True):
    job = json.loads((ROOT / "examples/positions/job.json").read_text())
    job |= {"source": source, "split": {}, "model": "none", "device": "cpu",
            "train": {"epochs": 1}, "output": {"dir": f"{folder}/runs"}}
    job["loader"] |= {"batch_size": BATCH, "tail": "exact"}
    for field in job["fields"].values():
        field["standardize"] = standardize
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return path


def call(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return [np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])],
                          np.float32).reshape(entry["shape"])
            for entry in header.values()]  # in the order of the fields


def epoch_of(program, job, out=None):
    """The keys of each batch of epoch 0 and, with `out`, their tensors."""
    arguments = ["batch", job, "--epoch", 0, "--steps", f"0:{1 << 40}"]
    if out:
        arguments += ["--out", out]
    lines = call(program, *arguments).splitlines()
    keys = [key for line in lines for key in json.loads(line)["keys"]]
    files = sorted(out.glob("*.safetensors")) if out else []
    return keys, [read_safetensors(file) for file in files]


def python_epoch(job):
    """Epoch 0 as torch tensors."""
    with penstock.open(job) as loader:
        for batch in loader:
            yield list(batch.torch().values())


def fitted_by(program, job):
    run = json.loads(call(program, "train", job, "--json"))["run"]
    return json.loads((pathlib.Path(run) / "statistics.json").read_text())


# --- Comparing and timing.

def same(ours, theirs, ulps):
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs):
        b = b.numpy()
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if ulps == 0 and a.tobytes() != b.tobytes():
            return False
        if np.any(np.abs(a - b) > ulps * np.spacing(np.abs(a))):
            return False
    return True


def check(program, methods, folder):
    """Both ways to standardise, a whole epoch of the small table."""
    for method in methods:
        method["equal"] = {}
        for standardize, ulps, word in ((False, 0, "raw: bit for bit"),
                                        (True, 1, "standardised: 1 ulp")):
            job = job_of(method["source"], folder, standardize)
            out = folder / f"out-{standardize}"
            out.mkdir(exist_ok=True)
            for old in out.glob("*"):
                old.unlink()
            keys, ours = epoch_of(program, job, out)
            if penstock and not all(
                    same(a, b, 0) for a, b in
                    zip(ours, python_epoch(job), strict=True)):
                raise SystemExit(f"penstock.open: other tensors ({word})")
            rules = Rules(fitted_by(program, job) if standardize else None)
            theirs = list(loader_of(method["make"](keys, rules),
                                    method["workers"]))
            equal = len(ours) == len(theirs) and all(
                same(a, b, ulps) for a, b in zip(ours, theirs))
            if not equal:
                raise SystemExit(f"{method['name']}: other tensors ({word})")
            method["equal"][word] = len(keys)


def time_peer(method, keys, rules):
    """Seconds of the epoch, samples that were timed."""
    start = time.perf_counter()
    done, first = 0, None
    for batch in loader_of(method["make"](keys, rules), method["workers"]):
        done += len(batch[0])
        now = time.perf_counter() - start
        first = first or now
        if method["slow"] and done >= LONG_SAMPLES and now >= LONG_SECONDS:
            break
        if method["very_slow"] and done >= LONG_SAMPLES:
            break
    seconds = time.perf_counter() - start
    return seconds * len(keys) / done, done, first


def time_penstock(program, job):
    start = time.perf_counter()
    report = json.loads(call(program, "train", job, "--json"))
    return time.perf_counter() - start, report["samples"]


def time_python(job):
    start = time.perf_counter()
    samples = sum(len(tensors[0]) for tensors in python_epoch(job))
    return time.perf_counter() - start, samples


def measure(program, methods, folder, repeats):
    """Each source's Penstock and peers in turns; one result per source."""
    results = []
    for source in unique([method["source"] for method in methods]):
        here = [m for m in methods if m["source"] == source]
        job = job_of(source, folder)
        keys, _ = epoch_of(program, job)
        rules = Rules(fitted_by(program, job))
        ours, theirs = [], {m["name"]: [] for m in here}
        in_python = []
        for repeat in range(repeats):
            seconds, samples = time_penstock(program, job)
            assert samples == len(keys)
            ours.append(seconds)
            if penstock:
                seconds, samples = time_python(job)
                assert samples == len(keys)
                in_python.append(seconds)
            for method in here:
                if method["slow"] and repeat > 0:
                    continue  # long enough to stand alone
                theirs[method["name"]].append(time_peer(method, keys, rules))
        shown = {k: v for k, v in source.items() if k not in ("uri", "path")}
        entry = {"source": shown, "rows": len(keys),
                 "penstock_epoch_seconds": spread(ours), "peers": []}
        if in_python:
            entry["python_epoch_seconds"] = spread(in_python)
        for method in here:
            times = theirs[method["name"]]
            timed = min(done for _, done, _ in times)
            peer = {"method": method["name"], "equal": method["equal"],
                    "epoch_seconds": spread([t for t, _, _ in times]),
                    "first_batch_seconds": spread([f for _, _, f in times]),
                    "timed_samples": timed,
                    "extrapolated": timed < len(keys)}
            peer["penstock_is_faster_by"] = (
                peer["epoch_seconds"]["median"]
                / entry["penstock_epoch_seconds"]["median"])
            if in_python:
                peer["python_is_faster_by"] = (
                    peer["epoch_seconds"]["median"]
                    / entry["python_epoch_seconds"]["median"])
            if "must_reach" in method:
                peer["must_reach"] = method["must_reach"]
            entry["peers"].append(peer)
        results.append(entry)
    return results


def unique(items):
    return functools.reduce(
        lambda kept, item: kept if item in kept else kept + [item], items, [])


def methods_of(path, uri, tables, connections):
    """All methods for one pair of databases."""
    source = {"kind": "sqlite", "path": str(path), "table": "measurements"}

    def method(name, source, make, workers=0, slow=False, very_slow=False,
               **more):
        return dict(name=name, source=source, make=make, workers=workers,
                    slow=slow, very_slow=very_slow, **more)

    def sqlite(keys, rules):
        return Sqlite(keys, rules, path)
    methods = [
        method("DataLoader, a query per sample", source, sqlite, slow=True),
        method("DataLoader, a query per sample, 2 workers", source, sqlite,
               workers=2, slow=True)]
    for table in tables if uri else []:
        source = {"kind": "postgres", "uri": uri, "table": table,
                  "connections": connections}

        def making(kind, table=table):
            return lambda keys, rules: kind(keys, rules, uri, table)
        faster = 20 if "jsonb" in table else 50
        methods += [
            method("DataLoader, a query per sample on one connection", source,
                   making(Postgres), slow=True,
                   must_reach=f"faster by >= {faster}"),
            method("DataLoader, a new connection per sample", source,
                   making(NewConnection), slow=True, very_slow=True,
                   must_reach="faster by >= 300"),
            method("DataLoader, one = ANY query per batch", source,
                   making(AnyOfBatch))]
    return methods


def demo(program, rows, path, uri, tables):
    to = [(f"sqlite:{path}", "json")]
    if uri:
        to += [(f"{uri}#{table}", table.split("_")[-1]) for table in tables]
    for place, json_type in to:
        call(program, "demo", "positions", "--rows", rows, "--to", place,
             "--json-type", json_type, "--replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default=ROOT / "build/bin/penstock")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--check-rows", type=int, default=4_030)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--connections", type=int, default=2)
    options = parser.parse_args()
    uri = os.environ.get("PENSTOCK_BENCH_POSTGRES")
    torch.set_num_threads(1)  # its idle threads only disturb the peers
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = pathlib.Path(name)
        small = [f"peers_small_{kind}" for kind in ("jsonb", "json", "text")]
        large = [f"peers_large_{kind}" for kind in ("jsonb", "json", "text")]
        path = folder / "small.sqlite"
        demo(options.program, options.check_rows, path, uri, small)
        checked = methods_of(path, uri, small, options.connections)
        check(options.program, checked, folder)
        path = folder / "large.sqlite"
        demo(options.program, options.rows, path, uri, large)
        timed = methods_of(path, uri, large, options.connections)
        for method, twin in zip(timed, checked):
            method["equal"] = twin["equal"]
        results = measure(options.program, timed, folder, options.repeats)
    print_result(
        "peers_positions", __doc__,
        f"bench/run peers_positions --rows {options.rows} "
        f"--check-rows {options.check_rows} --repeats {options.repeats} "
        f"--connections {options.connections}",
        {"machine": machine_of(options.program),
         "peers": {"torch": torch.__version__, "numpy": np.__version__,
                   "psycopg": psycopg.__version__,
                   "orjson": orjson.__version__},
         "postgres": "measured" if uri else
                     "skipped: PENSTOCK_BENCH_POSTGRES is not set",
         "results": results})


if __name__ == "__main__":
    main()
