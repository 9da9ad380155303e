"""Jobs as processes of this machine, which outlive the service."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from .. import shim
from ..store import Job
from . import (SHIM, NotNow, Runner, State, document_of, exit_of,
               write_command)

_STARTING_S = 20.0  # that a shim may take until it holds the lock


class Local(Runner):
    def start(self, job: Job, folder: pathlib.Path) -> str:
        try:
            write_command(job, folder, self.configuration)
            subprocess.run(
                [sys.executable, "-I", SHIM, str(folder), str(job.attempt),
                 "--detach"], check=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=_STARTING_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotNow(f"cannot start a process: {error}") from None
        self._wait_for(job, folder)
        return f"{folder.name}/attempt-{job.attempt}"

    def _wait_for(self, job: Job, folder: pathlib.Path) -> None:
        """Until the shim has begun; it may also have ended."""
        end = time.monotonic() + _STARTING_S
        while time.monotonic() < end:
            if (folder / f"attempt-{job.attempt}").exists() or (
                    folder / f"cancel-{job.attempt}").exists():
                return
            time.sleep(0.005)

    def state(self, job: Job, folder: pathlib.Path) -> State:
        # Asked in this order: what ends in between leaves its exit.json.
        held = shim.is_held(str(folder / "lock"))
        ended = exit_of(job, folder)
        if ended is not None:
            return State("ended", ended)
        if held:
            return State("running")
        if not (folder / f"attempt-{job.attempt}").exists():
            return State("absent")
        return State("lost", reason="its process is gone")

    def stop(self, job: Job, folder: pathlib.Path) -> None:
        (folder / f"cancel-{job.attempt}").touch()
        process = document_of(
            folder / f"attempt-{job.attempt}" / "process.json")
        if process is None or process.get("boot_id") != shim.boot_id():
            return
        # The number may belong to another process by now: it is looked at
        # through a descriptor, which stays that of one process.
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(int(process["pid"]))
            try:
                if shim.start_ticks(int(process["pid"])) == int(
                        process["start_ticks"]):
                    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            finally:
                os.close(descriptor)
