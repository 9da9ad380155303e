#!/usr/bin/env python3
"""Does penstock.watch name the fault of a DataLoader of torch, and what is its prediction worth?

Loops with a known fault are watched, each in so many runs: no workers and 20 ms
of work; a lock that all workers share; one slow item in 200; a fat collate_fn; a
loop that waits for a device which computes. The verdict has to name the fault.
Then the same loop runs over penstock.DataLoader with the workers that were
predicted, and its rate is compared with the predicted one, both without the
start of the workers: where the prediction is a range (other work has the
processors, a lock is shared), with the nearest end of it. Loops whose workers
start again in each epoch are then run by torch with persistent_workers, and the
gain in time is compared with the predicted one. The cost of watching
is measured by pairs of epochs, watched and not, in turns.
"""
import argparse
import fcntl
import io
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from random import Random

import numpy
import torch.utils.data

import penstock
from result import print_result, processor, spread

FORK = multiprocessing.get_context("fork")


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Items:
    def __init__(self, length, make):
        self.length, self.make = length, make

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.make(index)
        return numpy.full(64, index, numpy.float32)


class Computes:
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, index):
        compute(self.seconds)


class SlowOnce:
    """One in 200 takes 0.4 s, the others 1 ms."""

    def __call__(self, index):
        time.sleep(0.4 if index % 200 == 99 else 0.001)


class Locked:
    """By a file, which a data set can take to any process."""

    def __init__(self, seconds):
        handle, self.path = tempfile.mkstemp(prefix="penstock-lock-")
        os.close(handle)
        self.seconds, self.files = seconds, {}

    def __getstate__(self):
        return vars(self) | {"files": {}}

    def __call__(self, index):
        if os.getpid() not in self.files:  # a fork has its parent's lock
            self.files[os.getpid()] = open(self.path, "rb")
        file = self.files[os.getpid()]
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            time.sleep(self.seconds)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def fat(items):
    compute(0.02)
    return torch.utils.data.default_collate(items)


# Name: data set, body of the loop, options, whether a verdict names the fault.
FAULTS = {
    "no workers, 20 ms of work": lambda: (
        Items(240, Computes(0.005)), lambda: time.sleep(0.004), {},
        lambda told: told.limit == "data" and told.stage == "__getitem__"
        and "it computes for" in told.cause),
    "a lock that all workers share": lambda: (
        Items(300, Locked(0.005)), lambda: None, {"num_workers": 2},
        lambda told: "waits for a lock" in told.cause),
    "one slow item in 200": lambda: (
        Items(1600, SlowOnce()),  # the first batches have none, and do not count
        lambda: time.sleep(0.001), {"num_workers": 2},
        lambda told: told.limit == "order" and "one item in" in told.cause),
    "a fat collate": lambda: (
        Items(200, Computes(0)), lambda: None,
        {"num_workers": 1, "collate_fn": fat},
        lambda told: told.stage == "collate_fn"),
    "a device that computes": lambda: (
        Items(240, Computes(0)), lambda: time.sleep(0.02),
        {"num_workers": 1},
        lambda told: told.limit == "compute" and not told.actions)}
SKIPPED = 10  # batches: made while the workers start, and before they are asked


def epoch(loader, body):
    """Samples per second, without the start and the end of the workers."""
    samples, began, ended = 0, None, None
    for number, batch in enumerate(loader):
        if number >= SKIPPED:
            now = time.perf_counter()
            if began is None:
                began = now
            else:
                samples, ended = samples + len(batch), now
        body()
    return samples / (ended - began)


def one_run(make):
    dataset, body, options, named = make()
    torch_options = dict(options)
    if options.get("num_workers"):
        torch_options["multiprocessing_context"] = FORK
    watched = penstock.watch(torch.utils.data.DataLoader(
        dataset, batch_size=4, **torch_options), file=io.StringIO())
    epoch(watched, body)
    told = watched.explain()
    run = {"named": bool(named(told)), "cause": told.cause}
    if not run["named"]:
        print(told, file=sys.stderr)
    drop_in = told.report["drop_in"]
    if drop_in:
        ours = penstock.DataLoader(
            dataset, batch_size=4,
            **{**options, "num_workers": drop_in["workers"]})
        try:
            measured = epoch(ours, body)
        except penstock.Error as error:
            return run | {"not_measured": str(error)[:80]}
        least = drop_in["samples_per_s"]
        most = (drop_in["up_to"] or drop_in)["samples_per_s"]
        nearest = min(max(measured, least), most)
        run |= {"predicted": [least, most], "measured": measured,
                "off": abs(nearest / measured - 1)}
    return run


class SlowStart:
    """A worker_init_fn that takes a while, as one that opens files does."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, worker):
        time.sleep(self.seconds)


def seconds_of(loader, epochs):
    began = time.perf_counter()
    for _ in range(epochs):
        for _ in loader:
            time.sleep(0.004)
    return time.perf_counter() - began


def one_restarted_run(random):
    """Workers that take 0.1 to 0.5 s to start, in 3 to 6 epochs."""
    epochs = random.randint(3, 6)
    dataset = Items(4 * random.randint(20, 60), Computes(1e-4))
    options = {"batch_size": 4, "num_workers": random.randint(1, 2),
               "worker_init_fn": SlowStart(random.uniform(0.1, 0.5)),
               "multiprocessing_context": FORK}
    watched = penstock.watch(torch.utils.data.DataLoader(dataset, **options),
                             file=io.StringIO())
    before = seconds_of(watched, epochs)
    told = watched.explain()
    gains = [action["predicted_gain"] for action in told.actions
             if action["knob"] == "persistent_workers"]
    after = seconds_of(torch.utils.data.DataLoader(
        dataset, persistent_workers=True, **options), epochs)
    return {"named": told.limit == "data" and bool(gains),
            "predicted": gains[0] if gains else 0.0,
            "measured": before / after - 1}


def restarted(runs):
    random = Random(7)
    measured = [one_restarted_run(random) for _ in range(runs)]
    off = [(1 + run["predicted"]) / (1 + run["measured"]) - 1
           for run in measured]
    return {"fault": "workers that start again in each epoch", "runs": runs,
            "named": sum(run["named"] for run in measured),
            "predicted_gain": spread([run["predicted"] for run in measured]),
            "measured_gain": spread([run["measured"] for run in measured]),
            "predicted_over_measured": spread(off),
            "within_15_percent": sum(abs(one) <= 0.15 for one in off),
            "must_reach": "named in all runs, the gain within 15 %"}


def cost_of_watching(pairs, seconds, item_us):
    """Items of so many us and a loop that computes for 2 ms per batch of 32."""
    batches = max(8, int(seconds / (32e-6 * item_us + 0.002)))
    dataset = Items(32 * batches, Computes(1e-6 * item_us))
    off = []
    for pair in range(pairs):
        took = {}
        for watched in (pair % 2 == 0, pair % 2 == 1):
            loader = torch.utils.data.DataLoader(dataset, batch_size=32)
            if watched:
                loader = penstock.watch(loader, file=io.StringIO())
            began = time.process_time()
            for _ in loader:
                compute(0.002)
            took[watched] = time.process_time() - began
        off.append(took[True] / took[False] - 1)
    mean = statistics.mean(off)
    bound = mean + 1.96 * statistics.stdev(off) / len(off) ** 0.5
    return {"item_us": item_us, "pairs": pairs, "cpu_share": spread(off), "mean": mean,
            "upper_95": bound, "must_reach": "at most 0.01"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--pairs", type=int, default=30)
    arguments.add_argument("--seconds", type=float, default=1)
    arguments.add_argument("--note", default=None)
    arguments.add_argument("--only", default="", help="faults with this text")
    given = arguments.parse_args()
    results = []
    for name, make in FAULTS.items():
        if given.only not in name:
            continue
        runs = [one_run(make) for _ in range(given.runs)]
        off = sorted(run["off"] for run in runs if "off" in run)
        results.append({
            "fault": name, "runs": len(runs),
            "named": sum(run["named"] for run in runs),
            "causes_that_did_not": sorted({run["cause"] for run in runs
                                           if not run["named"]}),
            "predictions": len(off),
            "ranges": sum(run["predicted"][0] != run["predicted"][1]
                          for run in runs if "off" in run),
            "predicted_and_measured": [
                [round(rate, 1) for rate in (*run["predicted"],
                                             run["measured"])]
                for run in runs if "off" in run],
            "off": {"median": statistics.median(off), "max": off[-1],
                    "within_15_percent": sum(o <= 0.15 for o in off)}
            if off else None})
        print(json.dumps(results[-1]), file=sys.stderr)
    if given.only in "workers that start again in each epoch":
        results.append(restarted(given.runs))
    print_result(
        "watch_campaign", __doc__,
        " ".join(["bench/watch_campaign.py", *sys.argv[1:]]),
        {"machine": {**processor(), "torch": torch.__version__},
         **({"note": given.note} if given.note else {}),
         "results": results,
         "cost": [cost_of_watching(given.pairs, given.seconds, item_us)
                  for item_us in (50, 200)] if given.pairs else None})


if __name__ == "__main__":
    main()
