#!/usr/bin/env python3
"""Does a run's verdict name the cause of a slow input that is really there?

The positions of the demo in SQLite are read, prepared and fed to the simulated
accelerator, each time with one fault: a database that is 10 ms away; one query
per sample; one processor for four threads; a quota of a cgroup (where one can be
made here); a slow link to the device; a loop over rows in memory whose steps
take all the time. The verdict of each run has to name it.
"""
import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from result import print_result, processor

GROUP = pathlib.Path("/sys/fs/cgroup/cpu/penstock-campaign")

# Runs a command beside four programs per processor that compute.
BESIDE_OTHERS = [
    "sh", "-c", 'for i in $(seq $(($(nproc) * 4))); do (while :; do :; done) & '
    'others="$others $!"; done; "$@"; rc=$?; kill $others; exit $rc', "sh"]

# Name: settings, a prefix of the command, what limit and cause have to say.
FAULTS = {
    "a database that is 10 ms away": (
        ["loader.cache=none", "loader.readers=1", "source.round_trip_ms=10",
         "device.step_ms=2"], [], "data", "'read' waits for answers"),
    "one query per sample": (
        ["loader.read=per_sample", "source.round_trip_ms=0.1",
         "device.step_ms=2", "loader.batch_size=32"], [], "data",
        "queried once per sample"),
    "one processor for four threads": (
        ["loader.cache=none", "loader.workers=4", "loader.batch_size=2048",
         "device.step_ms=1"], ["taskset", "-c", "0"], "data",
        "needs more processor time"),
    "a quota of half a processor": (
        ["loader.cache=none", "loader.workers=4", "loader.batch_size=2048",
         "device.step_ms=1"], "quota", "data", "than the quota of 0.5"),
    "a busy neighbour": (
        ["loader.cache=none", "loader.workers=2", "loader.batch_size=2048",
         "device.step_ms=1"], BESIDE_OTHERS, "data",
        "other programs work on this machine"),
    "a slow link": (
        ["loader.cache=ram", "device.copy_gb_s=0.003", "device.step_ms=10"],
        [], "copy", "wait for their copy"),
    "steps that take all the time": (
        ["device.step_ms=15"], [], "compute", "the input keeps up")}

JOB = {
    "source": {"kind": "sqlite", "table": "measurements"},
    "fields": {
        "receivers": {"json_set": {
            "column": "receivers", "keys": ["snr_db", "lat", "lon",
                                            "signal_present"],
            "max": 10, "overflow": "strongest", "sort_by": "snr_db"},
            "standardize": True},
        "target": {"columns": ["tx_lat", "tx_lon"], "standardize": True}},
    "loader": {"batch_size": 256, "seed": 1, "tune": "off"},
    "device": {"kind": "sim"}, "train": {"epochs": 1000}}


@contextlib.contextmanager
def quota_of_half():
    """A prefix that runs a command under it; None: it cannot be made here."""
    try:
        GROUP.mkdir()
        (GROUP / "cpu.cfs_period_us").write_text("100000")
        (GROUP / "cpu.cfs_quota_us").write_text("50000")
    except OSError:
        yield None
        return
    try:
        yield ["sh", "-c", f'echo $$ > {GROUP}/cgroup.procs; exec "$@"', "sh"]
    finally:
        GROUP.rmdir()


def one_run(program, job, sets, prefix, steps):
    done = subprocess.run(
        [*prefix, program, "train", job, "--json", "--set",
         f"train.max_steps={steps}",
         *(part for one in sets for part in ("--set", one))],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)["verdict"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", default="build/bin/penstock")
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--note", default=None)
    arguments.add_argument("--only", default="", help="faults with this text")
    given = arguments.parse_args()
    program = str(pathlib.Path(given.program).resolve())
    results = []
    with tempfile.TemporaryDirectory() as made, quota_of_half() as quota:
        folder = pathlib.Path(made)
        base = folder / "demo.sqlite"
        subprocess.run([program, "demo", "positions", "--rows", "40000",
                        "--to", f"sqlite:{base}"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        JOB["source"]["path"] = str(base)
        JOB["output"] = {"dir": str(folder / "runs")}
        job = folder / "job.json"
        job.write_text(json.dumps(JOB))
        for name, (sets, prefix, limit, cause) in FAULTS.items():
            if given.only not in name:
                continue
            prefix = quota if prefix == "quota" else prefix
            if prefix is None:
                results.append({"fault": name, "runs": 0,
                                "why": "no cgroup can be made here"})
                continue
            told = [one_run(program, job, sets, prefix, given.steps)
                    for _ in range(given.runs)]
            good = [verdict["limit"] == limit
                    and bool(re.search(cause, verdict["cause"]))
                    for verdict in told]
            results.append({
                "fault": name, "runs": len(told), "named": sum(good),
                "said": told[0]["cause"],
                "causes_that_did_not": sorted({
                    verdict["limit"] + ": " + verdict["cause"]
                    for verdict, right in zip(told, good) if not right})})
            print(json.dumps(results[-1]), file=sys.stderr)
    print_result(
        "cause_campaign", __doc__,
        " ".join(["bench/cause_campaign.py", *sys.argv[1:]]),
        {"machine": processor(),
         **({"note": given.note} if given.note else {}),
         "results": results})


if __name__ == "__main__":
    main()
