"""What the tests of penstock.DataLoader have in common.

Each test ends without a process, thread or descriptor that was not there when
it began.
"""
import gc
import importlib.util
import os
import pathlib
import threading
import time
import unittest
import warnings

from penstock._dataloader import servers
from penstock.dataloader import DataLoader
from refused import Refused

PATIENCE_S = 20

try:
    if os.environ.get("PENSTOCK_TEST_TORCH") == "off":
        raise ImportError
    import torch
except ImportError:
    torch = None
needs_torch = unittest.skipIf(torch is None, "torch is not there")
has_cloudpickle = importlib.util.find_spec("cloudpickle") is not None


def numbers(batch):
    """A batch of numbers as a list of int, whatever holds it."""
    return [int(number) for number in batch]


def all_numbers(loader):
    return [number for batch in loader for number in numbers(batch)]


def processes():
    """pid -> parent of every process that lives (zombies, too)."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            found[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
    return found


def descendants(of=None):
    """Processes below `of`; below this one without the origin, which all
    loaders share."""
    parents, found = processes(), set()
    if of is None and servers._origin is not None:
        shared = servers._origin.process.pid
        return descendants(os.getpid()) - {shared}
    grown = {of or os.getpid()}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown}
        grown -= found
        found |= grown
    return found


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def until(holds, seconds=PATIENCE_S):
    """Waits until `holds()`; whether it did."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Case(unittest.TestCase):
    def setUp(self):
        warnings.filterwarnings("ignore", message=".* workers on .* process")
        gc.collect()
        servers.origin()
        self._before = (descendants(), threading.active_count(),
                        descriptors())
        self._loaders = []

    def tearDown(self):
        while self._loaders:
            self._loaders.pop().close()
        gc.collect()
        children, threads, fds = self._before
        self.assertTrue(until(lambda: descendants() <= children),
                        "a process is left behind")
        self.assertTrue(until(lambda: threading.active_count() <= threads),
                        "a thread is left behind")
        gc.collect()
        self.assertLessEqual(descriptors(), fds, "a descriptor is left")

    def loader(self, *arguments, **named):
        """A loader that is closed at the end of the test."""
        made = DataLoader(*arguments, **named)
        self._loaders.append(made)
        return made

    def refused(self, kind, code, *names):
        """The block ends in this error, which says where, why and what next."""
        return Refused(self, kind, code, names)

    def assert_same(self, one, other):
        """Two batches hold the same, type by type."""
        self.assertIs(type(one), type(other))
        if isinstance(one, dict):
            self.assertEqual(list(one), list(other))
            for key in one:
                self.assert_same(one[key], other[key])
        elif isinstance(one, (list, tuple)):
            self.assertEqual(len(one), len(other))
            for a, b in zip(one, other):
                self.assert_same(a, b)
        elif hasattr(one, "dtype"):
            self.assertEqual(one.dtype, other.dtype)
            self.assertEqual(tuple(one.shape), tuple(other.shape))
            self.assertEqual(one.tolist(), other.tolist())
        else:
            self.assertEqual(one, other)
