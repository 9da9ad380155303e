"""Puts the service together, and runs it until a signal ends it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import signal
import socket
import stat
from typing import Any, Iterator, Mapping

import uvicorn

from ..errors import refused
from . import api, configuration as configurations, tokens as token_files
from .desk import Desk
from .events import Events
from .guard import Guard, Rules
from .protocol import Protocol
from .scheduler import Scheduler
from .shim import take, write
from .store import Store
from .. import service_address

_BACKLOG = 2048
_GRACE_S = 3  # for requests that are being answered when the service stops


def serve(request: Mapping[str, Any]) -> None:
    """Serves until SIGINT or SIGTERM, which ends the process with 128 plus its
    number. Raises RequestError."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises it once more when it has stopped.
        signal.signal(number, _end)
    configuration = configurations.read(request["config"])
    os.chdir(configuration.folder)
    with contextlib.suppress(FileExistsError):
        configuration.runs.mkdir(mode=0o700, parents=True)
    with _only_one(configuration.runs):
        tokens = None
        if request["http"]:
            file = request["token_file"] or str(configuration.runs / "token")
            tokens = token_files.read(pathlib.Path(file))
        sockets = [_unix_socket(request["socket"])]
        path = sockets[0].getsockname()
        if request["http"]:
            sockets.append(_loopback_socket(request["http"]))
        port = sockets[-1].getsockname()[1] if request["http"] else 0
        rules = Rules(os.getuid(), tokens, bool(request["trust_local_user"]),
                      port)
        _announce(rules, sockets, bool(request["json"]))
        try:
            _run(configuration, rules, sockets)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _end(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


class _Server(uvicorn.Server):  # type: ignore[misc]
    """Ends what listeners hear when a signal arrives."""

    events: Events

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.events.close()
        super().handle_exit(sig, frame)


def _run(configuration: configurations.Configuration, rules: Rules,
         sockets: list[socket.socket]) -> None:
    store = Store(configuration.runs / "jobs.sqlite")
    scheduler = Scheduler(configuration, store)
    desk = Desk(configuration, store, scheduler)
    events = Events(desk.picture)
    app = Guard(api.made(api.Routes(desk, events, rules.tokens,
                                    rules.cookie())), rules)
    server = _Server(uvicorn.Config(
        app, http=Protocol, ws="none", lifespan="off", log_level="warning",
        access_log=False, server_header=False, proxy_headers=False,
        h11_max_incomplete_event_size=16 << 10,
        timeout_keep_alive=5, timeout_graceful_shutdown=_GRACE_S,
        backlog=_BACKLOG))
    server.events = events
    scheduler.start()
    try:
        server.run(sockets)
    finally:
        scheduler.stop()
        store.close()


@contextlib.contextmanager
def _only_one(runs: pathlib.Path) -> Iterator[None]:
    """One service for a folder of runs."""
    place = runs / "lock"
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not take(descriptor):
            try:
                other = json.loads((runs / "serving.json").read_text())["pid"]
            except (OSError, ValueError, KeyError):
                other = "unknown"
            raise refused("service.in_use", "cannot start the service",
                          str(runs), f"process {other} serves this folder",
                          "stop that process, or name another folder as 'runs'")
        write(str(runs / "serving.json"), {"pid": os.getpid()})
        yield
    finally:
        os.close(descriptor)


def _unix_socket(named: str) -> socket.socket:
    path = pathlib.Path(named) if named else service_address.default_socket()
    if not named:
        _check_folder(path.parent)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            _check_unused(path)
            os.unlink(path)
    previous = os.umask(0o177)
    try:
        made.bind(str(path))
    except OSError as error:
        raise refused("service.address", "cannot listen", str(path),
                      error.strerror or str(error),
                      "name another path with --socket") from None
    finally:
        os.umask(previous)
    made.listen(_BACKLOG)
    return made


def _check_folder(folder: pathlib.Path) -> None:
    """The folder of the socket is ours alone."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or (
            about.st_mode & 0o077):
        raise refused("service.address", "cannot listen", str(folder),
                      "the folder belongs to another user, or others may use "
                      "it", "name another path with --socket")


def _check_unused(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(str(path)) == 0:
            raise refused("service.address", "cannot listen", str(path),
                          "another service listens on this socket",
                          "name another path with --socket, or stop it")


def _loopback_socket(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if host not in ("127.0.0.1", "localhost", "::1", "0.0.0.0") or (
            not port.isdigit() or int(port) > 65535):
        raise refused("service.address", "cannot listen", address,
                      "expected HOST:PORT with 127.0.0.1, localhost or [::1]",
                      "use --http 127.0.0.1:8000, and a reverse proxy or an "
                      "ssh tunnel for other machines")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1" if host == "localhost" else host, int(port)))
    except OSError as error:
        raise refused("service.address", "cannot listen", address,
                      error.strerror or str(error),
                      "name another port with --http") from None
    made.listen(_BACKLOG)
    return made


def _announce(rules: Rules, sockets: list[socket.socket], as_json: bool
              ) -> None:
    said = {"socket": str(sockets[0].getsockname())}
    if rules.port:
        said["http"] = f"http://127.0.0.1:{rules.port}"
    if as_json:
        print(json.dumps(said), flush=True)
        return
    print(f"penstock: serving on {said['socket']}", flush=True)
    if rules.port and rules.tokens is not None:
        print(f"penstock: page: {said['http']}/#"
              f"{rules.tokens.first('operator')}", flush=True)
    logging.getLogger("penstock").setLevel(logging.INFO)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
