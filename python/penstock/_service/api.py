"""The routes. What they do is in desk.py; who may ask is decided in guard.py."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
from typing import Annotated, Any, Iterator, Optional

import fastapi
from fastapi import responses
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from .. import __version__
from . import machine, shapes
from .configuration import did_you_mean
from .desk import Desk, links
from .events import Events
from .failure import Failure
from .store import STATUSES
from .tokens import Tokens

_PAGE = pathlib.Path(__file__).parent / "page"
_TYPES = {".html": "text/html; charset=utf-8",
          ".css": "text/css; charset=utf-8",
          ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_JOBS = "/api/training/jobs"
#: The page of a run is one file with its styles and pictures in it.
_REPORT_POLICY = ("default-src 'none'; style-src 'unsafe-inline'; img-src "
                  "data:; sandbox; frame-ancestors 'self'")
_CHUNK = 64 << 10
_JobId = Annotated[str, fastapi.Path(pattern="^[0-9a-f]{12}$")]
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.ErrorDocument}
    for status in (400, 401, 403, 404, 409, 413, 422, 429, 507)}


class Routes:
    """The methods that answer requests; each runs in a thread, but for those
    that are coroutines."""

    def __init__(self, desk: Desk, events: Events, tokens: Tokens | None,
                 cookie: str) -> None:
        self.desk, self.events = desk, events
        self.tokens, self.cookie = tokens, cookie

    def submit(self, submission: shapes.Submission) -> Any:
        config = submission.config.model_dump(exclude_none=False)
        if config.get("dataset_ids") is None:
            config.pop("dataset_ids", None)
        jobs = self.desk.submit(submission.job_name, config, submission.recipe,
                                submission.priority)
        first = jobs[0]
        answer = {"id": first.id, "job_name": first.job_name,
                  "status": first.status, "runner": first.runner,
                  "links": links(first), "mapped": first.mapped}
        if first.parent:
            answer.update(parent=first.parent, jobs=[job.id for job in jobs])
        return responses.JSONResponse(answer, 201,
                                      {"Location": f"{_JOBS}/{first.id}"})

    def jobs(self, status: Optional[shapes.Status] = None,
             parent: Annotated[Optional[str], fastapi.Query(
                 pattern="^[0-9a-f]{12}$")] = None,
             most: Annotated[int, fastapi.Query(ge=1, le=1000)] = 200) -> Any:
        store = self.desk.store
        found = store.jobs((status,) if status else STATUSES,
                           most if parent is None else 1_000_000)
        if parent is not None:
            found = [job for job in found if job.parent == parent][:most]
        return {"jobs": [self.desk.summary(job) for job in found],
                "counts": store.counts()}

    def job(self, job_id: _JobId) -> Any:
        return self.desk.detail(self.desk.job(job_id))

    def logs(self, job_id: _JobId, from_: Annotated[int, fastapi.Query(
            alias="from", ge=0, le=2**62)] = 0) -> Any:
        log = self.desk.folder(self.desk.job(job_id)).log
        size = log.stat().st_size if log.is_file() else 0
        return responses.StreamingResponse(
            _pieces(log, min(from_, size), size),
            media_type="text/plain; charset=utf-8",
            headers={"X-Log-Bytes": str(size)})

    async def listen(self, job_id: _JobId, request: fastapi.Request) -> Any:
        await asyncio.to_thread(self.desk.job, job_id)
        last = request.headers.get("last-event-id", "")
        return responses.StreamingResponse(
            await self.events.listen(job_id, last),
            media_type="text/event-stream")

    def report(self, job_id: _JobId, request: fastapi.Request) -> Any:
        job = self.desk.job(job_id)
        folder = self.desk.folder(job)
        if "text/html" in request.headers.get("accept", ""):
            if folder.page().is_file():
                return responses.FileResponse(
                    folder.page(), media_type="text/html",
                    headers={"Content-Security-Policy": _REPORT_POLICY})
        elif (report := folder.report()) is not None:
            return responses.JSONResponse(report)
        raise Failure(404, "service.no_report", "cannot send the report",
                      f"job {job.id}", f"the job is {job.status}, and its run "
                      "has not ended", "ask again when it has ended")

    def artifacts(self, job_id: _JobId) -> Any:
        job = self.desk.job(job_id)
        found = self.desk.folder(job).artifacts()
        return {"artifacts": [
            {"name": name, "bytes": file.stat().st_size,
             "link": f"{_JOBS}/{job.id}/artifacts/{name}"}
            for name, file in found.items() if file.exists()]}

    def artifact(self, job_id: _JobId, name: str) -> Any:
        job = self.desk.job(job_id)
        found = self.desk.folder(job).artifacts()
        if name not in found:  # a name is looked up, never made a path
            raise Failure(404, "service.no_artifact", "cannot send the file",
                          f"job {job.id}", f"it has no file '{name}'",
                          did_you_mean(name, list(found)) if found
                          else "the job has written no file yet")
        return responses.FileResponse(
            found[name], media_type="application/octet-stream",
            filename=os.path.basename(name))

    def cancel(self, job_id: _JobId) -> Any:
        return self.desk.detail(self.desk.cancel(job_id))

    def resume(self, job_id: _JobId) -> Any:
        return self.desk.detail(self.desk.resume(job_id))

    def remove(self, job_id: _JobId) -> Any:
        self.desk.remove(job_id)
        return responses.Response(status_code=204)

    def machine(self, request: fastapi.Request) -> Any:
        configuration = self.desk.configuration
        return {"version": __version__, "runner": configuration.runner,
                "slots": configuration.slots,
                "recipes": list(configuration.recipes),
                "default": configuration.default,
                "counts": self.desk.store.counts(),
                "role": request.scope["penstock.role"],
                **machine.numbers(configuration)}

    def sign_in(self, request: fastapi.Request) -> Any:
        """The token becomes a cookie that no script can read."""
        answer = responses.JSONResponse(
            {"role": request.scope["penstock.role"]})
        scheme, _, token = request.headers.get(
            "authorization", "").partition(" ")
        if self.tokens is not None and scheme.lower() == "bearer" and (
                self.tokens.role_of(token.strip())):
            answer.set_cookie(self.cookie,
                              self.tokens.cookie_for(token.strip()),
                              httponly=True, samesite="strict", path="/")
        return answer

    def healthz(self) -> Any:
        self.desk.store.counts()
        return {"status": "ok"}

    def metrics(self) -> Any:
        store = self.desk.store
        running = [self.desk.summary(job) for job in
                   store.jobs(("running", "cancelling"), 1000)]
        return responses.PlainTextResponse(
            machine.prometheus(self.desk.configuration, store.counts(),
                               running), media_type="text/plain; version=0.0.4")


def _pieces(file: pathlib.Path, begin: int, end: int) -> Iterator[bytes]:
    if begin >= end:
        return
    with open(file, "rb") as opened:
        opened.seek(begin)
        while begin < end and (piece := opened.read(min(_CHUNK, end - begin))):
            begin += len(piece)
            yield piece


def page() -> Any:
    return _asset_at(_PAGE / "index.html")


def asset(name: str) -> Any:
    known = {file.name: file for file in _PAGE.iterdir()}
    if name not in known or name == "index.html":
        raise Failure(404, "service.no_route", "cannot answer the request",
                      f"/assets/{name}", "there is no such file",
                      "open / in a browser")
    return _asset_at(known[name])


def _asset_at(file: pathlib.Path) -> Any:
    return responses.Response(
        file.read_bytes(), media_type=_TYPES.get(file.suffix, "text/plain"),
        headers={"Cache-Control": "no-cache"})


def _content(media_type: str) -> dict[Any, Any]:
    # OpenAPI 3.1 has no schema for a stream of events: that of the whole answer
    # would be taken for that of each.
    schema = {} if media_type == "text/event-stream" else {
        "schema": {"type": "string"}}
    return {200: {"content": {media_type: schema}}}


def _sends(media_type: str) -> dict[str, Any]:
    """For a route that answers in this type; its errors are JSON."""
    return {"response_class": responses.Response,
            "responses": _content(media_type)}


def made(routes: Routes) -> fastapi.FastAPI:
    """The application, without its guard."""
    app = fastapi.FastAPI(
        title="Penstock job service", version="1",
        description="Queues trainings, runs them, and shows how they go.",
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None,
        responses=_ERRORS)
    usual = {"response_class": responses.JSONResponse, "response_model": None}

    def add(method: str, path: str, function: Any, **more: Any) -> None:
        app.add_api_route(path, function, methods=[method],
                          **{**usual, **more})

    add("POST", _JOBS, routes.submit, status_code=201,
        response_model=shapes.Submitted, summary="Queue a training")
    add("GET", _JOBS, routes.jobs, response_model=shapes.JobList)
    one = _JOBS + "/{job_id}"
    add("GET", one, routes.job, response_model=shapes.JobDetail)
    add("DELETE", one, routes.remove, status_code=204,
        response_class=responses.Response)
    add("GET", one + "/logs", routes.logs, **_sends("text/plain"))
    add("GET", one + "/events", routes.listen, **_sends("text/event-stream"))
    add("GET", one + "/report", routes.report,
        responses=_content("text/html"))
    add("GET", one + "/artifacts", routes.artifacts,
        response_model=shapes.Artifacts)
    add("GET", one + "/artifacts/{name:path}", routes.artifact,
        **_sends("application/octet-stream"))
    for verb in ("cancel", "resume"):
        add("POST", f"{one}/{verb}", getattr(routes, verb),
            response_model=shapes.JobDetail)
    add("GET", "/api/machine", routes.machine, response_model=shapes.Machine)
    add("POST", "/api/session", routes.sign_in, response_model=shapes.Session)
    add("GET", "/healthz", routes.healthz, response_model=shapes.Health)
    add("GET", "/metrics", routes.metrics, **_sends("text/plain"))
    app.add_api_route("/", page, include_in_schema=False)
    app.add_api_route("/assets/{name}", asset, include_in_schema=False)
    app.add_exception_handler(Failure, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_failed)
    app.add_exception_handler(Exception, _broken)
    return app


async def _failed(request: Any, failure: Any) -> Any:
    return responses.JSONResponse(failure.document(), failure.status)


async def _invalid(request: Any, error: Any) -> Any:
    """The first thing that pydantic found wrong, in our words."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    where = ".".join(place) or "the body"
    if first["type"] == "json_invalid":
        return await _failed(request, Failure(
            400, "service.request", "cannot read the request", "the body",
            "it is not JSON: " + str(first.get("ctx", {}).get("error", "")),
            "send a JSON object"))
    if first["type"] == "extra_forbidden":
        return await _failed(request, Failure(
            422, "service.unknown_key", "cannot accept the job", where,
            "the key is unknown",
            did_you_mean(place[-1], list(shapes.Submission.model_fields))))
    if first["loc"][:1] == ("path",):
        return await _failed(request, Failure(
            404, "service.no_job", "cannot find the job", str(
                first.get("input", ""))[:100], "no job has this id",
            "GET /api/training/jobs lists all"))
    found = json.dumps(first.get("input"), default=str)[:100]
    return await _failed(request, Failure(
        422, "service.request", "cannot accept the request", where,
        f"found {found}: {first['msg']}",
        "see /api/openapi.json for what is expected"))


async def _http_failed(request: Any, error: Any) -> Any:
    if error.status_code == 405:
        failure = Failure(405, "service.method", "cannot answer the request",
                          request.url.path, f"{request.method} is not possible "
                          "here", "see /api/openapi.json")
    elif error.status_code == 404:
        failure = Failure(404, "service.no_route", "cannot answer the request",
                          request.url.path, "there is no such route",
                          "see /api/openapi.json")
    else:
        failure = Failure(error.status_code, "service.request",
                          "cannot answer the request", request.url.path,
                          str(error.detail), "see /api/openapi.json")
    answer = await _failed(request, failure)
    answer.headers.update(error.headers or {})
    return answer


async def _broken(request: Any, error: Exception) -> Any:
    return await _failed(request, Failure(
        500, "service.internal", "cannot answer the request",
        request.url.path, f"{type(error).__name__}",
        "see the log of the service, and report it", "internal"))
