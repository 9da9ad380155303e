"""The clean process that holds the data set of a loader and forks its workers.

It is forked by the first loop over a loader, from the origin (origin.py), or
by request from the program itself. It imports what unpickling the data set
needs, and what workers had to import while they fetched, once; a fork then
shares all of it, so more workers cost little memory and a new epoch starts at
once. It ends when its connection does.
"""

from __future__ import annotations

import array
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..errors import DeviceError, Error, RequestError, worded
from .packing import flatten, in_memfd, of_memfd
from .preloading import (NewModules, Preloader, cuda_is_in_use, known_here,
                         received_names)
from .remote_error import RemoteError, last_line_of
from .worker import Job, Worker, WorkerChannel

MOST_BYTES = 1 << 17
FDS_A_MESSAGE = 200
GRACE_S = 5.0       # for workers whose loop has gone
LAST_GRACE_S = 0.5  # when the loader has gone, too
_PR_SET_PDEATHSIG = 1

def received(control: socket.socket,
             flags: int = 0) -> tuple[bytes, list[int]]:
    """A message, and the descriptors that came with it. (Python 3.11's
    socket.recv_fds() forgets its flags.)"""
    fds = array.array("i")
    raw, ancillary, _, _ = control.recvmsg(
        MOST_BYTES, socket.CMSG_LEN(FDS_A_MESSAGE * fds.itemsize),
        flags | socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data)
    return raw, list(fds)


def take_message(control: socket.socket, of: Any) -> bool:
    """Calls what `of` does on the next message; False: the other end has
    gone."""
    try:
        raw, fds = received(control)
    except ConnectionResetError:
        return False
    if not raw:
        return False
    kind, *rest = pickle.loads(raw)
    getattr(of, "_on_" + kind)(fds, *rest)
    return True


starting_main = False  # while the user's main module is imported here


def prepare(data: dict[str, Any]) -> None:
    """Makes this process see modules as the user's process does."""
    sys.path[:] = data["sys_path"]
    sys.argv[:] = data["sys_argv"]
    try:
        os.chdir(data["dir"])
    except OSError:
        pass  # it has gone, or may not be entered; imports do not need it


def import_main(data: dict[str, Any]) -> None:
    """The user's main module, under the name that multiprocessing gives it."""
    global starting_main
    main = sys.modules.get("__mp_main__")
    # Importing multiprocessing alone gives this process's own that name.
    if main is not None and getattr(main, "__name__", "") == "__mp_main__":
        return
    spawn: Any = importlib.import_module("multiprocessing.spawn")
    starting_main = True
    try:
        if data.get("init_main_from_name"):
            spawn._fixup_main_from_name(data["init_main_from_name"])
        elif data.get("init_main_from_path"):
            spawn._fixup_main_from_path(data["init_main_from_path"])
    except BaseException as error:  # SystemExit, too
        raise _runs_twice(error, data) from error
    finally:
        starting_main = False


def _runs_twice(error: BaseException, data: dict[str, Any]) -> Error:
    """The main module did more than define things when it was imported."""
    file = str(data.get("init_main_from_path")
               or getattr(sys.modules.get("__mp_main__"), "__file__", None)
               or data.get("init_main_from_name"))
    line, text = last_line_of(error, file)
    place = file if line is None else f"{file}, line {line}"
    said = (error.why if isinstance(error, Error) else
            f"{type(error).__name__}: {error}")
    return worded(
        RequestError, "workers.main_guard",
        "the main module cannot be imported by the workers' server", place,
        "the class of the data set is defined there, so the module runs a "
        f"second time{f': `{text}`' if text else ''} ({said})",
        "put all but imports, classes and functions under "
        'if __name__ == "__main__": or set multiprocessing_context="fork"')


class Server:
    """Of one loader, which sends requests over the connection `control`.

    The modules that it and its workers import are told on the pipe `tells`.
    `things` are what it has from the beginning, where it was forked from the
    program itself."""

    def __init__(self, control: socket.socket,
                 preloader: Preloader | None = None, tells: int | None = None,
                 things: Any = None) -> None:
        self._control, self._pid = control, os.getpid()
        self._preloader, self._tells = preloader or Preloader(), tells
        self._modules = None if tells is None else NewModules(tells)
        # Of a pool: descriptors that arrived so far; pid -> worker of its
        # workers; when these are killed.
        self._channels: dict[int, list[int]] = {}
        self._pools: dict[int, dict[int, int]] = {}
        self._ending: dict[int, float] = {}
        self._payload: Any = things
        self._failed: RemoteError | None = None
        if things is not None:
            gc.freeze()  # the collector then leaves the shared pages alone

    def run(self) -> None:
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._told, self._worker_tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pipe = (wake_read, wake_write, self._told)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(wake_read, select.POLLIN)
        waiting.register(self._told, select.POLLIN)
        while True:
            ready = dict(waiting.poll(100 if self._ending else None))
            if wake_read in ready:
                os.read(wake_read, 4096)
            self._bury()
            self._kill_late()
            if self._control.fileno() in ready:
                if not take_message(self._control, self):
                    break
            elif self._told in ready:
                self._load_too(received_names(self._told))
        deadline = time.monotonic() + LAST_GRACE_S
        while self._pools and time.monotonic() < deadline:
            time.sleep(0.002)
            self._bury()
        for pool in list(self._pools):
            self._kill(pool)

    def _load_too(self, names: Sequence[str]) -> None:
        """What workers had to import: those of the next epoch find it here,
        and other loaders in the origin."""
        if all(name in sys.modules for name in names):
            return  # another worker was the first
        self._preloader.load(names)
        gc.collect()
        gc.freeze()
        if self._modules is not None:
            self._modules.tell()

    def _send(self, *message: object, fds: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._control, [pickle.dumps(message)], fds)
        except OSError:
            pass  # the loop has gone; the next read reports it

    def _on_load(self, fds: list[int]) -> None:
        """The data set and what belongs to it, over memory of its own; before
        them, what the user's process sees."""
        self._payload = self._failed = None
        try:
            main, needs_main = of_memfd(fds.pop(0))
            prepare(main)
            if needs_main:
                import_main(main)
            self._payload = of_memfd(fds.pop())
            self._refuse_cuda()
        except BaseException as error:
            self._failed = RemoteError(
                error, "the server of the worker processes",
                "while the data set was unpickled")
        finally:
            for fd in fds:
                os.close(fd)
        gc.collect()
        gc.freeze()  # the collector then leaves the shared pages alone
        if self._modules is not None:
            self._modules.tell()

    def _refuse_cuda(self) -> None:
        if not cuda_is_in_use():
            return
        took = self._preloader.took_cuda
        raise worded(
            DeviceError, "workers.cuda", "cannot fork worker processes",
            "the server that holds the data set",
            "unpickling the data set initialised CUDA" if took is None else
            f"importing {took} initialised CUDA",
            "keep CPU tensors in the data set, or set "
            "workers=\"threads\"" if took is None else
            f"penstock.stop(), then penstock.start(exclude=[\"{took}\"])")

    def _on_channels(self, fds: list[int], pool: int) -> None:
        self._channels.setdefault(pool, []).extend(fds)

    def _on_fork(self, fds: list[int], pool: int, workers: int,
                 job: Job) -> None:
        """Channels: shared, assembly table and post, then own and memory of
        each worker."""
        fds = self._channels.pop(pool, []) + fds
        if self._failed is not None:
            failure = in_memfd(flatten(self._failed))
            self._send("failed", pool, fds=[failure])
            os.close(failure)
        else:
            shared, table, post, *pairs = fds
            known_here()
            for worker in range(workers):
                pid = os.fork()
                if pid == 0:
                    self._be_worker(fds, WorkerChannel(
                        worker, workers, pairs[2 * worker], shared, table,
                        pairs[1::2], post), job)
                self._pools.setdefault(pool, {})[pid] = worker
            self._send("forked", pool, list(self._pools[pool]))
        for fd in fds:
            os.close(fd)

    def _be_worker(self, fds: list[int], channel: WorkerChannel,
                   job: Job) -> None:
        code = 1
        try:
            begin_as_child(self._pid, self._control, self._pipe)
            keep = {channel.own, channel.shared, channel.assembly_table,
                    channel.post, *channel.memories}
            for fd in fds:
                if fd not in keep:
                    os.close(fd)
            dataset, collate_fn, worker_init_fn = self._payload
            worker = Worker(channel, dataset, collate_fn, job.settings,
                            NewModules(self._worker_tells))
            worker.prepare(job.base_seed, worker_init_fn, job.iterable)
            worker.run()
            code = 0
        except SystemExit as request:
            code = request.code if isinstance(request.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass
            os._exit(code)

    def _on_end(self, fds: list[int], pool: int) -> None:
        """The loop has closed this pool's connections."""
        if pool in self._pools:
            self._ending[pool] = time.monotonic() + GRACE_S

    def _kill(self, pool: int) -> None:
        for pid in self._pools.get(pool, ()):
            os.kill(pid, signal.SIGKILL)

    def _kill_late(self) -> None:
        for pool, deadline in list(self._ending.items()):
            if time.monotonic() >= deadline:
                self._kill(pool)
                del self._ending[pool]

    def _bury(self) -> None:
        """Reports the workers that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for pool, pids in list(self._pools.items()):
                if pid in pids:
                    worker = pids.pop(pid)
                    self._send("ended", pool, worker, pid,
                               os.waitstatus_to_exitcode(status))
                    if not pids:
                        del self._pools[pool]
                        self._ending.pop(pool, None)


def begin_as_child(parent: int, control: socket.socket,
                   pipes: Sequence[int]) -> None:
    """In a child that was just forked: it dies with its parent, whose
    connection, pipes and signals are not its own."""
    die_with(parent)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control.close()
    for fd in pipes:
        os.close(fd)


def die_with(parent: int) -> None:
    """The kernel kills this process when its parent ends, however it does."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
