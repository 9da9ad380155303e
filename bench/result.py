"""What the results of benchmarks in Python have in common."""
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def spread(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "repeats": len(values)}


def commit():
    """With "-dirty" where something else than a result has been changed."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], text=True,
                              capture_output=True, check=False).stdout.strip()
    at = git("rev-parse", "--short=12", "HEAD")
    dirty = git("status", "--porcelain", "--", ".", ":!bench/results")
    return at + ("-dirty" if dirty else "") if at else None


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(
        timespec="milliseconds")


def processor_seconds():
    """Of this process and of those that have ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def processor():
    """The machine, where nothing of ours has described it."""
    return {"processor": platform.processor() or platform.machine(),
            "cpus": len(os.sched_getaffinity(0))}


def machine_of(program):
    """The machine as the program sees it."""
    told = subprocess.run([program, "doctor", "--json"], text=True,
                          stdout=subprocess.PIPE, check=True)
    report = json.loads(told.stdout)
    return report.get("machine", report)


def print_result(bench, doc, command, more):
    """The document of a benchmark; the first paragraph of `doc` is its
    question. `more`: "machine", "results" and so on."""
    json.dump({"bench": bench,
               "question": " ".join(doc.split("\n\n")[0].split()),
               "command": command, "commit": commit(), "measured_at": now(),
               **more}, sys.stdout, indent=2)
    print()
