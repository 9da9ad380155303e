"""The runner of the job service on a real Slurm of one machine (as root, with
Debian's slurmctld, slurmd and munge; skipped without)."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from entry import main
from service_case import ServiceCase

NEEDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel",
         "scontrol")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={controller}
SlurmdPort={daemon}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=15
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(os.getuid() == 0 and all(map(shutil.which, NEEDS)),
                     "Slurm is not installed, or this is not root")
class OnSlurm(ServiceCase):
    settings = {"runner": "slurm", "slots": 2}

    @classmethod
    def setUpClass(cls):
        cls.slurm = pathlib.Path(tempfile.mkdtemp(prefix="penstock-slurm"))
        cls.addClassCleanup(shutil.rmtree, cls.slurm, ignore_errors=True)
        cls.daemons = []
        cls.addClassCleanup(cls.end_daemons)
        cls.slurm.chmod(0o755)
        (cls.slurm / "state").mkdir()
        (cls.slurm / "spool").mkdir()
        key = cls.slurm / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (cls.slurm / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], folder=cls.slurm,
            controller=free_port(), daemon=free_port(), cpus=os.cpu_count()))
        os.environ["SLURM_CONF"] = str(cls.slurm / "slurm.conf")
        cls.addClassCleanup(os.environ.pop, "SLURM_CONF")
        cls.daemon("munged", "--foreground", "--force",
                   f"--key-file={key}", f"--socket={cls.slurm}/munge.socket",
                   f"--pid-file={cls.slurm}/munge.pid",
                   f"--log-file={cls.slurm}/munge.log",
                   f"--seed-file={cls.slurm}/munge.seed")
        time.sleep(1)
        cls.daemon("slurmctld", "-D")
        cls.daemon("slurmd", "-D")
        end = time.monotonic() + 60
        while "idle" not in subprocess.run(
                ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True,
                check=False).stdout:
            if time.monotonic() > end:
                raise unittest.SkipTest("Slurm does not start here: " + (
                    cls.slurm / "slurmctld.log").read_text()[-500:])
            time.sleep(0.5)

    @classmethod
    def daemon(cls, *command):
        cls.daemons.append(subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    @classmethod
    def end_daemons(cls):
        for process in reversed(cls.daemons):
            process.send_signal(signal.SIGTERM)
            process.wait(30)

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
