"""What the routes do: submit, look, cancel, resume, remove. Thread-safe."""

from __future__ import annotations

import re
import secrets
import shutil
from typing import Any, Mapping

from . import mapping
from .configuration import Configuration
from .events import Picture
from .failure import Failure, disk_full, unknown_job, wrong_state
from .run_folder import RunFolder, summary
from .scheduler import Scheduler
from .store import ENDED, Job, NewJob, Store

_PREFIX = "/api/training/jobs"
_KEPT_FREE = 16 << 20  # bytes of the disk that a submission leaves


class Desk:
    def __init__(self, configuration: Configuration, store: Store,
                 scheduler: Scheduler) -> None:
        self.configuration, self.store = configuration, store
        self.scheduler = scheduler

    def submit(self, job_name: str, config: Mapping[str, Any],
               recipe_name: str | None, priority: int) -> list[Job]:
        """Queues a job, or the jobs of a sweep. Raises Failure."""
        recipe = mapping.recipe_of(self.configuration, recipe_name)
        configs = mapping.sweep(config)
        waiting = self.store.counts()["queued"]
        if waiting + len(configs) > self.configuration.queue:
            raise Failure(429, "service.queue_full", "cannot queue the job",
                          "the queue", f"{waiting} jobs wait already",
                          "submit it again when some have run")
        self._check_disk()
        parent = _new_id() if len(configs) > 1 else ""
        new = []
        for one in configs:
            job_id = _new_id()
            document, mapped = mapping.job_of(
                recipe, one, self.scheduler.folder(job_id) / "runs")
            new.append(NewJob(
                job_id, job_name, recipe.name, mapping.digest_of(recipe),
                self.configuration.runner, dict(one), mapped, document,
                priority, parent))
        jobs = self.store.add(new)
        self.scheduler.wake()
        return jobs

    def _check_disk(self) -> None:
        runs = self.configuration.runs
        try:
            free = shutil.disk_usage(runs).free
        except OSError as error:  # the folder is gone
            raise disk_full(str(runs), str(error)) from None
        if free < _KEPT_FREE:
            raise disk_full(str(runs), f"only {free} bytes are free")

    def job(self, job_id: str) -> Job:
        """Raises Failure 404."""
        try:
            return self.store.job(job_id)
        except KeyError:
            raise unknown_job(job_id) from None

    def folder(self, job: Job) -> RunFolder:
        return RunFolder(self.scheduler.folder(job.id))

    def cancel(self, job_id: str) -> Job:
        """Asks a job to end; one that runs saves its state first."""
        for _ in range(3):  # it may be started in this moment
            job = self.job(job_id)
            if job.status in ENDED:
                raise wrong_state(job_id, job.status, "cannot cancel the job",
                                  "only jobs that wait or run can be "
                                  "cancelled")
            if self.scheduler.cancel(job):
                break
        return self.job(job_id)

    def resume(self, job_id: str) -> Job:
        """Queues an ended job again, to go on from its last checkpoint."""
        job = self.job(job_id)
        if job.status not in ("failed", "cancelled") or not self.store.move(
                job, "queued", kills=0, slot=None, ended=None,
                reason="resumed"):
            raise wrong_state(job_id, self.job(job_id).status,
                              "cannot resume the job", "only jobs that failed "
                              "or were cancelled can be resumed")
        self.scheduler.wake()
        return self.job(job_id)

    def remove(self, job_id: str) -> None:
        """Forgets an ended job, and removes its folder."""
        job = self.job(job_id)
        if job.status not in ENDED or not self.store.forget(job):
            raise wrong_state(job_id, job.status, "cannot remove the job",
                              "cancel it first")
        assert re.fullmatch(r"[0-9a-f]{12}", job.id)
        shutil.rmtree(self.scheduler.folder(job.id), ignore_errors=True)

    def picture(self, job_id: str) -> Picture:
        """For events; a job that is gone has no states."""
        folder = RunFolder(self.scheduler.folder(job_id))
        # The states first: what is written before the last one is then seen.
        states = self.store.states(job_id)
        return Picture(states, folder.epochs(), folder.progress(),
                       folder.verdict())

    def summary(self, job: Job) -> dict[str, Any]:
        folder = self.folder(job)
        begun = job.attempt > 0
        return {
            "id": job.id, "job_name": job.job_name, "status": job.status,
            "runner": job.runner, "recipe": job.recipe,
            "parent": job.parent or None, "priority": job.priority,
            "attempt": job.attempt, "reason": job.reason,
            "submitted": job.submitted, "started": job.started,
            "ended": job.ended, "config": job.config,
            "progress": summary(folder, job.status in ENDED) if begun else {},
            "verdict": folder.verdict() if begun else None}

    def detail(self, job: Job) -> dict[str, Any]:
        recipe = self.configuration.recipes.get(job.recipe)
        changed = recipe is None or (
            mapping.digest_of(recipe) != job.recipe_digest)
        return {**self.summary(job), "links": links(job), "mapped": job.mapped,
                "states": self.store.states(job.id), "error": job.error,
                "recipe_changed": changed}


def links(job: Job) -> dict[str, str]:
    """Where to ask for more, and what may be done with the job."""
    here = f"{_PREFIX}/{job.id}"
    found = {name: f"{here}/{name}" for name in (
        "logs", "events", "report", "artifacts", "cancel", "resume")}
    return {"self": here, **found}


def _new_id() -> str:
    return secrets.token_hex(6)
