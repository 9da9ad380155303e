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
import os
import pathlib
import platform
import tempfile
import time

import numpy

import penstock
import token_store
from result import print_result, spread

SIZE, BATCH = 2048, 16


def taken(act):
    begun = time.perf_counter()
    made = act()
    return made, time.perf_counter() - begun


def job_of(store):
    return {"source": {"kind": "token_store", "path": str(store)},
            "fields": {"tokens": {"tokens": {
                "column": "input_ids", "max_length": SIZE,
                "vocab_size": token_store.VOCABULARY}}},
            "loader": {"batch_size": BATCH, "workers": 1,
                       "cache_dir": str(store.parent / "stores")},
            "device": "cpu"}


def one_round(job):
    """Seconds to open and to go on in the middle; the state there, the
    documents of its batch, and the machine."""
    loader, opened_s = taken(lambda: penstock.open(job))
    state = loader.state_dict()
    state["step"] = len(loader) // 2

    def resume():
        loader.load_state_dict(state)
        return next(iter(loader))

    batch, resumed_s = taken(resume)
    found = batch["document_ids"].numpy().copy()
    del batch
    machine = loader.stats()["machine"]
    loader.close()
    return opened_s, resumed_s, state, found, machine


def walked_to(job, state):
    """The documents of the batch at `state`, to which a loader has walked."""
    with penstock.open(job) as loader:
        loader.load_state_dict({**state, "step": state["step"] - 3})
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        return next(batches)["document_ids"].numpy().copy()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--documents", type=int, default=10_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    random = numpy.random.default_rng(1)
    lengths = random.integers(8, 41, given.documents, numpy.int32)
    with tempfile.TemporaryDirectory() as name:
        job = job_of(token_store.write(pathlib.Path(name), lengths, random))
        prepared, prepare_s = taken(lambda: penstock.prepare(
            job, progress=False))
        rounds = [one_round(job) for _ in range(given.rounds)]
        opened_s, resumed_s, states, found, machines = zip(*rounds)
        assert (walked_to(job, states[-1]) == found[-1]).all()
    results = [{
        "workload": "open from the store, with the plan",
        "documents": given.documents, "tokens": int(lengths.sum()),
        "rows": prepared["packing"]["rows"], "seconds": spread(opened_s)}, {
        "workload": "go on in the middle of an epoch, first batch",
        "seconds": spread(resumed_s), "must_reach": "0.5 s with the plan"}, {
        "workload": "prepare", "seconds": prepare_s,
        "bytes": prepared["bytes"]}]
    print_result(
        "resume_packed", __doc__,
        f"bench/run resume_packed --documents {given.documents} --rounds "
        f"{given.rounds}",
        {"machine": machines[-1],
         "versions": {"python": platform.python_version(),
                      "numpy": numpy.__version__},
         "load_before": os.getloadavg()[0], "results": results})


if __name__ == "__main__":
    main()
