"""Worker processes, as the loop sees them."""

from __future__ import annotations

import collections
import logging
import os
import select
import signal
import socket
import time
from typing import Any

from . import packing
from ..errors import Error, worded
from .assembly_table import AssemblyTable, make_assembly_table
from .errors import WorkerDied
from .looks import waits_for_process
from .memory import Reader, SlotTracker, Writer, make_memory
from .server import FDS_A_MESSAGE, MOST_BYTES
from .servers import ServerProcess, open_here, pair, said_of
from .worker import READY, RESULT, Job, Result, Task, task_message

_CLOSE_S = 2.0
_MOST_HELD = 16  # batches beyond those that are fetched ahead
_WORTH_A_WORD = 1 << 23  # bytes of batches that a loop holds
_LOOK_S = 0.5  # at the server's status, when nothing else happens
_OOM_EVENTS = "/sys/fs/cgroup/memory.events"

log = logging.getLogger("penstock")

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
            return ("the kernel's out-of-memory killer was active in this "
                    "container: use fewer workers, a smaller batch, or a "
                    "higher memory limit")
        return ("most likely the kernel's out-of-memory killer (see dmesg), "
                "or a kill -9: use fewer workers or a smaller batch")
    if code is not None and code < 0:
        return ("a library of the data set crashed: run with num_workers=0 "
                "under python -X faulthandler")
    return ("the worker ended by itself: look for sys.exit(), os._exit() or a "
            "KeyboardInterrupt of the data set (see standard error)")


class ProcessPool:
    """The workers of one loop. `job` says what they do. `ends_server`: the
    server is for this loop alone."""

    def __init__(self, server: ServerProcess, workers: int, job: Job,
                 ends_server: bool = False) -> None:
        self._closed = True  # until there is something to close
        self.answered = False  # whether a worker has begun to serve
        self._server, self.size = server, workers
        self._ends_server = ends_server
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
        self._shared, shared = pair()
        fds = [shared.detach(), assembly_table, post]
        closing: list[int] = []
        self._readers: list[Reader] = []
        try:
            for worker in range(workers):
                ours, theirs = pair()
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
        open_here.add(self)

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
        """The next result; None when the deadline has passed, or a worker has
        begun to serve."""
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
                told = RESULT.unpack_from(raw)
                if told[2] == READY:
                    self.answered = True
                    return None
                message = packing.Message(raw[RESULT.size:],
                                        self._readers[worker])
                return Result._make((*told, message, worker))
            failed = self._server.status_of(self.id).failed
            if failed is not None:
                failed.reraise()
            if not ready and deadline is not None and \
                    time.monotonic() >= deadline:
                return None

    def waits_for_lock(self, worker: int) -> bool | None:
        """Whether that one is seen waiting for a lock that another one may
        hold; None: it is not seen."""
        pids = self._server.status_of(self.id).pids
        return None if pids is None else waits_for_process(pids[worker])

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
            self._look_at_memory(held)
        return message.open(self.slots)

    def _look_at_memory(self, held: int) -> None:
        taken = self.slots.nbytes()
        if taken < _WORTH_A_WORD:
            self._warns_at = 2 * held
            return
        self._warns_at = float("inf")
        log.warning("the loop holds %d batches, more than were fetched ahead; "
                    "their memory grew to %.0f MB and continues to grow", held,
                    taken / 1e6)

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
            if self._ends_server:
                self._server.close()
                return
            try:
                self._server.send("end", self.id)
            except Error:
                pass  # it has ended, and they with it

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # at the end of the interpreter, when parts are gone
