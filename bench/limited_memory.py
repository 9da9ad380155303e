#!/usr/bin/env python3
"""Is a table trained on whose rows take twice what the memory's limit leaves?

A table of 64 or more numbers a row, in SQLite or Parquet. The program trains on it
under a limit on data (RLIMIT_DATA, `ulimit -d`), which like a container's limit counts
what cannot be dropped and read again: values that the scan cannot hold go to temporary
files, and the rows to a store on disk, which a second run finds. Beside what each run
planned and used, and where it says that the limit is from, stands the same run without
a limit, which keeps the rows in memory: their batches are compared, byte by byte.

Of Parquet, row groups of 32 MiB, the rows are also trained on in an order of pages,
and both orders on a simulated accelerator whose step takes 20 ms.

    bench/run limited_memory [--limit-mib N] [--steps N] [--times N] [--columns N]
        [--format sqlite|parquet]    of parquet the result is limited_parquet
"""
import argparse
import json
import os
import pathlib
import resource
import sqlite3
import subprocess
import tempfile
import time

from result import machine_of, print_result

MIB = 1 << 20
COMPARED = 50  # batches
GROUP = 32 * MIB  # of Parquet
PAGES = {"paged": {"page": 1024, "window": 64}}
STEP_MS = 20


def make_table(path, rows, columns):
    names = ", ".join(f"c{c} REAL" for c in range(columns))
    # Different in each row and column, and cheap to make.
    values = ", ".join(f"(n * {2 * c + 1} % 1000003) * 0.5"
                       for c in range(columns))
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = off")
    base.execute("PRAGMA synchronous = off")
    base.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {names})")
    base.execute(f"""INSERT INTO t WITH RECURSIVE count(n) AS (
                       SELECT 1 UNION ALL SELECT n + 1 FROM count
                       WHERE n < {rows})
                     SELECT n, {values} FROM count""")
    base.commit()
    base.close()


def make_parquet(path, rows, columns):
    """The same rows."""
    import numpy
    import pyarrow
    from pyarrow import parquet
    names = [f"c{c}" for c in range(columns)]
    group = GROUP // (8 * columns)
    with parquet.ParquetWriter(path, pyarrow.schema(
            [(name, pyarrow.float64()) for name in names]),
            use_dictionary=False) as writer:
        for begin in range(1, rows + 1, group):
            n = numpy.arange(begin, min(begin + group, rows + 1))
            writer.write_table(pyarrow.table({
                name: n * (2 * c + 1) % 1000003 * 0.5
                for c, name in enumerate(names)}))


def run(program, folder, limit, *arguments):
    """Its output, seconds, and what was resident at most."""
    def under():
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    began = time.monotonic()
    process = subprocess.Popen([program, *arguments], cwd=folder, text=True,
                               stdout=subprocess.PIPE, preexec_fn=under)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}:\n"
                         f"{out}")
    return out, time.monotonic() - began, used.ru_maxrss * 1024


def trained(program, folder, limit, cache, steps, name, order="exact",
            step_ms=None):
    more = ["--set", f"loader.order={json.dumps(order)}"]
    if step_ms:
        more += ["--set", "device=" + json.dumps(
            {"kind": "sim", "step_ms": step_ms, "memory_gib": 0.125})]
    out, wall, peak = run(program, folder, limit, "train", "job.json",
                          "--json", "--set", f"loader.cache={cache}", "--set",
                          f"train.max_steps={steps}", *more)
    report = json.loads(out)
    machine, memory, plan = (report["machine"], report["memory"],
                             report["plan"])
    scan = plan.get("scan")
    return {
        "workload": name, "order": order,
        "limit_mib": limit / MIB if limit else None,
        "limit_from": machine["memory_from"],
        "free_from": machine["memory_free_from"],
        "tier": plan["tier"], "scanned": "scan" in plan,
        "scan_mib": scan["bytes"] / MIB if scan else None,
        "spilled_mib": scan["spilled"] / MIB if scan else None,
        "planned_for_readers_mib": scan["readers"] / MIB if scan else None,
        "planned_host_mib": memory["planned"]["host_bytes"] / MIB,
        "used_host_mib": memory["used"]["host_bytes"] / MIB,
        "mapped_mib": memory["used"]["mapped_bytes"] / MIB,
        "peak_mib": peak / MIB, "steps": report["steps"],
        "first_batch_ms": report["first_batch_ms"],
        "samples_per_s": report["samples_per_s"], "wall_seconds": wall,
        **({"step_ms": step_ms, "au": report["au"]} if step_ms else {})}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--limit-mib", type=int, default=512)
    arguments.add_argument("--steps", type=int, default=500)
    arguments.add_argument("--times", type=int, default=2,
                           help="the rows take so many times the limit")
    arguments.add_argument("--columns", type=int, default=64)
    arguments.add_argument("--note", default=None)
    arguments.add_argument("--format", choices=("sqlite", "parquet"),
                           default="sqlite")
    given = arguments.parse_args()
    program, load = os.path.abspath(given.program), os.getloadavg()[0]
    limit = given.limit_mib * MIB
    row_bytes = 8 * given.columns
    rows = given.times * limit // row_bytes
    of_parquet = given.format == "parquet"
    name = "limited_parquet" if of_parquet else "limited_memory"
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        data = pathlib.Path(folder, "d." + given.format)
        (make_parquet if of_parquet else make_table)(data, rows, given.columns)
        job = {"source": {"kind": given.format, "path": data.name,
                          **({} if of_parquet else {"table": "t"})},
               "fields": {"x": {"columns": [f"c{c}" for c in range(given.columns)],
                                "dtype": "float64"}},
               "loader": {"batch_size": 256, "seed": 1, "workers": 2,
                          "cache_dir": "stores"},
               "device": "cpu"}
        pathlib.Path(folder, "job.json").write_text(json.dumps(job))
        results = [
            trained(program, folder, limit, "auto", given.steps, "first run"),
            trained(program, folder, limit, "auto", given.steps, "second run")]
        if of_parquet:
            results += [
                trained(program, folder, limit, "disk", given.steps,
                        "a step of 20 ms", order, STEP_MS)
                for order in ("exact", PAGES)]
            results[-1]["must_reach"] = "au >= 0.97"
        batches = [run(program, folder, bound, "batch", "job.json", "--steps",
                       f"0:{COMPARED}", "--set", f"loader.cache={cache}",
                       "--set", f"loader.cache_dir={cache}")[0]
                   for bound, cache in ((limit, "disk"), (None, "ram"))]
        results.append(trained(program, folder, None, "ram", given.steps,
                               "without a limit, tier ram"))
        size = data.stat().st_size
    print_result(
        name, __doc__,
        f"bench/run {name} --limit-mib {given.limit_mib} --steps "
        f"{given.steps} --times {given.times} --columns {given.columns}",
        {"machine": machine_of(program), "load_before": load,
         **({"note": given.note} if given.note else {}),
         "rows": rows, "rows_mib": rows * row_bytes / MIB,
         ("file" if of_parquet else "database") + "_mib": size / MIB,
         "must_reach": "no run is killed; planned_host_mib and used_host_mib "
                       "below limit_mib; the same batches",
         "batches_compared": COMPARED,
         "same_batches": batches[0] == batches[1], "results": results})


if __name__ == "__main__":
    main()
