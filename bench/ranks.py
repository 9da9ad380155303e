#!/usr/bin/env python3
"""What do several ranks send and agree on in a step, and is a slow one named?

Two ranks on this machine train a table of numbers, by gloo. Of one run: the bytes
that a rank sends for a step, beside 2 (n - 1) / n of its gradients, which a ring
sends; and the time of a vote. Then one rank of two is made slow, by turns either
rank: its reads of the file take longer, or busy programs share its processor; or the
network between two namespaces delays all packets. It counts how often the report
names that rank and the cause.

    bench/run ranks [--runs N] [--steps N]
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

from guard_cost import job_of, make_table
from result import machine_of, print_result, spread
from slow_link import ADDRESSES, slow_link

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "tests"))
from free_port import free_port  # noqa: E402

SPIN = "while True: pass"


def make_job(folder, width, steps):
    job = job_of(make_table(folder / "rows.csv"),
                 {"width": width, "depth": 2, "batch": 128}, steps)
    job["loader"].update(cache="auto", workers=1)
    (folder / "job.json").write_text(json.dumps(job))


def make_database_job(folder, steps):
    """Rows that are read from a database for each batch: too many for the pages
    that SQLite keeps."""
    drawn, columns = random.Random(1), [f"c{c}" for c in range(16)]
    with contextlib.closing(sqlite3.connect(folder / "rows.sqlite")) as base:
        base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, "
                     + ", ".join(f"{column} REAL" for column in columns)
                     + ", y REAL)")
        base.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * 18)})",
            ((i, *(drawn.gauss(0, 1) for _ in range(17)))
             for i in range(60_000)))
        base.commit()
    job = job_of(columns, {"width": 64, "depth": 2, "batch": 128}, steps)
    job["source"] = "sqlite:rows.sqlite#rows"
    job["loader"].update(cache="none", workers=1)
    (folder / "job.json").write_text(json.dumps(job))


class Ranks:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.processors = sorted(os.sched_getaffinity(0))[:2]

    def run(self, *arguments, slow=None, variables=(), hosts=None):
        """Rank 0's report of two ranks, each on its own processor. `variables`
        are those of the rank `slow`. `hosts`: network namespaces of both."""
        port, processes = free_port(), []
        for rank in range(2):
            on_host = ["ip", "netns", "exec", hosts[rank]] if hosts else []
            local = 0 if hosts else rank
            processes.append(subprocess.Popen(
                [*on_host, "taskset", "-c", str(self.processors[rank]),
                 self.program, "train", "job.json", "--json", *arguments],
                cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                     "LOCAL_RANK": str(local),
                     "LOCAL_WORLD_SIZE": "1" if hosts else "2",
                     "MASTER_ADDR": ADDRESSES[0] if hosts else "127.0.0.1",
                     "MASTER_PORT": str(port),
                     **(dict(variables) if rank == slow else {})}))
        outputs = [process.communicate()[0] for process in processes]
        for process in processes:
            if process.returncode != 0:
                sys.exit(f"a rank ended with {process.returncode}: {outputs}")
        return json.loads(outputs[0])

    def sharing(self, slow):
        """The rank's processor is shared with busy programs."""
        spinning = [subprocess.Popen(
            ["taskset", "-c", str(self.processors[slow]), sys.executable, "-c",
             SPIN]) for _ in range(2)]
        try:
            return self.run(slow=slow)
        finally:
            for one in spinning:
                one.kill()
                one.wait()

    def reading_slowly(self, slow, library):
        return self.run(slow=slow, variables={
            "LD_PRELOAD": library, "FAIL_CALL": "read", "FAIL_AT": "1",
            "FAIL_SLEEP_US": "1000"})

    def over_a_slow_link(self):
        """Each packet arrives 2 ms later."""
        with slow_link(0.002) as hosts:
            return self.run(hosts=hosts)


def named(reports, cause):
    """`reports`: with the rank that was made slow, None where the network is."""
    right = [report["ranks"]["slowest"] is not None
             and report["ranks"]["slowest"]["rank"] == slow
             and report["ranks"]["slowest"]["cause"] == cause
             for slow, report in reports]
    return {"runs": len(right), "named": sum(right), "must_reach": "all",
            "others": [report["ranks"]["slowest"] for (_, report), ok
                       in zip(reports, right) if not ok]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="build-bench/bin/penstock")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    library = os.environ.get("PENSTOCK_FAILING_CALLS", "")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ranks = Ranks(program, folder)
        make_job(folder, 256, options.steps)
        votes = []
        for _ in range(5):
            report = ranks.run()
            votes.append(report["ranks"]["vote_ms"])
        gradients = 4 * report["model"]["learned"]
        sent = report["ranks"]["bytes_per_step"]
        results = [
            {"workload": "two ranks", "steps": report["steps"],
             "vote_ms": spread(votes), "must_reach": "vote_ms <= 0.5"},
            {"workload": "bytes of a step", "gradients": gradients,
             "sent": sent, "of_a_ring": round(sent / gradients, 4),
             "must_reach": "of_a_ring <= 1.05"}]
        make_job(folder, 64, options.steps // 3)
        results.append({"workload": "a rank whose processor is shared", **named(
            [(number % 2, ranks.sharing(number % 2))
             for number in range(options.runs)], "processor")})
        if os.geteuid() == 0:  # it makes network namespaces
            results.append({"workload": "a network that delays packets by 2 ms",
                            **named([(None, ranks.over_a_slow_link())
                                     for _ in range(options.runs)], "network")})
        if library:
            make_database_job(folder, options.steps // 3)
            results.append({"workload": "a rank that reads slowly", **named(
                [(number % 2, ranks.reading_slowly(number % 2, library))
                 for number in range(options.runs)], "input")})
        print_result("ranks", __doc__, "bench/run ranks "
                     + " ".join(sys.argv[1:]),
                     {"machine": machine_of(program), "results": results})


if __name__ == "__main__":
    main()
