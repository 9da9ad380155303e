"""Jobs and their states, in one SQLite file.

Every change is a transaction that is on the disk when the call returns
(write-ahead log, synchronous=full). One connection writes, behind a lock;
another one reads. Thread-safe.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import sqlite3
import threading
import time
from typing import Any, Iterator, Sequence

from .failure import disk_full

#: All states; a job in one of the last three has ended.
STATUSES = ("queued", "running", "cancelling", "done", "failed", "cancelled")
ENDED = STATUSES[3:]

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  job_name TEXT NOT NULL, status TEXT NOT NULL, recipe TEXT NOT NULL,
  recipe_digest TEXT NOT NULL, runner TEXT NOT NULL, priority INTEGER NOT NULL,
  parent TEXT NOT NULL, config TEXT NOT NULL, mapped TEXT NOT NULL,
  document TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,
  kills INTEGER NOT NULL DEFAULT 0, slot INTEGER, handle TEXT NOT NULL
  DEFAULT '', reason TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
  submitted REAL NOT NULL, started REAL, ended REAL) STRICT;
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs(status, priority, number);
CREATE TABLE IF NOT EXISTS states(
  job TEXT NOT NULL, n INTEGER NOT NULL, status TEXT NOT NULL,
  reason TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY(job, n)) STRICT;
"""


@dataclasses.dataclass(frozen=True)
class Job:
    """A row of the table `jobs`."""

    number: int
    id: str
    job_name: str
    status: str
    recipe: str
    recipe_digest: str
    runner: str
    priority: int
    parent: str  # of a sweep: its id, else ""
    config: dict[str, Any]
    mapped: list[dict[str, Any]]
    document: str  # the job file, as JSON
    attempt: int   # counted from 1; 0: never started
    kills: int     # attempts that a signal ended
    slot: int | None
    handle: str    # what the runner calls it
    reason: str
    error: dict[str, Any] | None
    submitted: float
    started: float | None
    ended: float | None


@dataclasses.dataclass(frozen=True)
class NewJob:
    """What is known of a job when it is submitted."""

    id: str
    job_name: str
    recipe: str
    recipe_digest: str
    runner: str
    config: dict[str, Any]
    mapped: list[dict[str, Any]]
    document: str
    priority: int = 0
    parent: str = ""


class Store:
    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._writer, self._reader = self._open(), self._open()
        with self._transaction() as writer:
            for statement in _TABLES.split(";"):
                writer.execute(statement)

    def close(self) -> None:
        with self._writing, self._reading:
            self._writer.close()
            self._reader.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=10,
                                     isolation_level=None,
                                     check_same_thread=False)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. Raises Failure 507 where the disk is full."""
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError) and (
                        "full" in str(error) or "disk I/O" in str(error)):
                    raise disk_full(str(self._file), str(error)) from None
                raise

    def _rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        with self._reading:
            return self._reader.execute(sql, values).fetchall()

    def add(self, jobs: Sequence[NewJob]) -> list[Job]:
        """Queues jobs: all of them or none."""
        now = time.time()
        with self._transaction() as writer:
            for job in jobs:
                writer.execute(
                    "INSERT INTO jobs(id, job_name, status, recipe, "
                    "recipe_digest, runner, priority, parent, config, mapped, "
                    "document, submitted) VALUES(?, ?, 'queued', ?, ?, ?, ?, "
                    "?, ?, ?, ?, ?)",
                    (job.id, job.job_name, job.recipe, job.recipe_digest,
                     job.runner, job.priority, job.parent,
                     json.dumps(job.config), json.dumps(job.mapped),
                     job.document, now))
                writer.execute("INSERT INTO states VALUES(?, 1, 'queued', '', "
                               "?)", (job.id, now))
        return [self.job(job.id) for job in jobs]

    def job(self, job_id: str) -> Job:
        """Raises KeyError."""
        rows = self._rows("SELECT * FROM jobs WHERE id = ?", job_id)
        if not rows:
            raise KeyError(job_id)
        return _job(rows[0])

    def jobs(self, statuses: Sequence[str] = STATUSES, most: int = 1000,
             before: int = 2**62) -> list[Job]:
        """The newest first."""
        return [_job(row) for row in self._rows(
            "SELECT * FROM jobs WHERE status IN "
            f"({','.join('?' * len(statuses))}) AND number < ? "
            "ORDER BY number DESC LIMIT ?", *statuses, before, most)]

    def next_queued(self) -> Job | None:
        rows = self._rows("SELECT * FROM jobs WHERE status = 'queued' "
                          "ORDER BY priority DESC, number LIMIT 1")
        return _job(rows[0]) if rows else None

    def counts(self) -> dict[str, int]:
        """By status, zeros included."""
        found = {row["status"]: int(row["jobs"]) for row in self._rows(
            "SELECT status, count(*) AS jobs FROM jobs GROUP BY status")}
        return {status: found.get(status, 0) for status in STATUSES}

    def states(self, job_id: str) -> list[dict[str, Any]]:
        """What it has been, the oldest first."""
        return [dict(row) for row in self._rows(
            "SELECT n, status, reason, at FROM states WHERE job = ? ORDER BY "
            "n", job_id)]

    def move(self, job: Job, status: str, **changes: Any) -> bool:
        """Changes the status of a job and some of its fields. False, and
        nothing is changed, where the job is no longer as `job` says."""
        now = time.time()
        if status in ENDED:
            changes.setdefault("ended", now)
        reason = str(changes.setdefault("reason", ""))
        if "error" in changes:
            changes["error"] = json.dumps(changes["error"] or None)
        names = ", ".join(f"{name} = ?" for name in changes)
        with self._transaction() as writer:
            moved = writer.execute(
                f"UPDATE jobs SET status = ?, {names} WHERE id = ? AND status "
                "= ? AND attempt = ?", (status, *changes.values(), job.id,
                                        job.status, job.attempt)).rowcount
            if moved:
                writer.execute(
                    "INSERT INTO states SELECT ?, coalesce(max(n), 0) + 1, ?, "
                    "?, ? FROM states WHERE job = ?",
                    (job.id, status, reason, now, job.id))
        return bool(moved)

    def note(self, job: Job, **changes: Any) -> None:
        """Changes fields of a job that stays in its status."""
        names = ", ".join(f"{name} = ?" for name in changes)
        with self._transaction() as writer:
            writer.execute(f"UPDATE jobs SET {names} WHERE id = ? AND attempt "
                           "= ?", (*changes.values(), job.id, job.attempt))

    def forget(self, job: Job) -> bool:
        """Removes a job that has ended."""
        with self._transaction() as writer:
            gone = writer.execute(
                "DELETE FROM jobs WHERE id = ? AND status = ?",
                (job.id, job.status)).rowcount
            if gone:
                writer.execute("DELETE FROM states WHERE job = ?", (job.id,))
        return bool(gone)


def _job(row: sqlite3.Row) -> Job:
    values = dict(row)
    for name in ("config", "mapped"):
        values[name] = json.loads(values[name])
    values["error"] = json.loads(values["error"] or "null")
    return Job(**values)
