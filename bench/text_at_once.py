#!/usr/bin/env python3
"""How soon does training on raw text begin, and does it keep its accelerator busy
while the text is tokenised beside it?

Documents of 500 to 9,000 characters of this machine's own documentation, drawn
again until there are as many bytes as asked for, as JSON lines. `penstock train`
over rows of 2,048 tokens on a simulated accelerator, without a store: prepared
before the first batch ("best_fit"), and while batches are made ("stream"; "none",
in an exact order and in pages). For each the seconds from the start of the program
to the end of the first step, the share of the time in which the accelerator
worked, and whether the store was complete in the end. `again` is the same with
the store of a preparation.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time

from debian_text import read_files
from result import print_result, spread

SIZE = 2048
WAYS = {
    "before": ({"pack": "best_fit"}, {"prepare": "before"}),
    "stream": ({"pack": "stream"}, {"prepare": "meanwhile"}),
    "none": ({"pack": "none"}, {"prepare": "meanwhile"}),
    "none, in pages": ({"pack": "none"}, {
        "prepare": "meanwhile",
        "order": {"paged": {"page": 256, "window": 32}}})}


def write_documents(path, megabytes):
    """How many."""
    chance, text, documents = random.Random(3), read_files(), 0
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < megabytes << 20:
            for _ in range(256):
                begin = chance.randrange(len(text) - 9000)
                file.write(json.dumps({"text": text[
                    begin:begin + chance.randrange(500, 9000)]}) + "\n")
                documents += 1
    return documents


def first_step_s(folder):
    """From the start of the run to the end of its first step."""
    steps = folder / "runs" / "latest" / "steps.jsonl"
    return json.loads(steps.read_text().splitlines()[0])["seconds"]


def train(given, folder, way):
    shutil.rmtree(folder / "runs", ignore_errors=True)
    tokens, loader = WAYS[way]
    (folder / "job.json").write_text(json.dumps({
        "source": {"kind": "jsonl", "path": str(folder / "text.jsonl")},
        "fields": {"tokens": {"tokens": {
            "column": "text", "tokenizer": given.tokenizer,
            "max_length": SIZE, **tokens}}},
        "loader": {"batch_size": 16, "cache_dir": str(folder / "stores"),
                   **loader},
        "device": {"kind": "sim", "step_ms": given.step_ms},
        "train": {"max_steps": given.steps, "epochs": 1000},
        "output": {"dir": str(folder / "runs")}}))
    begun = time.perf_counter()
    done = subprocess.run([given.program, "train", "job.json", "--json"],
                          cwd=folder, check=True, capture_output=True,
                          text=True)
    wall = time.perf_counter() - begun
    report = json.loads(done.stdout)
    return {"first_step_seconds": first_step_s(folder), "au": report["au"],
            "wall_seconds": wall,
            "store_complete": any(folder.glob("stores/*.store"))}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--tokenizer", required=True)
    arguments.add_argument("--megabytes", type=int, default=512)
    arguments.add_argument("--step-ms", type=float, default=50)
    arguments.add_argument("--steps", type=int, default=400)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    given.program = str(pathlib.Path(given.program).resolve())
    given.tokenizer = str(pathlib.Path(given.tokenizer).resolve())
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        documents = write_documents(folder / "text.jsonl", given.megabytes)
        for _ in range(given.rounds):
            for way in WAYS:
                shutil.rmtree(folder / "stores", ignore_errors=True)
                cold = train(given, folder, way)
                subprocess.run([given.program, "prepare", "job.json"],
                               cwd=folder, check=True, capture_output=True)
                for when, one in (("cold", cold),
                                  ("again", train(given, folder, way))):
                    found.setdefault((way, when), []).append(one)
                    print(way, when, json.dumps(one), file=sys.stderr)
    results = [{
        "workload": f"{way}, {when}",
        "first_step_seconds": spread([o["first_step_seconds"] for o in all]),
        "au": spread([o["au"] for o in all]),
        "wall_seconds": spread([o["wall_seconds"] for o in all]),
        "store_complete": [o["store_complete"] for o in all]}
        for (way, when), all in found.items()]
    print_result(
        "text_at_once", __doc__,
        "bench/run text_at_once --tokenizer TOKENIZER.json --megabytes "
        f"{given.megabytes} --step-ms {given.step_ms:g} --steps "
        f"{given.steps} --rounds {given.rounds}",
        {"machine": {"processors": len(os.sched_getaffinity(0)),
                     "load": os.getloadavg()},
         "versions": {"python": platform.python_version()},
         "documents": documents, "results": results})


if __name__ == "__main__":
    main()
