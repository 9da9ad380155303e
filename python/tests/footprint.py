"""What this process has: threads, descriptors, child processes, memory."""
import gc
import os
import time


def threads():
    return len(os.listdir("/proc/self/task"))


def descriptors():
    """What each open one names, so that a failure says what is left."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            pass  # the one that lists them
    return sorted(found)


def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found += file.read().split()
        except FileNotFoundError:
            pass  # it has just ended
    return sorted(found)


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")


def footprint():
    gc.collect()
    return {"threads": threads(), "descriptors": descriptors(),
            "children": children()}


def quiet():
    """Waits until no thread of an earlier test is left to end."""
    count, since = threads(), time.monotonic()
    while time.monotonic() - since < 1.5:
        if threads() != count:
            count, since = threads(), time.monotonic()
        time.sleep(0.05)


def until_as(before, seconds=10):
    """The footprint, once it is as it was `before`, or after so long."""
    deadline = time.monotonic() + seconds
    while footprint() != before and time.monotonic() < deadline:
        time.sleep(0.02)
    return footprint()
