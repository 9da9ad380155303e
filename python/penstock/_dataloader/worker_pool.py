"""Worker processes, as the loop sees them."""

from __future__ import annotations

import collections
import logging
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
from collections.abc import Sequence
from typing import Any

from . import packing
from ..errors import Error, worded
from .assembly_table import AssemblyTable, make_assembly_table
from .errors import WorkerDied
from .memory import Reader, SlotTracker, Writer, make_memory
from .remote_error import RemoteError
from .server import FDS_A_MESSAGE, MOST_BYTES, received
from .transfer import digest_of
from .worker import RESULT, Job, Result, Task, task_message

# Not by the script's path, which would put this folder on sys.path; nor is the
# folder of the process a place to import from, as -c makes it.
_START = ("import sys; sys.path[:] = filter(None, sys.path); "
          "exec(compile(open(sys.argv[3]).read(), sys.argv[3], 'exec'))")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CLOSE_S = 2.0
_MOST_HELD = 16  # batches beyond those that are fetched ahead
_LOOK_S = 0.5  # at the server's status, when nothing else happens
_OOM_EVENTS = "/sys/fs/cgroup/memory.events"

log = logging.getLogger("penstock")

# What a forked child must release.
_open: weakref.WeakSet[ServerProcess | ProcessPool] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for thing in list(_open):
        thing.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)


class WorkerStatus:
    """What the server said about the workers of one loop."""

    def __init__(self) -> None:
        self.pids: list[int] | None = None  # None: they are not there yet
        self.ended: dict[int, tuple[int, int]] = {}  # worker -> pid, exit code
        self.failed: RemoteError | None = None


class ServerProcess:
    """The clean process of one loader, from the first loop to close()."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._pools = 0
        self._status: dict[int, WorkerStatus] = {}
        self._loaded: bytes | None = None
        self._control, theirs = socket.socketpair(socket.AF_UNIX,
                                                  socket.SOCK_SEQPACKET)
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
        _open.add(self)

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
        code = None
        try:
            code = self.process.wait(timeout=_CLOSE_S)
        except subprocess.TimeoutExpired:
            pass  # it closed its end, and is still busy
        return worded(
            WorkerDied, "workers.server_died",
            "the server of the worker processes ended",
            f"pid {self.process.pid}", said_of(code), "start the loop again")

    def usable(self) -> bool:
        return (self._control.fileno() >= 0 and os.getpid() == self.owner
                and self.process.poll() is None)

    def forget(self) -> None:
        """In a forked child: process and descriptors are the parent's."""
        self._control.close()
        self.process.returncode = 0  # no code here may wait for it

    def close(self) -> None:
        """Ends the process; workers get a moment to end by themselves."""
        if self._control.fileno() < 0:
            return
        self._control.close()
        if os.getpid() != self.owner:
            return
        try:
            self.process.wait(timeout=_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone


def said_of(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "the cause is unknown"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"it was ended by {name}"
    return f"it ended by itself with code {code}"


def _oom_kills() -> str | None:
    try:
        with open(_OOM_EVENTS) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return line.split()[1]
    except OSError:
        pass
    return None


def _advice(code: int | None, kills_before: str | None) -> str:
    if code == -signal.SIGKILL:
        if kills_before is not None and _oom_kills() != kills_before:
            return ("the kernel's out-of-memory killer was at work in this "
                    "container: use fewer workers, a smaller batch, or a "
                    "higher memory limit")
        return ("most likely the kernel's out-of-memory killer (see dmesg), "
                "or a kill -9: use fewer workers or a smaller batch")
    if code is not None and code < 0:
        return ("a library of the data set crashed: run with num_workers=0 "
                "under python -X faulthandler")
    return ("it ended by itself: look for sys.exit(), os._exit() or a "
            "KeyboardInterrupt of the data set (see standard error)")


class ProcessPool:
    """The workers of one loop. `job` says what they do."""

    def __init__(self, server: ServerProcess, workers: int, job: Job) -> None:
        self._closed = True  # until there is something to close
        self._server, self.size = server, workers
        self.id = server.new_pool()
        self.slots = SlotTracker()
        self._warns_at: float = job.depth + _MOST_HELD
        self._pending: collections.deque[
            tuple[socket.socket, bytes]] = collections.deque()
        self._sockets: dict[int, int] = {}  # descriptor -> worker
        self._open: list[socket.socket] = []
        self._kills = _oom_kills()
        self._waiting = select.poll()
        self._waiting.register(server.fileno(), select.POLLIN)
        assembly_table, post = make_assembly_table(), make_memory("tasks")
        self._shared, shared = _pair()
        fds = [shared.detach(), assembly_table, post]
        closing: list[int] = []
        self._readers: list[Reader] = []
        try:
            for worker in range(workers):
                ours, theirs = _pair()
                self._open.append(ours)
                self._sockets[ours.fileno()] = worker
                self._waiting.register(ours, select.POLLIN)
                memory = make_memory(f"worker-{worker}")
                self._readers.append(Reader(memory))
                fds += [theirs.detach(), memory]
            self._assembly = AssemblyTable(assembly_table)
            self._writer = Writer(post)
            whole = list(fds)
            while len(whole) > FDS_A_MESSAGE:
                server.send("channels", self.id, fds=whole[:FDS_A_MESSAGE])
                del whole[:FDS_A_MESSAGE]
            server.send("fork", self.id, workers, job, fds=whole)
            closing = fds[:1] + fds[3::2]
        except BaseException:
            closing = fds
            raise
        finally:
            for fd in closing:
                os.close(fd)
        # The memories' descriptors serve to map what they grow by.
        self._fds, self._closed = fds[1:3] + fds[4::2], False
        _open.add(self)

    def start_round(self, number: int) -> None:
        """Makes every task of an earlier round void. Workers pass over those
        that are still to be sent, and free what they lie in."""
        self._assembly.round = number

    def put(self, task: Task, worker: int | None = None) -> None:
        """Queues a task, for one worker or for any that is free; never
        waits."""
        to = self._shared if worker is None else self._open[worker]
        self._pending.append((to, task_message(task, self._writer)))
        self._flush()

    def _flush(self) -> None:
        while self._pending:
            to, message = self._pending[0]
            try:
                to.send(message, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                pass  # receive() finds out which worker has gone, and why
            self._pending.popleft()

    def receive(self, deadline: float | None = None) -> Result | None:
        """The next result, None when the deadline has passed."""
        while True:
            self._flush()
            wait = 0.05 if self._pending else _LOOK_S
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - time.monotonic()))
            ready = self._waiting.poll(wait * 1000)
            for fd, _ in ready:
                worker = self._sockets.get(fd)
                if worker is None:
                    continue
                try:
                    raw = self._open[worker].recv(MOST_BYTES,
                                                      socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue
                except ConnectionResetError:
                    raw = b""
                if not raw:
                    raise self._died(worker)
                message = packing.Message(raw[RESULT.size:],
                                        self._readers[worker])
                return Result._make((*RESULT.unpack_from(raw), message,
                                     worker))
            failed = self._server.status_of(self.id).failed
            if failed is not None:
                failed.reraise()
            if not ready and deadline is not None and \
                    time.monotonic() >= deadline:
                return None

    def _died(self, worker: int) -> WorkerDied:
        until = time.monotonic() + _CLOSE_S
        ended = None
        while ended is None and time.monotonic() < until:
            status = self._server.status_of(self.id)
            if status.failed is not None:
                status.failed.reraise()
            ended = status.ended.get(worker)
            if ended is None:
                select.select([self._server], [], [], 0.05)
        pid, code = ended or ("unknown", None)
        return worded(
            WorkerDied, "workers.died",
            f"DataLoader worker (pid {pid}) exited unexpectedly",
            f"worker {worker} of {self.size}", said_of(code),
            _advice(code, self._kills))

    def pids(self) -> list[int]:
        """Of the workers, once they are there."""
        status = self._server.status_of(self.id)
        while status.pids is None:
            if status.failed is not None:
                status.failed.reraise()
            select.select([self._server], [], [], _LOOK_S)
            status = self._server.status_of(self.id)
        return list(status.pids)

    def open(self, message: packing.Message) -> Any:
        held = len(self.slots)
        if held >= self._warns_at:
            self._warns_at = float("inf")
            log.warning(
                "the loop holds %d batches, more than were fetched ahead; "
                "their memory grew to %.0f MB and grows on", held,
                self.slots.nbytes() / 1e6)
        return message.open(self.slots)

    def forget(self) -> None:
        """In a forked child: without this, the workers would not see the
        parent's end while the child lives."""
        if self._closed:
            return
        self._closed = True
        self._pending.clear()
        for ours in (self._shared, *self._open):
            ours.close()
        for fd in self._fds:
            os.close(fd)

    def close(self) -> None:
        """Lets the workers end; does not wait for them."""
        if self._closed:
            return
        self.forget()
        if os.getpid() == self._server.owner:
            try:
                self._server.send("end", self.id)
            except Error:
                pass  # it has ended, and they with it

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
