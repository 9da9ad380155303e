"""Kills of the service, of jobs, and of both: no job is lost, none runs twice,
and each continues where it was. PENSTOCK_TEST_KILLS is the number of kills (20;
`./check --faults` makes 500)."""

import contextlib
import json
import os
import random
import signal
import threading
import time
import unittest

from entry import main
from service_case import ServiceCase

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "20"))
STEPS = 12
# The clock of the service and of all that it starts, as a file says.
SHIFTS_CLOCK = """
import os, time
true_time, true_time_ns = time.time, time.time_ns
def shift():
    with open(os.environ["PENSTOCK_TEST_SHIFT"]) as file:
        return int(file.read())
time.time = lambda: true_time() + shift()
time.time_ns = lambda: true_time_ns() + shift() * 10**9
"""


class Kills(ServiceCase):
    step_s = 0.02
    settings = {"slots": 3, "retries": 1000}

    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.acknowledged = []

    def submit_until_it_dies(self):
        with contextlib.suppress(Exception):
            while len(self.acknowledged) < 4 * KILLS:
                self.acknowledged.append(
                    self.client().submit("x", {"epochs": STEPS})["id"])
                time.sleep(0.05)

    def answers(self):
        with contextlib.suppress(Exception):
            return self.client().jobs() is not None

    def kill_a_job(self):
        """One that runs; its state is whatever it has saved."""
        for file in self.folder.glob("runs/*/attempt-*/process.json"):
            if not file.with_name("exit.json").exists():
                with contextlib.suppress(OSError, ValueError):
                    os.kill(json.loads(file.read_text())["pid"],
                            signal.SIGKILL)
                    return

    def test_no_job_is_lost_and_none_runs_twice(self):
        killed_jobs = False
        for number in range(KILLS):
            self.start(http=False)
            submits = threading.Thread(target=self.submit_until_it_dies)
            submits.start()
            if number % 4:  # else while it starts
                self.until(self.answers)
            time.sleep(self.random.uniform(0, 0.6))
            if number % 3 == 2:
                self.kill_a_job()
                killed_jobs = True
            self.kill()
            submits.join()
        self.assertTrue(killed_jobs or KILLS < 3)
        self.assertGreater(len(self.acknowledged), KILLS / 4)
        self.start(http=False)
        for job in self.acknowledged:
            ended = self.until(lambda job=job: (
                found := self.client().job(job)) and (
                    found["status"] not in ("queued", "running")) and found,
                120)
            self.assertEqual(ended["status"], "done", ended["reason"])
            self.check_steps(job)
        print(f"\n{KILLS} kills, {len(self.acknowledged)} jobs: all done")

    def check_steps(self, job):
        """In order; of a process that was killed the last step may be taken
        again, since it had not been saved."""
        trace = self.trace(job)
        processes = list(dict.fromkeys(pid for _, pid in trace))
        before = 0
        for process in processes:
            steps = [step for step, pid in trace if pid == process]
            self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
            self.assertIn(steps[0], (before, before + 1))
            before = steps[-1]
        self.assertEqual(before, STEPS)
        # Not in turns: one after the other.
        self.assertEqual([pid for _, pid in trace], sorted(
            (pid for _, pid in trace), key=processes.index))


class OneJob(ServiceCase):
    def test_a_job_outlives_the_service_and_is_found_again(self):
        self.start()
        job = self.client().submit("x", {"epochs": 9000})["id"]
        self.until(lambda: len(self.trace(job)) > 3)
        self.kill()
        taken = len(self.trace(job))
        self.until(lambda: len(self.trace(job)) > taken + 3)
        self.start()
        self.assertEqual(self.status_of(job), "running")
        self.client().cancel(job)
        self.assertEqual(self.client().wait(job, 0.05)["status"], "cancelled")
        self.assertEqual(len({pid for _, pid in self.trace(job)}), 1)

    def test_a_job_that_is_killed_goes_on_from_its_state(self):
        self.start()
        job = self.client().submit("x", {"epochs": 40})["id"]
        self.until(lambda: len(self.trace(job)) > 5)
        os.kill(self.trace(job)[-1][1], signal.SIGKILL)
        ended = self.client().wait(job, 0.05)
        self.assertEqual((ended["status"], ended["attempt"]), ("done", 2))
        self.assertIn("signal 9", ended["states"][2]["reason"])

    def test_a_job_whose_shim_is_killed_too_is_not_started_beside_itself(self):
        self.start()
        job = self.client().submit("x", {"epochs": 600})["id"]
        file = self.folder / "runs" / job / "attempt-1" / "process.json"
        self.until(file.exists)
        self.kill()
        os.kill(json.loads(file.read_text())["shim"], signal.SIGKILL)
        self.start()
        ended = self.client().wait(job, 0.05)
        self.assertEqual(ended["status"], "done")
        pids = [pid for _, pid in self.trace(job)]
        self.assertEqual(pids, sorted(pids, key=pids.index))

    def test_a_job_that_is_killed_again_and_again_fails(self):
        self.configure(retries=1)
        self.start()
        job = self.client().submit("x", {"epochs": 500})["id"]
        for attempt in (1, 2):
            file = self.folder / f"runs/{job}/attempt-{attempt}/process.json"
            self.until(file.exists)
            os.kill(json.loads(file.read_text())["pid"], signal.SIGKILL)
        ended = self.client().wait(job, 0.05)
        self.assertEqual(ended["status"], "failed")
        self.assertIn("signal 9", ended["reason"])

    def test_after_a_restart_of_the_machine_no_stranger_is_signalled(self):
        """Its process number may belong to another process by then."""
        self.start()
        job = self.client().submit("x", {"epochs": 9000})["id"]
        self.until(lambda: self.trace(job))
        self.kill()
        self.environment = {"PENSTOCK_BOOT_ID": "another start"}
        self.start()
        self.client().cancel(job)
        time.sleep(1)
        # The lock is held, so the job is still one that runs; it is not sent
        # a signal, since the machine says that it has been restarted.
        self.assertIsNone(self.client().job(job)["ended"])
        os.kill(self.trace(job)[-1][1], signal.SIGTERM)
        self.assertEqual(self.client().wait(job, 0.05)["status"], "cancelled")

    def test_the_clock_may_be_set_back(self):
        """While a job runs and another one waits; then all processes die."""
        shift = self.folder / "shift"
        shift.write_text("0")
        (self.folder / "sitecustomize.py").write_text(SHIFTS_CLOCK)
        self.environment = {
            "PENSTOCK_TEST_SHIFT": str(shift), "PYTHONPATH": os.pathsep.join(
                [str(self.folder), os.environ.get("PYTHONPATH", "")])}
        self.start()
        first = self.client().submit("x", {"epochs": 60})["id"]
        second = self.client().submit("x", {"epochs": 3})["id"]
        self.until(lambda: len(self.trace(first)) > 5)
        shift.write_text("-86400")
        third = self.client().submit("x", {"epochs": 3})["id"]
        self.kill()
        os.kill(self.trace(first)[-1][1], signal.SIGKILL)
        self.start()
        ended = [self.client().wait(job, 0.05)
                 for job in (first, second, third)]
        self.assertEqual([job["status"] for job in ended], ["done"] * 3)
        # The state is saved behind each step: that of the kill may come again.
        steps = [step for step, _ in self.trace(first)]
        self.assertEqual(sorted(set(steps)), list(range(1, 61)))
        self.assertLessEqual(len(steps), 61)
        # In the order in which they came, whatever their times say.
        self.assertLess(ended[2]["submitted"], ended[0]["submitted"])
        begins = [self.trace_time(job) for job in (first, second, third)]
        self.assertEqual(begins, sorted(begins))
        self.assertEqual([job["id"] for job in self.client().jobs()],
                         [third, second, first])

    def trace_time(self, job):
        """When its last step was taken, by the true clock."""
        return (self.folder / "runs" / job / "trace.txt").stat().st_mtime_ns

    def test_a_full_disk_leaves_nothing_half_written(self):
        from penstock._service import store
        from penstock._service.failure import Failure
        made = store.Store(self.folder / "full.sqlite")
        made._writer.execute("PRAGMA max_page_count = 20")
        job = store.NewJob("0" * 12, "x", "r", "", "local", {}, [], "{}")
        made.add([job])
        many = [store.NewJob(f"{n:012x}", "x", "r", "", "local", {}, [],
                             "y" * 4000) for n in range(1, 200)]
        with self.assertRaises(Failure) as refused:
            made.add(many)
        self.assertEqual(refused.exception.status, 507)
        self.assertEqual([one.id for one in made.jobs()], [job.id])
        made.close()


if __name__ == "__main__":
    main()
