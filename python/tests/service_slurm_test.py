"""The runner of the job service on a real Slurm of one machine (as root, with
Debian's slurmctld, slurmd and munge; skipped without)."""

import subprocess

from entry import main
from service_case import ServiceCase
from slurm_cluster import Slurm, needs_slurm


@needs_slurm
class OnSlurm(ServiceCase):
    settings = {"runner": "slurm", "slots": 2}

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(Slurm().close)

    def test_a_job_runs_to_its_end(self):
        self.start()
        job = self.client().submit("x", {"epochs": 5})
        self.assertEqual(job["runner"], "slurm")
        self.assertEqual(self.client().wait(job["id"], 0.2)["status"], "done")
        self.assertEqual([step for step, _ in self.trace(job["id"])],
                         [1, 2, 3, 4, 5])

    def test_cancel_saves_and_resume_goes_on(self):
        self.start()
        job = self.client().submit("x", {"epochs": 2000})["id"]
        self.until(lambda: len(self.trace(job)) > 3, 60)
        self.client().cancel(job)
        self.assertEqual(self.client().wait(job, 0.2)["status"], "cancelled")
        saved = len(self.trace(job))
        self.client().resume(job)
        self.until(lambda: len(self.trace(job)) > saved + 3, 60)
        steps = [step for step, _ in self.trace(job)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.client().cancel(job)
        self.client().wait(job, 0.2)

    def test_a_job_that_is_requeued_goes_on_as_the_same_attempt(self):
        self.start()
        job = self.client().submit("x", {"epochs": 2000})["id"]
        self.until(lambda: len(self.trace(job)) > 3, 60)
        number = subprocess.run(["squeue", "-h", "-o", "%i"],
                                capture_output=True, text=True,
                                check=True).stdout.split()[0]
        subprocess.run(["scontrol", "requeue", number], check=True)
        subprocess.run(["scontrol", "update", f"jobid={number}",
                        "starttime=now"], check=False)
        self.until(lambda: len({pid for _, pid in self.trace(job)}) > 1, 200)
        steps = [step for step, _ in self.trace(job)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertEqual(self.client().job(job)["attempt"], 1)
        self.client().cancel(job)
        self.assertEqual(self.client().wait(job, 0.2)["status"], "cancelled")

    def test_a_job_survives_the_service(self):
        self.start()
        job = self.client().submit("x", {"epochs": 300})["id"]
        self.until(lambda: self.trace(job), 60)
        self.kill()
        self.start()
        self.client().cancel(job)
        self.assertEqual(self.client().wait(job, 0.2)["status"], "cancelled")


class WithoutSlurm(ServiceCase):
    settings = {"runner": "slurm"}

    def test_jobs_stay_queued_and_say_why(self):
        self.environment = {"PATH": "/nonexistent"}
        self.start()
        job = self.client().submit("x", {})["id"]
        found = self.until(lambda: (
            found := self.client().job(job)) and found["reason"] and found)
        self.assertEqual(found["status"], "queued")
        self.assertIn("sbatch", found["reason"])
        self.assertEqual(self.client().cancel(job)["status"], "cancelled")


if __name__ == "__main__":
    main()
