"""The process that all servers of a program are forked from.

It is started when the first loader with workers is made, or by
penstock.start(), as a program of its own: the process of the engine never
forks. It has imported what data sets need, and holds none of them. For each
loader a server is forked, which then shares all that was imported: another
loader starts at once and takes little memory. It ends when its connection
does.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import socket
from collections.abc import Sequence
from typing import Any

from .memory import give_back_freed
from .packing import of_memfd
from .preloading import Preloader, known_here, received_names
from .server import Server, begin_as_child, prepare, take_message


class Origin:
    def __init__(self, control: socket.socket) -> None:
        self._control, self._pid = control, os.getpid()
        self._preloader = Preloader()
        self._servers: dict[int, int] = {}  # number -> pid

    def run(self) -> None:
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._told, self._tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pipes = wake_read, wake_write, self._told
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        waiting = select.poll()
        for fd in (self._control.fileno(), wake_read, self._told):
            waiting.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in waiting.poll()}
            if wake_read in ready:
                os.read(wake_read, 4096)
            self._bury()
            if self._control.fileno() in ready:
                if not take_message(self._control, self):
                    return
            elif self._told in ready:
                self._preloader.load(received_names(self._told))
                self._settle()

    def _on_imports(self, fds: list[int]) -> None:
        """What the user's process sees, names of modules, and those that are
        never to be imported ahead."""
        main, names, excluded = of_memfd(fds.pop())
        prepare(main)
        if excluded is not None:
            self._preloader.excluded = tuple(excluded)
        self._preloader.load(names)
        self._settle()

    def _settle(self) -> None:
        known_here()
        gc.collect()
        gc.freeze()  # the collector then leaves the shared pages alone
        give_back_freed()  # what imports needed meanwhile

    def _on_serve(self, fds: list[int], number: int) -> None:
        """A server over this connection, in the user's process's
        circumstances."""
        connection, circumstances = fds
        told: dict[str, Any] = of_memfd(circumstances)
        prepare(told["seen"])
        pid = os.fork()
        if pid == 0:
            self._be_server(connection, told)
        os.close(connection)
        self._servers[number] = pid
        self._send("started", number, pid)

    def _be_server(self, connection: int, told: dict[str, Any]) -> None:
        try:
            begin_as_child(self._pid, self._control, self._pipes)
            take_over(told)
            with socket.socket(fileno=connection) as control:
                Server(control, self._preloader, self._tells).run()
        finally:
            os._exit(0)

    def _on_kill(self, fds: list[int], number: int) -> None:
        if number in self._servers:
            os.kill(self._servers[number], signal.SIGKILL)

    def _send(self, *message: object) -> None:
        try:
            self._control.send(pickle.dumps(message))
        except OSError:
            pass  # the program has gone; the next read reports it

    def _bury(self) -> None:
        """Reports the servers that have ended."""
        for number, pid in list(self._servers.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._servers[number]
                self._send("ended", number, pid,
                           os.waitstatus_to_exitcode(status))


def circumstances(seen: dict[str, Any],
                  set_by_default: Sequence[str]) -> dict[str, Any]:
    """Of this process: what a server takes over that was forked from one that
    began earlier. `seen`: how it sees modules. Variables that are not in its
    environment are set by default."""
    return {"seen": seen, "environment": dict(os.environ),
            "keep": list(set_by_default),
            "processors": os.sched_getaffinity(0)}


def take_over(told: dict[str, Any]) -> None:
    wanted: dict[str, str] = told["environment"]
    for name in [name for name in os.environ
                 if name not in wanted and name not in told["keep"]]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    try:
        os.sched_setaffinity(0, told["processors"])
    except OSError:
        pass  # they are not ours any more


def main(fd: int) -> None:
    # The loop decides what Ctrl-C means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        import ctypes  # noqa: F401  before the forks, which share it
        import numpy.random  # noqa: F401  which seeding needs
    except ImportError:
        pass
    with socket.socket(fileno=fd) as control:
        Origin(control).run()
