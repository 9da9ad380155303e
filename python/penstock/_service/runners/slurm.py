"""Jobs of Slurm: sbatch, squeue, scancel.

The end of a job comes from its exit.json. A job that Slurm requeues continues
from its last checkpoint, as the same attempt.
"""

from __future__ import annotations

import pathlib
import shlex
import subprocess
import sys

from ..store import Job
from . import SHIM, NotNow, Runner, State, exit_of, write_command

_TIMEOUT_S = 30


class Slurm(Runner):
    def start(self, job: Job, folder: pathlib.Path) -> str:
        known = self._number_of(job, folder)
        if known:  # the service ended before it had noted the number
            return known
        write_command(job, folder, self.configuration)
        command = shlex.join([sys.executable, "-I", SHIM, str(folder),
                              str(job.attempt)])
        options = [str(one) for one in
                   self.configuration.runner_options.get("options", [])]
        said = self._ask([
            "sbatch", "--parsable", "--requeue",
            f"--job-name={_name_of(job)}", "--open-mode=append",
            f"--output={folder / 'slurm.txt'}",
            f"--chdir={self.configuration.folder}", *options,
            f"--wrap=exec {command}"])
        return said.strip().partition(";")[0]

    def state(self, job: Job, folder: pathlib.Path) -> State:
        ended = exit_of(job, folder)
        if ended is not None and int(ended.get("code", 0)) < 128:
            return State("ended", ended)
        try:
            listed = self._listed(job)
        except NotNow as error:
            return State("unknown", reason=str(error))
        if listed is not None:
            state, reason = listed
            if state in ("PENDING", "REQUEUED", "CONFIGURING"):
                return State("waiting", reason=f"Slurm: {reason}")
            return State("running")
        # A signal ended it, and Slurm has not queued it again.
        ended = exit_of(job, folder)
        if ended is not None:
            return State("ended", ended)
        if not job.handle and not self._number_of(job, folder):
            return State("absent")
        return State("lost", reason="Slurm no longer lists the job")

    def stop(self, job: Job, folder: pathlib.Path) -> None:
        (folder / f"cancel-{job.attempt}").touch()
        number = job.handle or self._number_of(job, folder)
        if not number:
            return
        # To all its processes; a job that waits is removed.
        for options in (["--signal=TERM", "--full"], ["--state=PENDING"]):
            try:
                self._ask(["scancel", *options, number])
            except NotNow:
                pass

    def _listed(self, job: Job) -> tuple[str, str] | None:
        """(state, reason); None where it is not in the queue. A job that is
        COMPLETING is in it: Slurm may be about to queue it again."""
        for line in self._ask(["squeue", "-h", "-o", "%i|%T|%r",
                               f"--name={_name_of(job)}"]).splitlines():
            _, state, reason = line.split("|", 2)
            return state, reason
        return None

    def _number_of(self, job: Job, folder: pathlib.Path) -> str:
        """By the name of the attempt: the number may not have been noted."""
        try:
            said = self._ask(["squeue", "-h", "-o", "%i",
                              f"--name={_name_of(job)}"])
        except NotNow:
            return ""
        return said.split()[0] if said.split() else ""

    def _ask(self, command: list[str]) -> str:
        try:
            return subprocess.run(command, check=True, capture_output=True,
                                  text=True, timeout=_TIMEOUT_S,
                                  stdin=subprocess.DEVNULL).stdout
        except subprocess.CalledProcessError as error:
            raise NotNow(f"{command[0]}: {error.stderr.strip()[:300]}"
                         ) from None
        except (OSError, subprocess.SubprocessError) as error:
            raise NotNow(f"{command[0]}: {error}") from None


def _name_of(job: Job) -> str:
    return f"penstock-{job.id}-{job.attempt}"
