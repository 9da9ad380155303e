#!/usr/bin/env python3
"""bench/compare.py BEFORE AFTER NAME [arguments]: has a benchmark slowed down?

Runs the benchmark NAME of two build folders in turn, a pair at a time, and
prints for each of its times the ratio after / before: the geometric mean over
the pairs and the upper end of its one-sided 95 % interval (Student's t on the
logarithms). 1.05 and below there is what a change may cost at most. Each
argument goes to both; few repeats within a run and many pairs are best.

Where NAME is 'train', it is `penstock train` of both, its arguments a job and
settings: from calling it to its end, and its first batch. Each has a cache
folder of its own; the commits are those checked out beside the builds.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

# What a benchmark calls the time that a user waits, or what it is a part of; of
# processors, where the machine is not quiet.
TIMES = ("us_per_batch", "cpu_us_per_batch", "ms_per_batch", "wall_ms",
         "first_batch_ms", "pass_seconds", "first_epoch_seconds",
         "penstock_epoch_seconds", "python_epoch_seconds", "au")
MORE_IS_BETTER = ("au",)
# The 95 % quantile of Student's t by degrees of freedom.
STUDENT = {4: 2.132, 9: 1.833, 14: 1.761, 19: 1.729, 24: 1.711, 29: 1.699,
           39: 1.685, 59: 1.671}


def quantile(freedom):
    """A little too large between two of the table."""
    return STUDENT[max((n for n in STUDENT if n <= freedom), default=4)]


def times_of(node, place=""):
    """{place: median} of all times in a benchmark's document."""
    found = {}
    if isinstance(node, list):
        for number, item in enumerate(node):
            name = item.get("workload", "") if isinstance(item, dict) else ""
            found.update(times_of(item, f"{place}[{number}] {name} "))
    elif isinstance(node, dict):
        for key, item in node.items():
            if isinstance(item, dict) and key in TIMES and "median" in item:
                value = item["median"]
                found[(place + key).strip()] = (
                    1 / value if key in MORE_IS_BETTER else value)
            else:
                found.update(times_of(item, place))
    return found


def one_train(build, arguments):
    caches = pathlib.Path(build).resolve() / "compare_caches"
    began = time.perf_counter()
    done = subprocess.run(
        [pathlib.Path(build) / "bin/penstock", "train", *arguments, "--json"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": caches})
    wall_ms = 1e3 * (time.perf_counter() - began)
    report = json.loads(done.stdout)
    commit = subprocess.run(
        ["git", "-C", build, "rev-parse", "--short=12", "HEAD"], check=True,
        stdout=subprocess.PIPE, text=True).stdout.strip()
    return {"commit": commit, "machine": report["machine"],
            "results": {"wall_ms": {"median": wall_ms},
                        "first_batch_ms": {"median": report["first_batch_ms"]}}}


def one_run(build, name, arguments):
    if name == "train":
        return one_train(build, arguments)
    program = pathlib.Path(build) / "bin" / f"bench_{name}"
    done = subprocess.run([program, *arguments], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def ratio(before, after):
    logs = [math.log(b / a) for a, b in zip(before, after)]
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return {"ratio": round(math.exp(mean), 4),
            "upper_95": round(
                math.exp(mean + quantile(len(logs) - 1) * error), 4),
            "before_median": statistics.median(before),
            "after_median": statistics.median(after)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("before", help="build folder of the earlier commit")
    parser.add_argument("after", help="build folder of the later one")
    parser.add_argument("name", help="of a benchmark in C++: gather")
    parser.add_argument("--pairs", type=int, default=20)
    options, arguments = parser.parse_known_args()
    if options.pairs < 5:
        parser.error("fewer than 5 pairs say nothing")
    before, after = {}, {}
    for pair in range(options.pairs):
        sides = [(options.before, before), (options.after, after)]
        for build, into in sides if pair % 2 == 0 else sides[::-1]:
            document = one_run(build, options.name, arguments)
            for place, value in times_of(document["results"]).items():
                into.setdefault(place, []).append(value)
            into["commit"] = document["commit"]
            machine = document["machine"]
    result = {
        "bench": f"compare {options.name}",
        "question": "How much longer does it take than before?",
        "command": re.sub(r"\S*/", "", " ".join(
            ["bench/compare.py", "BEFORE", "AFTER", options.name,
             "--pairs", str(options.pairs), *arguments])),
        "before": before.pop("commit"), "after": after.pop("commit"),
        "machine": machine, "pairs": options.pairs,
        "must_reach": "upper_95 <= 1.05",
        "results": {place: ratio(before[place], after[place])
                    for place in after if place in before}}
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
