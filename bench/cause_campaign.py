#!/usr/bin/env python3
"""Does a run's verdict name the cause of a slow input that is really there?

The positions of the demo in SQLite are read, prepared and fed to the simulated
accelerator, each time with one fault: a database that is 10 ms away, simulated,
and a PostgreSQL server (where PENSTOCK_BENCH_POSTGRES names one) behind a proxy
that is; one query per sample; one processor for four threads; a quota of a
cgroup, and other programs; a drive that a cgroup slows down, with rows of 128
KiB that are not in memory (where such groups can be made here); a slow link to
the device; a loop over rows in memory whose steps take all the time. Loops in
Python (where its package is) have a function for each row: it holds a lock for a
while, or computes, which Python's own lock lets one thread do at a time; one row
in 200 takes long. The verdict of each run has to name the fault.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from late_proxy import further_away
from result import print_result, processor

SLOW_DRIVE = 40 << 20  # bytes per second
ARRAY = (2048, 1 << 15)  # float32


class Unavailable(Exception):
    """This fault cannot be made here."""


@dataclasses.dataclass
class Fault:
    limit: str  # of the verdict
    cause: str  # a pattern
    sets: tuple = ()
    job: str = "positions"
    # Gives a prefix of the command, for as long as that runs.
    within: object = lambda folder: contextlib.nullcontext()
    loop: object = None  # makes a function of each row, in Python
    batch: int = 64  # rows, of the loop


def positions():
    return {
        "source": {"kind": "sqlite", "table": "measurements"},
        "fields": {
            "receivers": {"json_set": {
                "column": "receivers",
                "keys": ["snr_db", "lat", "lon", "signal_present"],
                "max": 10, "overflow": "strongest", "sort_by": "snr_db"},
                "standardize": True},
            "target": {"columns": ["tx_lat", "tx_lon"], "standardize": True}},
        "loader": {"batch_size": 256, "seed": 1, "tune": "off"},
        "device": {"kind": "sim"}, "train": {"epochs": 1000}}


def demo_rows(program, to, *more):
    subprocess.run([program, "demo", "positions", "--rows", "40000", "--to", to,
                    *more], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


class Jobs:
    """Makes each job once, in a folder, when a fault first needs it."""

    def __init__(self, program, folder, ending):
        self.program, self.folder, self.ending = program, folder, ending
        self.made = {}

    def __call__(self, name):
        if name not in self.made:
            job = getattr(self, name)()
            job["output"] = {"dir": str(self.folder / "runs")}
            self.made[name] = self.folder / f"{name}.json"
            self.made[name].write_text(json.dumps(job))
        return self.made[name]

    def positions(self):
        base = self.folder / "demo.sqlite"
        demo_rows(self.program, f"sqlite:{base}")
        job = positions()
        job["source"]["path"] = str(base)
        return job

    def far_server(self):
        uri = os.environ.get("PENSTOCK_BENCH_POSTGRES")
        if uri is None:
            raise Unavailable("there is no PostgreSQL server")
        demo_rows(self.program, uri + "#measurements", "--replace")
        far = self.ending.enter_context(further_away(uri, 0.005))
        return positions() | {"source": {
            "kind": "postgres", "uri": far, "table": "measurements"}}

    def array(self):
        try:
            import numpy
        except ImportError:
            raise Unavailable("there is no numpy") from None
        file = self.folder / "x.npy"
        numpy.save(file, numpy.zeros(ARRAY, numpy.float32) + 1)
        with open(file, "rb") as written:
            os.fsync(written.fileno())
        return {"source": {"kind": "npy", "path": str(file)},
                "fields": {"x": {"array": {"column": "array",
                                           "shape": [ARRAY[1]]}}},
                "loader": {"batch_size": 32, "shuffle": False, "tune": "off",
                           "cache": "none"},
                "device": {"kind": "sim"}, "train": {"epochs": 1}}


@contextlib.contextmanager
def cgroup(controller, first, second):
    """A prefix that runs a command in one of its own, by the settings of
    cgroups' first version or of their second, whichever is here."""
    groups, settings = pathlib.Path("/sys/fs/cgroup"), second
    if not (groups / "cgroup.controllers").exists():
        groups, settings = groups / controller, first
    group = groups / f"penstock-campaign-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Unavailable(f"no cgroup can be made here: {error}") from None
    try:
        try:
            for name, value in settings.items():
                with open(group / name, "r+") as setting:
                    setting.write(value)
        except OSError as error:
            raise Unavailable(f"no cgroup can be set here: {error}") from None
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def quota_of_half(_):
    return cgroup("cpu", {"cpu.cfs_period_us": "100000",
                          "cpu.cfs_quota_us": "50000"},
                  {"cpu.max": "50000 100000"})


@contextlib.contextmanager
def slow_drive(folder):
    """Of the array, which is not in memory."""
    file = os.open(folder / "x.npy", os.O_RDONLY)
    device = os.fstat(file).st_dev
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    number = f"{os.major(device)}:{os.minor(device)}"
    with cgroup("blkio", {"blkio.throttle.read_bps_device":
                          f"{number} {SLOW_DRIVE}"},
                {"io.max": f"{number} rbps={SLOW_DRIVE}"}) as prefix:
        yield prefix


def beside_others(_):
    """Four programs per processor that compute."""
    return contextlib.nullcontext([
        "sh", "-c", 'for i in $(seq $(($(nproc) * 4))); do '
        '(while :; do :; done) & others="$others $!"; done; '
        '"$@"; rc=$?; kill $others; exit $rc', "sh"])


def on_one_processor(_):
    return contextlib.nullcontext(
        ["taskset", "-c", str(min(os.sched_getaffinity(0)))])


def computes():
    def row_of(row):
        total = 0
        for i in range(10000):
            total += i * i
        return row
    return row_of


def holds_a_lock():
    lock = threading.Lock()

    def row_of(row):
        with lock:
            time.sleep(0.0003)
        return row
    return row_of


def slow_once():
    def row_of(row):
        if int(row["x"]) % 200 == 99:
            time.sleep(0.1)
        return row
    return row_of


CROWDED = ("loader.cache=none", "loader.workers=4", "loader.batch_size=2048",
           "device.step_ms=1")
FAULTS = {
    "a database that is 10 ms away": Fault(
        "data", "'read' waits for answers",
        ("loader.cache=none", "loader.readers=1", "source.round_trip_ms=10",
         "device.step_ms=2")),
    "a server behind a proxy of 10 ms": Fault(
        "data", "'read' waits for answers",
        ("loader.cache=none", "loader.readers=1", "device.step_ms=2"),
        job="far_server"),
    "one query per sample": Fault(
        "data", "queried once per sample",
        ("loader.read=per_sample", "source.round_trip_ms=0.1",
         "device.step_ms=2", "loader.batch_size=32")),
    "one processor for four threads": Fault(
        "data", "needs more processor time", CROWDED, within=on_one_processor),
    "a quota of half a processor": Fault(
        "data", "than the quota of 0.5", CROWDED, within=quota_of_half),
    "a busy neighbour": Fault(
        "data", "other programs work on this machine",
        ("loader.cache=none", "loader.workers=2", "loader.batch_size=2048",
         "device.step_ms=1"), within=beside_others),
    "a slow drive": Fault(
        "data", "waits for storage", ("device.step_ms=2",), job="array",
        within=slow_drive),
    "a lock": Fault("data", "waits for a lock that its 2 threads share: it was seen",
                    loop=holds_a_lock),
    "Python's own lock": Fault("data", "they waited for one lock",
                               loop=computes, batch=256),
    "a slow row in 200": Fault("order|data", r"one row in (1[6-9]|2[0-4])\d\)",
                               loop=slow_once),
    "a slow link": Fault(
        "copy", "wait for their copy",
        ("loader.cache=ram", "device.copy_gb_s=0.003", "device.step_ms=10")),
    "steps that take all the time": Fault(
        "compute", "the input keeps up", ("device.step_ms=15",))}


class Rows:
    size = 1 << 16

    def read(self, ids):
        return {"x": ids}


def loop_in_python(fault, steps):
    """Prints the verdict of a loop, the function of whose rows is the fault."""
    import penstock
    fault = FAULTS[fault]
    with penstock.Loader(Rows(), batch_size=fault.batch, shuffle=True, seed=1,
                         num_workers=2, device="cpu") as loader:
        loader.map(fault.loop())
        for _ in loader.batches(steps):
            with loader.step():
                time.sleep(0.001)
        print(json.dumps(loader.stats()["verdict"]))


def one_run(name, fault, jobs, steps):
    if fault.loop is not None:
        command = [sys.executable, __file__, "--loop", name,
                   "--steps", str(steps)]
        if subprocess.run([sys.executable, "-c", "import penstock"],
                          capture_output=True, check=False).returncode:
            raise Unavailable("there is no package of Python")
        return told_by(command)
    job = jobs(fault.job)
    with fault.within(jobs.folder) as prefix:
        return told_by([
            *(prefix or []), jobs.program, "train", str(job), "--json", "--set",
            f"train.max_steps={steps}",
            *(part for one in fault.sets for part in ("--set", one))])["verdict"]


def told_by(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}\n" + done.stdout +
                 done.stderr)
    return json.loads(done.stdout)


def result_of(name, fault, jobs, given):
    try:
        told = [one_run(name, fault, jobs, given.steps)
                for _ in range(given.runs)]
    except Unavailable as why:
        return {"fault": name, "runs": 0, "why": str(why)}
    good = [bool(re.fullmatch(fault.limit, verdict["limit"])
                 and re.search(fault.cause, verdict["cause"]))
            for verdict in told]
    return {"fault": name, "runs": len(told), "named": sum(good),
            "said": told[0]["cause"],
            "causes_that_did_not": sorted({
                verdict["limit"] + ": " + verdict["cause"]
                for verdict, right in zip(told, good) if not right})}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="build/bin/penstock")
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--note", default=None)
    arguments.add_argument("--only", nargs="*", default=[""], metavar="TEXT",
                           help="faults with one of these texts")
    arguments.add_argument("--loop", choices=FAULTS, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.loop is not None:
        return loop_in_python(given.loop, given.steps)
    results = []
    with tempfile.TemporaryDirectory() as made, \
            contextlib.ExitStack() as ending:
        jobs = Jobs(str(pathlib.Path(given.program).resolve()),
                    pathlib.Path(made), ending)
        for name, fault in FAULTS.items():
            if not any(text in name for text in given.only):
                continue
            results.append(result_of(name, fault, jobs, given))
            print(json.dumps(results[-1]), file=sys.stderr)
    return print_result(
        "cause_campaign", __doc__,
        " ".join(["bench/cause_campaign.py", *sys.argv[1:]]),
        {"machine": processor(),
         **({"note": given.note} if given.note else {}),
         "results": results})


if __name__ == "__main__":
    main()
