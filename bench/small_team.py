#!/usr/bin/env python3
"""What does a small team's loop gain whose accelerator waits for its tokeniser?

Batches of one example, 2,048 tokens, on a simulated accelerator whose step takes
50 or 25 ms. Before: a loop in Python that tokenises each example with the
`tokenizers` library when its turn comes, pads it to 2,048, makes the tensors, and
then steps; with torch where it is installed, else with numpy. After: `penstock
train` of the same file. Examples are texts of 1,200 to 9,000 characters of this
machine's own documentation. An epoch has 25 or 1,000 examples; there are 200
epochs in all, and the seams between them are inside. The loop of before makes a
fifth of the steps. The first step is not counted on either side.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time

from debian_text import read_files
from result import print_result

try:
    import torch
except ImportError:
    torch = None
import numpy
import tokenizers

SIZE, PAD = 2048, 0
# By examples and seconds of a step.
EPOCHS = {(25, 0.05): 40, (25, 0.025): 158, (1000, 0.05): 1, (1000, 0.025): 1}


def write_examples(path, count):
    """Texts cut anywhere."""
    chance, texts, text = random.Random(3), [], read_files()
    for _ in range(count):
        begin = chance.randrange(len(text) - 9000)
        texts.append(text[begin:begin + chance.randrange(1200, 9000)])
    path.write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))


def before(path, tokenizer, step_s, steps):
    """The loop as it was; steps a second, and the share of them in the step."""
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer)
    examples = [json.loads(line)["text"] for line in open(path)]
    chance, order, begun = random.Random(1), [], None
    for step in range(steps + 1):
        if not order:
            order = chance.sample(range(len(examples)), len(examples))
        ids = tokenizer.encode(examples[order.pop()],
                               add_special_tokens=False).ids[:SIZE]
        mask = [1] * len(ids) + [0] * (SIZE - len(ids))
        labels = ids + [-100] * (SIZE - len(ids))
        ids = ids + [PAD] * (SIZE - len(ids))
        tensors = [torch.tensor([of]) if torch else numpy.array([of])
                   for of in (ids, labels, mask)]
        time.sleep(step_s)
        del tensors
        if step == 0:
            begun = time.perf_counter()
    taken = time.perf_counter() - begun
    return {"it_per_s": steps / taken, "au": steps * step_s / taken}


def after(program, folder, path, tokenizer, step_s, steps, epochs):
    job = folder / "job.json"
    job.write_text(json.dumps({
        "source": {"kind": "jsonl", "path": str(path)},
        "fields": {"tokens": {"tokens": {
            "column": "text", "tokenizer": tokenizer, "pack": "none",
            "max_length": SIZE}}},
        "loader": {"batch_size": 1, "cache_dir": str(folder / "stores")},
        "device": {"kind": "sim", "step_ms": step_s * 1000},
        "train": {"epochs": epochs, "max_steps": steps},
        "output": {"dir": str(folder / "runs")}}))
    begun = time.perf_counter()
    done = subprocess.run([program, "train", str(job), "--json"], check=True,
                          capture_output=True, text=True)
    wall = time.perf_counter() - begun
    report = json.loads(done.stdout)
    return {"it_per_s": report["au"] / step_s, "au": report["au"],
            "wall_seconds_with_start": wall}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--tokenizer", required=True)
    given = arguments.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for (examples, step_s), epochs in EPOCHS.items():
            path = folder / f"{examples}.jsonl"
            write_examples(path, examples)
            steps = epochs * examples
            old = before(path, given.tokenizer, step_s, steps // 5)
            new = after(given.program, folder, path, given.tokenizer, step_s,
                        steps, epochs)
            results.append({
                "workload": f"{examples} examples, a step of "
                            f"{step_s * 1000:.0f} ms",
                "steps": steps, "epochs": epochs, "before": old, "after": new,
                "must_reach": "19 of 20 it/s" if step_s == 0.05
                              else "38 of 40 it/s"})
            print(json.dumps(results[-1]), file=sys.stderr)
    print_result(
        "small_team", __doc__,
        "bench/run small_team --tokenizer TOKENIZER.json",
        {"machine": {"processors": len(os.sched_getaffinity(0)),
                     "load": os.getloadavg()},
         "versions": {"python": platform.python_version(),
                      "tokenizers": tokenizers.__version__,
                      "torch": torch.__version__ if torch else None},
         "epochs": sum(EPOCHS.values()), "results": results})


if __name__ == "__main__":
    main()
