"""The process beside a job, which outlives the service:

    python3 shim.py FOLDER ATTEMPT [--requeued]

FOLDER/command.json says what to run. The lock on FOLDER/lock is what prevents
a second start: the job inherits it, so it is held as long as the shim or the
job lives. FOLDER/attempt-N is made under the lock by the first shim of attempt
N, and no other one starts it again. This file needs only the standard library,
and is started by its path.
"""

import errno
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time
from typing import Any

# struct flock, with a lock of the open file description: those are inherited,
# and can be asked for without being taken.
_FLOCK = "hhqqi4x"


def take(descriptor: int) -> bool:
    """Whether the lock is now held by this open file."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK,
                    struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def is_held(path: str) -> bool:
    """Whether some process holds the lock. Takes nothing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(
            descriptor, fcntl.F_OFD_GETLK,
            struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(descriptor)
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)


def boot_id() -> str:
    """Of this start of the machine; a test may name another one."""
    named = os.environ.get("PENSTOCK_BOOT_ID")
    if named:
        return named
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def start_ticks(process: int) -> int:
    """When it was started, in clock ticks since the boot; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii",
                  errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def write(path: str, document: object) -> None:
    """Whole or not at all, and on the disk when it returns."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _newest_attempt(folder: str) -> int:
    numbers = [int(name[8:]) for name in os.listdir(folder)
               if name.startswith("attempt-") and name[8:].isdigit()]
    return max(numbers, default=0)


def _may_start(folder: str, attempt: int, requeued: bool) -> bool:
    """Called under the lock. The scheduler of a cluster may start an attempt
    again that it has stopped itself."""
    place = f"{folder}/attempt-{attempt}"
    newest = _newest_attempt(folder)
    if newest > attempt or os.path.exists(f"{folder}/cancel-{attempt}"):
        return False
    if newest < attempt:
        os.mkdir(place)
        sync_folder(folder)
        return True
    if not requeued:
        return False
    try:
        with open(f"{place}/exit.json", encoding="utf-8") as file:
            if json.load(file)["code"] < 128:
                return False
        os.unlink(f"{place}/exit.json")
    except FileNotFoundError:
        pass
    return True


def newest_saved(folder: str) -> str:
    """The run that has come farthest, of those that have saved their state;
    "" without one. Not the latest one: a clock may have been set back, and a
    run that was resumed has saved nothing in its own folder at first."""
    farthest, found = -1, ""
    runs = f"{folder}/runs"
    for name in os.listdir(runs) if os.path.isdir(runs) else []:
        try:
            with open(f"{runs}/{name}/state.json", encoding="utf-8") as file:
                steps = int(json.load(file)["steps_taken"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if steps > farthest and not os.path.islink(f"{runs}/{name}"):
            farthest, found = steps, f"{runs}/{name}"
    return found


def _command(folder: str) -> dict[str, Any]:
    """What to run: a run that has saved its state continues from there."""
    with open(f"{folder}/command.json", encoding="utf-8") as file:
        command: dict[str, Any] = json.load(file)
    saved = newest_saved(folder)
    what = ["--resume", saved] if saved else [f"{folder}/job.json"]
    command["argv"] = [*command["program"], "train", *what, "--json"]
    return command


def run(folder: str, attempt: int, requeued: bool) -> int:
    """Runs an attempt, if no other shim has; the exit code of the job."""
    lock = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
                   0o600)
    if not take(lock) or not _may_start(folder, attempt, requeued):
        return 0
    place = f"{folder}/attempt-{attempt}"
    command = _command(folder)
    # Whoever ends a job asks the job itself, or all processes of its group: the
    # shim only has to live on. Not ignored, since the job would inherit that.
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: asked.append(number))
    try:
        with open(f"{folder}/log.txt", "ab") as log, \
                open(f"{place}/out.json", "wb") as out:
            early = list(asked)  # the job has not heard these
            child = subprocess.Popen(
                command["argv"], cwd=command["cwd"], stdin=subprocess.DEVNULL,
                stdout=out, stderr=log, pass_fds=(lock,),
                env={**os.environ, **command["env"]})
    except OSError as error:
        write(f"{place}/exit.json", {"code": 127, "why": str(error),
                                     "at": time.time()})
        return 127
    write(f"{place}/process.json", {
        "pid": child.pid, "start_ticks": start_ticks(child.pid),
        "shim": os.getpid(), "boot_id": boot_id()})
    if early:
        child.send_signal(early[-1])
    code = child.wait()
    code = 128 - code if code < 0 else code
    write(f"{place}/exit.json", {"code": code, "at": time.time()})
    return code


def main() -> int:
    folder, attempt = sys.argv[1], int(sys.argv[2])
    requeued = int(os.environ.get("SLURM_RESTART_COUNT", "0")) > 0
    if "--detach" in sys.argv:
        if os.fork():
            return 0
        os.setsid()
    return run(folder, attempt, requeued)


if __name__ == "__main__":
    sys.exit(main())
