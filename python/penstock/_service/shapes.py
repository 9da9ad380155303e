"""What requests and answers look like (pydantic), for checks and OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional, Union

import pydantic

Status = Literal["queued", "running", "cancelling", "done", "failed",
                 "cancelled"]
_Text = Annotated[str, pydantic.StringConstraints(
    min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
_DatasetId = Union[Annotated[str, pydantic.StringConstraints(
    strict=True, min_length=1, max_length=200,
    pattern=r"^[^\x00-\x1f\x7f\\]*$")],
    Annotated[int, pydantic.Field(strict=True, ge=-2**63, le=2**63 - 1)]]


class Config(pydantic.BaseModel):
    """Settings by the names of common training programs; a list of values
    makes a sweep."""

    model_config = pydantic.ConfigDict(extra="allow")

    dataset_ids: Optional[Annotated[list[_DatasetId], pydantic.Field(
        min_length=1, max_length=10_000)]] = None


class Submission(pydantic.BaseModel):
    """A training to be queued."""

    model_config = pydantic.ConfigDict(extra="forbid")

    job_name: _Text
    config: Config = pydantic.Field(default_factory=Config)
    recipe: Optional[_Text] = None
    priority: Annotated[int, pydantic.Field(strict=True, ge=-100, le=100)] = 0


class Mapped(pydantic.BaseModel):
    """What became of a key of the config."""

    key: str
    value: Any
    understood: bool
    settings: list[str]
    why: Optional[str] = None


class JobSummary(pydantic.BaseModel):
    """A job, as lists have it."""

    id: str
    job_name: str
    status: Status
    runner: str
    recipe: str
    parent: Optional[str]
    priority: int
    attempt: int
    reason: str
    submitted: float
    started: Optional[float]
    ended: Optional[float]
    config: dict[str, Any]
    progress: dict[str, Any]
    verdict: Optional[dict[str, Any]]


class Submitted(pydantic.BaseModel):
    """A job that is queued; of a sweep its first one, and all of them."""

    id: str
    job_name: str
    status: Status
    runner: str
    links: dict[str, str]
    mapped: list[Mapped]
    parent: Optional[str] = None
    jobs: Optional[list[str]] = None


class JobDetail(JobSummary):
    """Everything that is known of a job."""

    links: dict[str, str]
    mapped: list[Mapped]
    states: list[dict[str, Any]]
    error: Optional[dict[str, Any]]
    recipe_changed: bool


class JobList(pydantic.BaseModel):
    jobs: list[JobSummary]
    counts: dict[str, int]


class Artifact(pydantic.BaseModel):
    name: str
    bytes: int
    link: str


class Artifacts(pydantic.BaseModel):
    artifacts: list[Artifact]


class ErrorParts(pydantic.BaseModel):
    kind: str
    code: str
    what: str
    where: str
    why: str
    next: str


class ErrorDocument(pydantic.BaseModel):
    error: ErrorParts


class Health(pydantic.BaseModel):
    status: Literal["ok"]


class Machine(pydantic.BaseModel):
    """The machine and the service, as the page shows them."""

    version: str
    runner: str
    slots: int
    recipes: list[str]
    default: str
    cpus: Optional[int]
    load: float
    memory_bytes: int
    memory_free_bytes: int
    disk_free_bytes: int
    gpus: list[dict[str, Any]]
    counts: dict[str, int]
    role: str


class Session(pydantic.BaseModel):
    role: str
