"""The servers of worker processes, as the loop sees them.

One origin for all loaders of this process, from which a server is forked for
each loader that has begun; or, with multiprocessing_context="fork", servers
that are forked from this process itself, one for each loop.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from . import packing
from ..errors import worded
from .errors import WorkerDied
from .origin import circumstances
from .preloading import imported_here, known_here, needed_by
from .remote_error import RemoteError
from .server import Server, received
from .transfer import digest_of, seen_here

# Not by the script's path, which would put this folder on sys.path; nor is the
# folder of the process a place to import from, as -c makes it.
_START = ("import sys; sys.path[:] = filter(None, sys.path); "
          "exec(compile(open(sys.argv[3]).read(), sys.argv[3], 'exec'))")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CLOSE_S = 2.0

# What a forked child must release.
open_here: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for thing in list(open_here):
        thing.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _has_ended(connection: socket.socket) -> bool:
    """Whether nobody is at the other end any more."""
    if connection.fileno() < 0:
        return True
    looking = select.poll()
    looking.register(connection, 0)
    return bool(looking.poll(0))


class _ConnectedProcess:
    """A process at the other end of a connection, with which it ends."""

    def __init__(self, control: socket.socket) -> None:
        self.owner = os.getpid()
        self._control = control
        self._lock = threading.Lock()

    def usable(self) -> bool:
        return os.getpid() == self.owner and not _has_ended(self._control)

    def forget(self) -> None:
        """In a forked child: process and descriptors are the parent's."""
        self._control.close()

    def close(self) -> None:
        """Ends the process; it gets a moment to end by itself."""
        if self._control.fileno() < 0:
            return
        self._control.close()
        if os.getpid() == self.owner:
            self._see_it_end()

    def _see_it_end(self) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone


class OriginProcess(_ConnectedProcess):
    """The process that the servers of this one are forked from."""

    def __init__(self) -> None:
        ours, theirs = pair()
        super().__init__(ours)
        self._numbers = 0
        self._pids: dict[int, int] = {}
        self._ended: dict[int, int] = {}  # number -> exit code
        self._asked: set[str] = set()     # modules that it was asked for
        here = os.path.dirname(os.path.abspath(__file__))
        environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
        flags = getattr(subprocess, "_args_from_interpreter_flags")()
        with theirs:
            # A session of its own: Ctrl-C is for the loop alone.
            self.process = subprocess.Popen(
                [sys.executable, *flags, "-c", _START, os.path.dirname(here),
                 str(theirs.fileno()), os.path.join(here, "start.py")],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env=environment, start_new_session=True)
        open_here.add(self)

    def _send(self, *message: object, fds: Sequence[int] = ()) -> None:
        socket.send_fds(self._control, [pickle.dumps(message)], fds)

    def load(self, names: Iterable[str],
             excluded: Sequence[str] | None = None) -> None:
        """Lets it import these modules; `excluded` ones never, from now on."""
        wanted = [name for name in names if name not in self._asked]
        if not wanted and excluded is None:
            return
        self._asked.update(wanted)
        fd = packing.in_memfd(packing.flatten((seen_here(), wanted, excluded)))
        try:
            self._send("imports", fds=[fd])
        except OSError:
            pass  # it has ended: the next loop starts another
        finally:
            os.close(fd)

    def serve(self, theirs: socket.socket) -> int:
        """Forks a server that answers there; its number."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
        told = packing.in_memfd(packing.flatten(circumstances(
            seen_here(), _ONE_THREAD)))
        try:
            self._send("serve", number, fds=[theirs.fileno(), told])
        finally:
            os.close(told)
        return number

    def _listen(self, seconds: float = 0) -> None:
        with self._lock:
            if not select.select([self._control], [], [], seconds)[0]:
                return
            try:
                raw = self._control.recv(1 << 12, socket.MSG_DONTWAIT)
            except OSError:
                return
            if not raw:
                return
            kind, number, pid, *rest = pickle.loads(raw)
            self._pids[number] = pid
            if kind == "ended":
                self._ended[number] = rest[0]

    def pid_of(self, number: int) -> int | None:
        """Of a server; None: it has not been forked yet."""
        until = time.monotonic() + _CLOSE_S
        while number not in self._pids and self.usable() and \
                time.monotonic() < until:
            self._listen(0.05)
        return self._pids.get(number)

    def wait(self, number: int, seconds: float) -> int | None:
        """The exit code of a server; None: it lives on, or nobody knows."""
        until = time.monotonic() + seconds
        while number not in self._ended:
            left = until - time.monotonic()
            if left <= 0 or not self.usable():
                return None
            self._listen(left)
        return self._ended[number]

    def kill(self, number: int) -> None:
        try:
            self._send("kill", number)
        except OSError:
            pass  # it has ended, and its servers with it

    def forget(self) -> None:
        super().forget()
        self.process.returncode = 0  # no code here may wait for it

    def _see_it_end(self) -> None:
        try:
            self.process.wait(timeout=_CLOSE_S)
        except subprocess.TimeoutExpired:  # it is importing
            self.process.kill()
            self.process.wait()


_origin: OriginProcess | None = None


def origin() -> OriginProcess:
    """That of this process."""
    global _origin
    if _origin is None or not _origin.usable():
        _origin = OriginProcess()
    return _origin


def start(imports: Iterable[str] | None = None,
          exclude: Sequence[str] = ()) -> None:
    """Starts the process that the workers of every penstock.DataLoader here
    come from, so that it is ready when the first loop begins. It imports
    `imports`: by default what this program has imported up to now. What is in
    `exclude` (names of modules and packages) it never imports ahead. Without
    this call, the first loader with workers starts it, and it imports what the
    data sets of the loaders need."""
    origin().load(imported_here() if imports is None else imports,
                  list(exclude))


def stop() -> None:
    """Ends what start() or the first loader started, and with it the workers
    of all loaders. The next loop starts it again."""
    global _origin
    ended, _origin = _origin, None
    if ended is not None:
        ended.close()


def import_ahead(*things: object) -> None:
    """Lets the origin import what these things need, beside this process."""
    origin().load(needed_by(things))


class Child(Protocol):
    """A process that is a server."""
    @property
    def pid(self) -> int | None: ...
    def wait(self, seconds: float) -> int | None: ...
    def kill(self) -> None: ...


class ChildOfOrigin:
    def __init__(self, parent: OriginProcess, number: int) -> None:
        self._parent, self._number = parent, number

    @property
    def pid(self) -> int | None:
        return self._parent.pid_of(self._number)

    def wait(self, seconds: float) -> int | None:
        return self._parent.wait(self._number, seconds)

    def kill(self) -> None:
        self._parent.kill(self._number)


class OwnChild:
    """A process that was forked from this one."""

    def __init__(self, pid: int) -> None:
        self.pid: int | None = pid
        self._pid = pid
        self._code: int | None = None

    def wait(self, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        while self._code is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                return None  # somebody else has waited for it
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= until:
                return None
            else:
                time.sleep(0.001)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)


class WorkerStatus:
    """What the server said about the workers of one loop."""

    def __init__(self) -> None:
        self.pids: list[int] | None = None  # None: they are not there yet
        self.ended: dict[int, tuple[int, int]] = {}  # worker -> pid, exit code
        self.failed: RemoteError | None = None


class ServerProcess(_ConnectedProcess):
    """The clean process of one loader, from the first loop to close()."""

    def __init__(self, control: socket.socket, child: Child) -> None:
        super().__init__(control)
        self.child = child
        self._pools = 0
        self._status: dict[int, WorkerStatus] = {}
        self._loaded: bytes | None = None
        open_here.add(self)

    def send(self, *message: object, fds: Sequence[int] = ()) -> None:
        """Sends a message of at most MOST_BYTES."""
        try:
            socket.send_fds(self._control, [pickle.dumps(message)], fds)
        except OSError as error:
            raise self.gone() from error

    def load(self, parts: Sequence[memoryview], main: dict[str, Any]) -> None:
        """Sends the data set, unless it is the one that is there."""
        digest = digest_of(parts)
        if digest == self._loaded:
            return
        pickled = bytes(parts[0])
        needs_main = b"__main__" in pickled or b"__mp_main__" in pickled
        fds = [packing.in_memfd(packing.flatten((main, needs_main)))]
        try:
            fds.append(packing.in_memfd(parts))
            self.send("load", fds=fds)
        finally:
            for fd in fds:
                os.close(fd)
        self._loaded = digest

    def new_pool(self) -> int:
        with self._lock:
            self._pools += 1
            return self._pools

    def fileno(self) -> int:
        return self._control.fileno()

    def status_of(self, pool: int) -> WorkerStatus:
        with self._lock:
            while True:
                try:
                    raw, fds = received(self._control, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                except OSError:
                    raw = b""
                if not raw:
                    raise self.gone()
                kind, of, *rest = pickle.loads(raw)
                status = self._status.setdefault(of, WorkerStatus())
                if kind == "forked":
                    status.pids = rest[0]
                elif kind == "failed":
                    status.failed = packing.of_memfd(fds[0])
                    self._loaded = None
                else:
                    worker, pid, code = rest
                    status.ended[worker] = pid, code
            return self._status.setdefault(pool, WorkerStatus())

    def gone(self) -> WorkerDied:
        code = self.child.wait(_CLOSE_S)
        return worded(
            WorkerDied, "workers.server_died",
            "the server of the worker processes ended",
            f"pid {self.child.pid}", said_of(code),
            "check the memory limit and the output of this program, then start "
            "the loop again")

    def _see_it_end(self) -> None:
        if self.child.wait(_CLOSE_S) is None:
            self.child.kill()
            self.child.wait(_CLOSE_S)


def serve() -> ServerProcess:
    """A server that is forked from the origin."""
    ours, theirs = pair()
    with theirs:
        parent = origin()
        try:
            number = parent.serve(theirs)
        except OSError:  # it ended a moment ago
            parent = origin()
            number = parent.serve(theirs)
    return ServerProcess(ours, ChildOfOrigin(parent, number))


def fork_here(things: tuple[Any, Any, Any]) -> ServerProcess:
    """A server that is forked from this process, and has `things` (data set,
    collate_fn, worker_init_fn) without pickling them. It ends with its loop."""
    ours, theirs = pair()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()  # else workers would write it again
        except (AttributeError, OSError, ValueError):
            pass
    known_here()
    pid = os.fork()
    if pid == 0:
        _be_server(ours, theirs, things)
    theirs.close()
    return ServerProcess(ours, OwnChild(pid))


def _be_server(ours: socket.socket, theirs: socket.socket,
               things: tuple[Any, Any, Any]) -> None:
    try:
        os.setsid()  # Ctrl-C is for the loop alone
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ours.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        Server(theirs, things=things).run()
    finally:
        os._exit(0)


def said_of(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "the process ended for an unknown reason"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"the process was ended by {name}"
    return f"the process exited with code {code}"
