"""Starts queued jobs, and notices what became of those that run. One thread.

A job is first said to run in the store, then started: a service that ends in
between finds the attempt absent when it comes back, and starts the same attempt
once more; the shim's lock sees to it that it runs once.
"""

from __future__ import annotations

import logging
import pathlib
import threading
import time
from typing import Any

from .configuration import Configuration
from .run_folder import RunFolder
from .runners import NotNow, Runner, made
from .store import Job, Store

_LOOK_S = 0.5
_AGAIN_S = 5.0  # after a start that failed
_log = logging.getLogger("penstock")


class Scheduler:
    def __init__(self, configuration: Configuration, store: Store,
                 runner: Runner | None = None) -> None:
        self.configuration, self.store = configuration, store
        self.runner = runner or made(configuration)
        self._wake, self._ends = threading.Event(), False
        self._not_before = 0.0  # for the next start
        self._asked: set[str] = set()  # attempts that were asked to end
        self._thread = threading.Thread(target=self._work, daemon=True,
                                        name="penstock-jobs")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. Jobs go on."""
        self._ends = True
        self._wake.set()
        self._thread.join()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def folder(self, job_id: str) -> pathlib.Path:
        return self.configuration.runs / job_id

    def _work(self) -> None:
        while not self._ends:
            try:
                self.look()
            except Exception:
                _log.exception("the service cannot look after its jobs")
            self._wake.wait(_LOOK_S)
            self._wake.clear()

    def look(self) -> None:
        """One look at all jobs."""
        active = self.store.jobs(("running", "cancelling"), 100_000)
        for job in active:
            self._look_at(job)
        if time.monotonic() < self._not_before:
            return
        while not self._ends and self._start_next():
            pass

    def _look_at(self, job: Job) -> None:
        state = self.runner.state(job, self.folder(job.id))
        if state.name == "ended":
            self._end(job, state.exit or {})
        elif state.name == "lost":
            self._again(job, state.reason)
        elif state.name == "absent":
            self._begin_absent(job)
        else:
            if state.reason != job.reason:
                self.store.note(job, reason=state.reason)
            if job.status == "cancelling":
                self._ask_to_end(job)

    def _ask_to_end(self, job: Job) -> None:
        """Once for each time that a person cancels it: a second signal ends a
        run without saving its state."""
        key = f"{job.id}/{job.attempt}"
        if key in self._asked:
            return
        process = self.folder(job.id) / f"attempt-{job.attempt}/process.json"
        begun = process.exists()
        self.runner.stop(job, self.folder(job.id))
        if begun or self.configuration.runner != "local":
            self._asked.add(key)

    def _begin_absent(self, job: Job) -> None:
        if job.status == "cancelling":
            self.runner.stop(job, self.folder(job.id))
            # No shim begins it from here on.
            if self.runner.state(job, self.folder(job.id)).name == "absent":
                self.store.move(job, "cancelled")
            return
        self._start(job)

    def _start_next(self) -> bool:
        """Whether a queued job was started."""
        used = {job.slot for job in self.store.jobs(
            ("running", "cancelling"), 100_000)}
        free = [slot for slot in range(self.configuration.slots)
                if slot not in used]
        job = self.store.next_queued() if free else None
        if job is None:
            return False
        if not self.store.move(job, "running", attempt=job.attempt + 1,
                               slot=free[0], started=job.started or time.time(),
                               handle="", error=None):
            return True
        return self._start(self.store.job(job.id))

    def _start(self, job: Job) -> bool:
        try:
            handle = self.runner.start(job, self.folder(job.id))
        except (NotNow, OSError) as error:
            self._not_before = time.monotonic() + _AGAIN_S
            if job.reason != str(error):
                _log.warning("job %s stays queued: %s", job.id, error)
            self.store.move(job, "queued", reason=str(error),
                            attempt=job.attempt - 1, slot=None)
            return False
        self.store.note(job, handle=handle)
        return True

    def _end(self, job: Job, exit: dict[str, Any]) -> None:
        code = int(exit.get("code", 0))
        if code == 0:
            self._move(job, "done")
        elif job.status == "cancelling" and code > 128:
            self._move(job, "cancelled")
        elif code > 128:
            self._again(job, f"signal {code - 128} ended it")
        else:
            error = RunFolder(self.folder(job.id)).failure(job.attempt)
            why = exit.get("why") or (error or {}).get("why") or ""
            self._move(job, "failed", error=error,
                       reason=str(why) or f"it ended with exit code {code}")

    def _again(self, job: Job, reason: str) -> None:
        """A job that was killed continues from its last checkpoint."""
        if job.status == "cancelling":
            self._move(job, "cancelled", reason=reason)
        elif job.kills >= self.configuration.retries:
            self._move(job, "failed", kills=job.kills + 1,
                       reason=f"{reason}, for the {job.kills + 1}th time")
        else:
            self._move(job, "queued", kills=job.kills + 1, slot=None,
                       reason=f"{reason}; it will be resumed")

    def _move(self, job: Job, status: str, **changes: Any) -> None:
        self._asked.discard(f"{job.id}/{job.attempt}")
        self.store.move(job, status, **changes)

    def cancel(self, job: Job) -> bool:
        """False where the job has changed meanwhile. Called by any thread."""
        if job.status == "queued":
            return self.store.move(job, "cancelled")
        if job.status == "running":
            moved = self.store.move(job, "cancelling")
            self.wake()
            return moved
        self._asked.discard(f"{job.id}/{job.attempt}")  # once more
        self.wake()
        return True
