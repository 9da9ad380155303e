#!/usr/bin/env python3
"""How long does a packed run of ten million documents take to open and to go on
in the middle of an epoch?

Short documents (8 to 40 tokens) are written as a store of Megatron, prepared
once, and packed into rows of 2,048. Opening reads the lengths from the store
and computes the plan; going on is `load_state_dict()` at a position in the
middle and the first batch from there, which is compared with the batch that a
loader gives there which has walked up to it.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import struct
import sys
import tempfile
import time

import numpy

import penstock
from result import commit, spread

SIZE, BATCH, VOCABULARY = 2048, 16, 50257


def write_store(folder, documents):
    random = numpy.random.default_rng(1)
    lengths = random.integers(8, 41, documents, numpy.int32)
    with open(folder / "tokens.bin", "wb") as tokens:
        for first in range(0, documents, 1 << 20):
            count = int(lengths[first:first + (1 << 20)].sum())
            random.integers(0, VOCABULARY, count, numpy.uint16).tofile(tokens)
    starts = numpy.concatenate([[0], numpy.cumsum(
        lengths, dtype=numpy.int64)[:-1]]) * 2
    with open(folder / "tokens.idx", "wb") as index:
        index.write(b"MMIDIDX\0\0" + struct.pack(
            "<QBQQ", 1, 8, documents, documents + 1))
        index.write(lengths.tobytes() + starts.tobytes())
        index.write(numpy.arange(documents + 1, dtype=numpy.int64).tobytes())
    return int(lengths.sum())


def taken(act):
    begun = time.perf_counter()
    made = act()
    return made, time.perf_counter() - begun


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--documents", type=int, default=10_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = write_store(folder, given.documents)
        job = {"source": {"kind": "token_store",
                          "path": str(folder / "tokens.bin")},
               "fields": {"tokens": {"tokens": {
                   "column": "input_ids", "max_length": SIZE,
                   "vocab_size": VOCABULARY}}},
               "loader": {"batch_size": BATCH, "workers": 1,
                          "cache_dir": str(folder / "stores")},
               "device": "cpu"}
        prepared, prepare_s = taken(lambda: penstock.prepare(
            job, progress=False))
        opened_s, resumed_s = [], []
        for _ in range(given.rounds):
            loader, seconds = taken(lambda: penstock.open(job))
            opened_s.append(seconds)
            state = loader.state_dict()
            state["step"] = len(loader) // 2

            def resume():
                loader.load_state_dict(state)
                return next(iter(loader))

            batch, seconds = taken(resume)
            resumed_s.append(seconds)
            found = batch["document_ids"].numpy().copy()
            del batch
            machine = loader.stats()["machine"]
            loader.close()
        with penstock.open(job) as loader:
            state["step"] -= 3
            loader.load_state_dict(state)
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            assert (next(batches)["document_ids"].numpy() == found).all()
    results = [{
        "workload": "open from the store, with the plan",
        "documents": given.documents, "tokens": tokens,
        "rows": prepared["packing"]["rows"], "seconds": spread(opened_s)}, {
        "workload": "go on in the middle of an epoch, first batch",
        "seconds": spread(resumed_s), "must_reach": "0.5 s with the plan"}, {
        "workload": "prepare", "seconds": prepare_s,
        "bytes": prepared["bytes"]}]
    json.dump({
        "bench": "resume_packed", "question": __doc__.split("\n\n")[0]
        .replace("\n", " "),
        "command": f"bench/run resume_packed --documents {given.documents} "
                   f"--rounds {given.rounds}",
        "commit": commit(),
        "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%S.000Z"),
        "machine": machine,
        "versions": {"python": platform.python_version(),
                     "numpy": numpy.__version__},
        "load_before": os.getloadavg()[0], "results": results},
        sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
