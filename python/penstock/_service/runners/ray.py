"""Jobs of a Ray cluster, by its job submission.

The job's id and attempt are the submission's id, so that a second start of an
attempt is refused by Ray. The folder of the runs must be one that all nodes
share.
"""

from __future__ import annotations

import pathlib
import shlex
import sys
from typing import Any

from ..store import Job
from . import SHIM, NotNow, Runner, State, exit_of, write_command


class Ray(Runner):
    def start(self, job: Job, folder: pathlib.Path) -> str:
        write_command(job, folder, self.configuration)
        name = _name_of(job)
        client = self._client()
        try:
            if self._status(client, name) is None:
                client.submit_job(
                    submission_id=name, entrypoint=shlex.join(
                        [sys.executable, "-I", SHIM, str(folder),
                         str(job.attempt)]),
                    **self.configuration.runner_options.get("resources", {}))
        except Exception as error:
            raise NotNow(f"Ray: {error}"[:300]) from None
        return name

    def state(self, job: Job, folder: pathlib.Path) -> State:
        ended = exit_of(job, folder)
        if ended is not None:
            return State("ended", ended)
        try:
            status = self._status(self._client(), _name_of(job))
        except Exception as error:
            return State("unknown", reason=f"Ray: {error}"[:300])
        if status is None:
            return State("absent")
        if status == "PENDING":
            return State("waiting", reason="Ray: the job is pending")
        if status == "RUNNING":
            return State("running")
        ended = exit_of(job, folder)  # written a moment ago
        return State("ended", ended) if ended is not None else State(
            "lost", reason=f"Ray: the job is {status.lower()}")

    def stop(self, job: Job, folder: pathlib.Path) -> None:
        (folder / f"cancel-{job.attempt}").touch()
        try:
            self._client().stop_job(_name_of(job))
        except Exception:  # asked again with the next look at the job
            pass

    def _client(self) -> Any:
        try:
            from ray.job_submission import JobSubmissionClient
            return JobSubmissionClient(str(
                self.configuration.runner_options.get(
                    "address", "http://127.0.0.1:8265")))
        except Exception as error:
            raise NotNow(f"Ray: {error}"[:300]) from None

    @staticmethod
    def _status(client: Any, name: str) -> str | None:
        """None where Ray knows no such job."""
        for job in client.list_jobs():
            if job.submission_id == name:
                return str(job.status.value)
        return None


def _name_of(job: Job) -> str:
    return f"penstock-{job.id}-{job.attempt}"
