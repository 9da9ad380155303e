"""Rows that take twice what a limit on memory leaves, trained on without a kill.

The limits are those of a process on its addresses (RLIMIT_AS, `ulimit -v`) and on
its data (RLIMIT_DATA, `ulimit -d`), and, where this machine lets us make one, a cgroup
of version 2. PENSTOCK_REQUIRE_CGROUP=1 makes the lack of one a failure."""
import os
import pathlib
import resource
import subprocess
import unittest
import uuid

from penstock_cli import PATIENCE_S, PROGRAM, Answer, Case

MIB = 1 << 20
LIMIT = 384 * MIB
ELEMENTS = 2048
ROW_BYTES = ELEMENTS * (2 + 1) * 4  # two numbers and the mask
ROWS = 2 * LIMIT // ROW_BYTES
JOB = {"loader": {"batch_size": 32, "seed": 3, "workers": 2,
                  "cache_dir": "stores"},
       "fields": {"heard": {"json_set": {"column": "heard", "keys": ["a", "b"],
                                         "max": ELEMENTS}},
                  "y": {"columns": ["y"]}},
       "train": {"max_steps": 40}, "device": "cpu"}


def own_group():
    """The folder of this process's cgroup of version 2."""
    mounts = [line.split() for line in
              pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    at = [words[4] for words in mounts
          if words[words.index("-") + 1] == "cgroup2"]
    groups = [line.split(":", 2) for line in
              pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    own = [group for _, controllers, group in groups if controllers == ""]
    if not at or not own:
        raise OSError("there is no cgroup of version 2")
    return pathlib.Path(at[0]) / own[0].lstrip("/")


class MemoryLimits(Case):
    def setUp(self):
        super().setUp()
        self.database(self.rows(ROWS))
        self.write_job(self.job(**JOB))

    def under(self, limit, *arguments):
        """Runs the program; `limit` is called in its process beforehand."""
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False, preexec_fn=limit)
        return Answer(done.returncode, done.stdout, done.stderr)

    def train_under(self, limit, origin, *arguments):
        """The report of a run that was not killed, and says why."""
        answer = self.under(limit, "train", "job.json", "--json", *arguments)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        report = answer.json()
        self.assertEqual(report["steps"], 40)
        memory, machine = report["memory"], report["machine"]
        self.assertLess(memory["planned"]["host_bytes"], LIMIT)
        self.assertLess(memory["used"]["host_bytes"], LIMIT)
        self.assertEqual(machine["memory_bytes"], LIMIT)
        for name in (machine["memory_from"], machine["memory_free_from"],
                     report["plan"]["host_free_from"]):
            self.assertIn(origin, name)
        self.assertEqual(report["dataset"]["rows"], ROWS)
        self.assertFalse(self.tier(report, "ram")["fits"])
        return report

    @staticmethod
    def tier(report, name):
        [found] = [tier for tier in report["plan"]["tiers"]
                   if tier["tier"] == name]
        return found

    def bytes_under(self, limit, *arguments):
        answer = self.under(limit, "batch", "job.json", "--steps", "0:20",
                            *arguments)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        return answer.out


class Addresses(MemoryLimits):
    ORIGIN = "/proc/self/limits (Max address space)"

    @staticmethod
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

    def test_what_is_not_kept_is_read_again(self):
        report = self.train_under(self.limit, self.ORIGIN)
        self.assertEqual(report["plan"]["tier"], "none")
        self.assertFalse(self.tier(report, "disk")["fits"])
        self.assertEqual(self.bytes_under(self.limit),
                         self.bytes_under(None, "--set", "loader.cache=ram"))

    def test_a_store_that_cannot_be_mapped_is_not_used(self):
        whole = self.bytes_under(None, "--set", "loader.cache=disk")
        self.train_under(self.limit, self.ORIGIN)
        self.assertEqual(self.bytes_under(self.limit), whole)
        [store] = (self.folder / "stores").glob("*.store")
        self.assertGreater(store.stat().st_size, 2 * LIMIT - ROW_BYTES)

    def test_a_tier_that_does_not_fit_is_refused_beforehand(self):
        for tier in "ram", "disk":
            self.refused(self.under(self.limit, "train", "job.json", "--json",
                                    "--set", "loader.cache=" + tier),
                         "out_of_memory", "cache.no_room", tier)
        self.assertEqual(list((self.folder / "stores").glob("*")), [])


class Data(MemoryLimits):
    @staticmethod
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))

    def test_what_does_not_fit_memory_goes_to_the_disk(self):
        report = self.train_under(self.limit,
                                  "/proc/self/limits (Max data size)")
        self.assertEqual(report["plan"]["tier"], "disk")
        self.assertEqual(self.bytes_under(self.limit),
                         self.bytes_under(None, "--set", "loader.cache=ram"))


class Cgroup(MemoryLimits):
    def setUp(self):
        super().setUp()
        try:
            self.group = own_group() / f"penstock-{uuid.uuid4().hex[:8]}"
            self.group.mkdir()
            self.addCleanup(self.group.rmdir)
            (self.group / "memory.max").write_text(str(LIMIT))
            if (swap := self.group / "memory.swap.max").exists():
                swap.write_text("0")
        except OSError as error:
            if os.environ.get("PENSTOCK_REQUIRE_CGROUP"):
                raise
            self.skipTest(f"no cgroup can be made here: {error}")

    def limit(self):
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def test_what_does_not_fit_memory_goes_to_the_disk(self):
        report = self.train_under(self.limit, str(self.group))
        self.assertEqual(report["plan"]["tier"], "disk")
        self.assertEqual(self.bytes_under(self.limit),
                         self.bytes_under(None, "--set", "loader.cache=ram"))


if __name__ == "__main__":
    unittest.main()
