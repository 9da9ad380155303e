#!/usr/bin/env python3
"""How fast do rows for a language model come from a store of tokens in Python?

Documents with the lengths of web text (lognormal, median 600 tokens, sigma 1.1)
are written as a store of Megatron. Penstock packs them into rows of 2,048 and
hands out batches of 16 from its own store (`loader.cache` is `disk`), on the
caller's own thread and with one worker: input_ids, labels, position_ids,
document_ids, cu_seqlens. Beside it stands the loop of nanoGPT in numpy: 16
random places of a memory map, x and y of 2,048 tokens as int64, and the same two
arrays from TurboLoader's TokenDataLoader: two tensors in place of five and no
boundaries of documents. All run in turns; each number is the median over the
rounds, in tokens per second of the clock and of the processor. "first batch" is
the milliseconds from opening the store, which has been prepared, to the first
batch, and "sim" the share of the time in which a simulated accelerator works
whose step takes 50 ms.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import numpy

import penstock
import token_store
from result import print_result, spread

try:
    import turboloader
    from turboloader.sequence import TokenDataLoader
except ImportError:
    turboloader = None

SIZE, BATCH = 2048, 16


def drawn_lengths(tokens, random):
    """Of documents of about so many tokens in all."""
    lengths = []
    while sum(lengths) < tokens:
        some = numpy.exp(random.normal(numpy.log(600), 1.1, 10000))
        lengths += numpy.clip(some, 8, 200000).astype(numpy.int32).tolist()
    return lengths


def nanogpt(path):
    """Batches as train.py of nanoGPT makes them, without torch."""
    random = numpy.random.default_rng(0)
    while True:
        data = numpy.memmap(path, dtype=numpy.uint16, mode="r")
        places = random.integers(0, len(data) - SIZE, BATCH)
        yield (numpy.stack([data[i:i + SIZE].astype(numpy.int64)
                            for i in places]),
               numpy.stack([data[i + 1:i + 1 + SIZE].astype(numpy.int64)
                            for i in places]))


def turbo(path):
    """Batches of TurboLoader, epoch after epoch."""
    loader = TokenDataLoader(str(path), SIZE, BATCH, dtype="uint16")
    while True:
        yield from loader


def tokens_per_second(batches, count):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        next(batches)
    taken = BATCH * SIZE * count
    return (taken / (time.perf_counter() - wall),
            taken / (time.process_time() - cpu))


def job_of(folder, workers=0):
    return {
        "source": {"kind": "token_store", "path": str(folder / "tokens.bin")},
        "fields": {"tokens": {"tokens": {
            "column": "input_ids", "max_length": SIZE,
            "vocab_size": token_store.VOCABULARY}}},
        "loader": {"batch_size": BATCH, "workers": workers, "cache": "disk",
                   "cache_dir": str(folder / "stores")},
        "device": "cpu"}


def opened(folder, workers):
    return penstock.open(job_of(folder, workers))


def first_batch_ms(folder):
    begun = time.perf_counter()
    with opened(folder, 1) as loader:
        next(iter(loader))
        return 1000 * (time.perf_counter() - begun)


def worked(program, folder, step_ms, steps):
    """The share of the time in which a simulated accelerator works."""
    job = job_of(folder, 1)
    job |= {"device": {"kind": "sim", "step_ms": step_ms},
            "train": {"epochs": 1, "max_steps": steps},
            "output": {"dir": str(folder / "runs")}}
    (folder / "job.json").write_text(json.dumps(job))
    done = subprocess.run([program, "train", "job.json", "--json"], cwd=folder,
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["au"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--batches", type=int, default=500)
    arguments.add_argument("--tokens", type=int, default=100_000_000)
    given = arguments.parse_args()
    given.program = str(pathlib.Path(given.program).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        random = numpy.random.default_rng(1)
        lengths = drawn_lengths(given.tokens, random)
        store = token_store.write(folder, lengths, random)
        begun = time.perf_counter()
        opened(folder, 0).close()
        prepared = time.perf_counter() - begun
        begun = time.perf_counter()
        alone = opened(folder, 0)
        again = time.perf_counter() - begun
        worker = opened(folder, 1)
        machine = alone.stats()["machine"]
        ways = {
            "penstock, 0 workers": alone.batches(1 << 40),
            "penstock, 1 worker": worker.batches(1 << 40),
            "nanoGPT, memmap": nanogpt(store)}
        if turboloader is not None:
            ways["TurboLoader, TokenDataLoader"] = turbo(store)
        taken = {way: [] for way in ways}
        for batches in ways.values():
            tokens_per_second(batches, given.batches // 5)
        for _ in range(given.rounds):
            for way, batches in ways.items():
                taken[way].append(tokens_per_second(batches, given.batches))
        alone.close()
        worker.close()
        first = [first_batch_ms(folder) for _ in range(2 * given.rounds)]
        au = [worked(given.program, folder, 50, 200) for _ in range(3)]
    results = [{"workload": way, "rows": BATCH, "max_length": SIZE,
                "tokens_per_s": spread([wall for wall, _ in values]),
                "tokens_per_cpu_s": spread([cpu for _, cpu in values])}
               for way, values in taken.items()]
    for result in results[:2]:
        result["must_reach"] = "tokens_per_cpu_s at least 50e6"
    results.append({"workload": "first batch, warm", "ms": spread(first),
                    "must_reach": "10 ms"})
    results.append({"workload": "sim, a step of 50 ms", "au": spread(au),
                    "must_reach": "0.99"})
    results.append({"workload": "open", "documents": len(lengths),
                    "tokens": given.tokens, "first_s": prepared,
                    "from_store_s": again})
    print_result(
        "packed_batches", __doc__,
        f"bench/run packed_batches --rounds {given.rounds} --batches "
        f"{given.batches} --tokens {given.tokens}",
        {"machine": machine,
         "versions": {"python": platform.python_version(),
                      "numpy": numpy.__version__,
                      "turboloader": turboloader and turboloader.__version__},
         "load_before": os.getloadavg()[0], "results": results})


if __name__ == "__main__":
    main()
