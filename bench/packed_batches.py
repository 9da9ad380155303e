#!/usr/bin/env python3
"""How fast do rows for a language model come from a store of tokens in Python?

Documents with the lengths of web text (lognormal, median 600 tokens, sigma 1.1)
are written as a store of Megatron. Penstock packs them into rows of 2,048 and
hands out batches of 16 from its own store (`loader.cache` is `disk`), on the
caller's own thread and with one worker: input_ids, labels, position_ids,
document_ids, cu_seqlens. Beside it stands the loop of nanoGPT in numpy: 16
random places of a memory map, x and y of 2,048 tokens as int64, two tensors in
place of five and no boundaries of documents. All run in turns; each number is
the median over the rounds, in tokens per second of the clock and of the
processor.
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


def tokens_per_second(batches, count):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        next(batches)
    taken = BATCH * SIZE * count
    return (taken / (time.perf_counter() - wall),
            taken / (time.process_time() - cpu))


def opened(folder, workers):
    return penstock.Loader(
        {"kind": "token_store", "path": str(folder / "tokens.bin")},
        {"tokens": {"tokens": {"column": "input_ids", "max_length": SIZE,
                               "vocab_size": token_store.VOCABULARY}}},
        BATCH, num_workers=workers, device="cpu",
        cache={"ram_gib": 0, "disk_gib": 16, "dir": str(folder / "stores")})


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--batches", type=int, default=500)
    arguments.add_argument("--tokens", type=int, default=100_000_000)
    given = arguments.parse_args()
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
        taken = {way: [] for way in ways}
        for batches in ways.values():
            tokens_per_second(batches, given.batches // 5)
        for _ in range(given.rounds):
            for way, batches in ways.items():
                taken[way].append(tokens_per_second(batches, given.batches))
        alone.close()
        worker.close()
    results = [{"workload": way, "rows": BATCH, "max_length": SIZE,
                "tokens_per_s": spread([wall for wall, _ in values]),
                "tokens_per_cpu_s": spread([cpu for _, cpu in values])}
               for way, values in taken.items()]
    for result in results[:2]:
        result["must_reach"] = "tokens_per_cpu_s at least 50e6"
    results.append({"workload": "open", "documents": len(lengths),
                    "tokens": given.tokens, "first_s": prepared,
                    "from_store_s": again})
    print_result(
        "packed_batches", __doc__,
        f"bench/run packed_batches --rounds {given.rounds} --batches "
        f"{given.batches} --tokens {given.tokens}",
        {"machine": machine,
         "versions": {"python": platform.python_version(),
                      "numpy": numpy.__version__},
         "load_before": os.getloadavg()[0], "results": results})


if __name__ == "__main__":
    main()
