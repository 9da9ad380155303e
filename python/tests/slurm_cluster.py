"""A Slurm of this one machine, for tests: Debian's slurmctld, slurmd and munge,
started as root."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from free_port import free_port

NEEDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel",
         "scontrol", "srun")
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


needs_slurm = unittest.skipUnless(
    os.getuid() == 0 and all(map(shutil.which, NEEDS)),
    "Slurm is not installed, or this is not root")


class Slurm:
    """Runs until close(); SLURM_CONF is set meanwhile."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-slurm"))
        self.daemons = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in reversed(self.daemons):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        os.environ.pop("SLURM_CONF", None)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], folder=self.folder,
            controller=free_port(), daemon=free_port(), cpus=os.cpu_count()))
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        self._daemon("munged", "--foreground", "--force",
                     f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                     f"--pid-file={self.folder}/munge.pid",
                     f"--log-file={self.folder}/munge.log",
                     f"--seed-file={self.folder}/munge.seed")
        time.sleep(1)
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        end = time.monotonic() + 60
        while "idle" not in subprocess.run(
                ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True,
                check=False).stdout:
            if time.monotonic() > end:
                raise unittest.SkipTest("Slurm does not start here: " + (
                    self.folder / "slurmctld.log").read_text()[-500:])
            time.sleep(0.5)

    def _daemon(self, *command):
        self.daemons.append(subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
