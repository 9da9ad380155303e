"""What the service answers when it refuses a request."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..errors import Error
from ..printing import printable


@dataclasses.dataclass
class Failure(Exception):
    """An HTTP status, and the error document of docs/reference/errors."""

    status: int
    code: str
    what: str
    where: str = ""
    why: str = ""
    next: str = ""
    kind: str = "request"

    def document(self) -> dict[str, Any]:
        """{"error": {...}}, with control characters escaped."""
        shown = {part: printable(getattr(self, part))[:2000]
                 for part in ("what", "where", "why", "next")}
        return {"error": {"kind": self.kind, "code": self.code, **shown}}


def of_error(error: Error, status: int = 422) -> Failure:
    """An error of the engine, as an answer."""
    return Failure(status, error.code, error.what or str(error), error.where,
                   error.why, error.next, error.kind)


def wrong_state(job_id: str, status: str, what: str, next: str) -> Failure:
    return Failure(409, "service.state", what, f"job {job_id}",
                   f"the job is {status}", next)


def unknown_job(job_id: str) -> Failure:
    return Failure(404, "service.no_job", "cannot find the job", job_id,
                   "no job has this id", "GET /api/training/jobs lists all")


def disk_full(where: str, why: str) -> Failure:
    return Failure(507, "service.disk", "cannot keep the job", where, why,
                   "free some space on this disk, and submit the job again",
                   "source")
