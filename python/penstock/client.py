"""A client of the job service (`penstock serve`), without other packages.

    import penstock

    client = penstock.Client()            # the socket of your own service
    job = client.submit("UHF", {"epochs": 10, "dataset_ids": ["29b7..."]})
    for event, data in client.events(job["id"]):
        print(event, data)
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import socket
import sys
import time
import urllib.parse
from typing import Any, Iterator, Mapping, NoReturn

from ._program import end_with, say
from .errors import Error, made, refused
from .printing import printable
from .service_address import default_socket

__all__ = ["Client"]

_JOBS = "/api/training/jobs"
_ENDED = ("done", "failed", "cancelled")
_PIECE = 64 << 10


class Client:
    """Asks the job service. Every method raises Error with the service's own
    code, such as `service.state`, and RequestError `service.unreachable`.
    Threads may share a client: each request has a connection of its own.

    `service` is "http://127.0.0.1:8000" or the path of a Unix socket; default:
    $PENSTOCK_SERVICE, else the socket that `penstock serve` uses by default.
    HTTP needs a token, as text or as the path of the service's token file.
    `timeout` is in seconds, for each read.
    """

    def __init__(self, service: str = "", *, token: str = "",
                 token_file: str | os.PathLike[str] = "",
                 timeout: float = 30.0) -> None:
        self._service = service or os.environ.get(
            "PENSTOCK_SERVICE", "") or str(default_socket())
        self._timeout = timeout
        self._token = token or (_token_in(token_file) if token_file else "")

    def submit(self, job_name: str, config: Mapping[str, Any] | None = None,
               *, recipe: str | None = None, priority: int = 0
               ) -> dict[str, Any]:
        """Queues a training: {"id", "job_name", "status", "runner", "links",
        "mapped"}."""
        request: dict[str, Any] = {"job_name": job_name,
                                   "config": dict(config or {})}
        if recipe is not None:
            request["recipe"] = recipe
        if priority:
            request["priority"] = priority
        return self.send(request)

    def send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Queues a request as the API takes it."""
        return self._document("POST", _JOBS, request)

    def jobs(self, status: str = "") -> list[dict[str, Any]]:
        """The newest jobs, of one status or of all."""
        query = "?" + urllib.parse.urlencode({"status": status})
        found = self._document("GET", _JOBS + (query if status else ""))
        return list(found["jobs"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Everything that the service knows of a job."""
        return self._document("GET", _path(job_id))

    def logs(self, job_id: str, start: int = 0) -> bytes:
        """What the job has printed, without its first `start` bytes."""
        return self._ask("GET", _path(job_id, f"logs?from={int(start)}"))

    def report(self, job_id: str) -> dict[str, Any]:
        """report.json of a job that has ended."""
        return self._document("GET", _path(job_id, "report"))

    def cancel(self, job_id: str) -> dict[str, Any]:
        """Asks the job to end; one that runs saves its state first."""
        return self._document("POST", _path(job_id, "cancel"))

    def resume(self, job_id: str) -> dict[str, Any]:
        """Queues a failed or cancelled job, to go on from its checkpoint."""
        return self._document("POST", _path(job_id, "resume"))

    def remove(self, job_id: str) -> None:
        """Removes an ended job with its files."""
        self._ask("DELETE", _path(job_id))

    def wait(self, job_id: str, poll_s: float = 1.0) -> dict[str, Any]:
        """The job, once it has ended."""
        while (job := self.job(job_id))["status"] not in _ENDED:
            time.sleep(poll_s)
        return job

    def events(self, job_id: str, last_id: str = ""
               ) -> Iterator[tuple[str, dict[str, Any]]]:
        """("state", {...}), ("progress", {...}), ("epoch", {...}) and
        ("verdict", {...}), until the job has ended."""
        headers = {"Last-Event-ID": last_id} if last_id else {}
        connection, answer = self._answer("GET", _path(job_id, "events"),
                                          headers=headers)
        try:
            kind = ""
            for raw in answer:
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        finally:
            connection.close()

    def _document(self, method: str, path: str,
                  body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        found = json.loads(self._ask(method, path, body))
        assert isinstance(found, dict)
        return found

    def _ask(self, method: str, path: str,
             body: Mapping[str, Any] | None = None) -> bytes:
        connection, answer = self._answer(method, path, body)
        try:
            return answer.read()
        finally:
            connection.close()

    def _answer(self, method: str, path: str,
                body: Mapping[str, Any] | None = None,
                headers: Mapping[str, str] | None = None
                ) -> tuple[http.client.HTTPConnection,
                           http.client.HTTPResponse]:
        sent = dict(headers or {})
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection = self._connection()
            connection.request(method, path, headers=sent, body=(
                None if body is None else json.dumps(body).encode()))
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error_in(answer.read(), answer.status)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, Error):
                raise
            raise refused("service.unreachable", "cannot reach the service",
                          self._service, str(error) or type(error).__name__,
                          "start 'penstock serve', or name another with "
                          "--service") from None
        return connection, answer

    def _connection(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self._service)
        if parts.scheme == "http":
            return http.client.HTTPConnection(
                parts.hostname or "127.0.0.1", parts.port or 80,
                timeout=self._timeout)
        connection = _UnixConnection("localhost", timeout=self._timeout)
        connection.path = self._service
        return connection


class _UnixConnection(http.client.HTTPConnection):
    path = ""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _path(job_id: str, more: str = "") -> str:
    return f"{_JOBS}/{urllib.parse.quote(job_id, safe='')}" + (
        f"/{more}" if more else "")


def _token_in(file: str | os.PathLike[str]) -> str:
    """The first token of an operator, else the first one."""
    try:
        lines = pathlib.Path(file).read_text(encoding="ascii").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise refused("service.token_file", "cannot use the token file",
                      os.fspath(file), str(error),
                      "name the token file of the service") from None
    found = [line.split(" ", 1) for line in sorted(lines) if " " in line]
    return found[0][1].strip() if found else ""


def _error_in(body: bytes, status: int) -> Error:
    try:
        parts = json.loads(body)["error"]
        text = parts["what"] + (f" at {parts['where']}" if parts["where"]
                                else "")
        text += f": {parts['why']}; {parts['next']}"
        return made(parts["kind"], text, parts["code"], parts["what"],
                    parts["where"], parts["why"], parts["next"])
    except (ValueError, KeyError, TypeError):
        return refused("service.unreachable", "cannot understand the service",
                       f"status {status}", printable(body[:200].decode(
                           "utf-8", "replace")),
                       "check that --service names a penstock service")


def _config_of(sets: list[str]) -> dict[str, Any]:
    """Of key=value; a value that is not JSON is a text."""
    config: dict[str, Any] = {}
    for one in sets:
        key, equals, value = one.partition("=")
        if not equals:
            raise refused("cli.arguments", "cannot submit the job", "--set",
                          f"found '{one}'", "write key=value")
        try:
            config[key] = json.loads(value)
        except ValueError:
            config[key] = value
    return config


def _request_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """What `penstock submit` sends."""
    sent: dict[str, Any] = {"job_name": "training", "config": {}}
    if request["request"]:
        try:
            sent.update(json.loads(pathlib.Path(
                request["request"]).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise refused("file.read", "cannot read the request",
                          request["request"], str(error),
                          "name a JSON file with an object") from None
    sent["config"] = {**sent["config"], **_config_of(request["sets"])}
    if request["name"]:
        sent["job_name"] = request["name"]
    if request["recipe"]:
        sent["recipe"] = request["recipe"]
    return sent


def _line_of(job: Mapping[str, Any]) -> str:
    progress = job.get("progress") or {}
    steps = progress.get("steps_taken")
    of = f"/{progress['steps']}" if progress.get("steps") else ""
    return printable(
        f"{job['id']}  {job['status']:<10} "
        f"{'step ' + str(steps) + of if steps is not None else '':<20} "
        f"{job['job_name']}  {job.get('reason') or ''}".rstrip(), lines=False)


def _follow(client: Client, job_id: str, start: int, follow: bool) -> None:
    while True:
        ended = client.job(job_id)["status"] in _ENDED
        piece = client.logs(job_id, start)
        start += len(piece)
        say(printable(piece.decode("utf-8", "replace")))
        if ended or not follow:
            return
        time.sleep(1)


def _show(request: Mapping[str, Any]) -> None:
    """What would be submitted."""
    from ._service.kubernetes import manifest

    if not request["dry_run"]:
        raise refused("cli.arguments", "cannot submit the job", "--to",
                      "this program does not submit to Kubernetes itself",
                      "add --dry-run, and send the output to "
                      "'kubectl apply -f -'")
    sent = _request_of(request)
    say(json.dumps(manifest(sent) if request["to"] == "k8s" else sent,
                   indent=2) + "\n")


def _do(request: Mapping[str, Any]) -> None:
    """What a verb is for."""
    verb, job_id = request["verb"], request["id"]
    if verb == "submit" and (request["dry_run"] or request["to"] == "k8s"):
        _show(request)
        return
    client = Client(request["service"], token_file=request["token_file"])
    if verb == "logs":
        _follow(client, job_id, request["from"], request["follow"])
        return
    if verb == "jobs":
        found = client.jobs(request["status"])
        if request["json"]:
            say(json.dumps({"jobs": found}, indent=2) + "\n")
        else:
            say(("\n".join(map(_line_of, found)) or "no jobs") + "\n")
        return
    answer = (client.send(_request_of(request)) if verb == "submit"
              else client.cancel(job_id) if verb == "cancel"
              else client.resume(job_id))
    if request["json"]:
        say(json.dumps(answer, indent=2) + "\n")
        return
    for key in answer["mapped"] if verb == "submit" else ():
        became = ", ".join(key["settings"]) or f"not used: {key.get('why')}"
        say(printable(f"{key['key']} = {json.dumps(key['value'])}: {became}",
                      lines=False) + "\n")
    say(_line_of(answer) + "\n")


def main() -> NoReturn:
    """What the program becomes for submit, jobs, logs, cancel and resume:
    `python3 -m penstock.client REQUEST`, REQUEST being JSON."""
    request = json.loads(sys.argv[1])
    end_with(lambda: _program(request), request["json"])


def _program(request: Mapping[str, Any]) -> int:
    try:
        _do(request)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    main()
