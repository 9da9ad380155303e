"""Ctrl-C, forks, the end of the process, and loaders by the thousand."""
import gc
import os
import signal
import threading
import time
import unittest

import penstock
from entry import main
from positions import Case, run_python

SLOW = {"loader__cache": "none", "loader__workers": 1, "loader__prefetch": 1,
        "source__round_trip_ms": 1000}


def after(seconds, call):
    timer = threading.Timer(seconds, call)
    timer.start()
    return timer


def threads():
    return len(os.listdir("/proc/self/task"))


def quiet():
    """Waits until no thread of an earlier test is left to end."""
    count, since = threads(), time.monotonic()
    while time.monotonic() - since < 1.5:
        if threads() != count:
            count, since = threads(), time.monotonic()
        time.sleep(0.05)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")


class CtrlC(Case):
    def interrupted(self, wait):
        """Runs `wait`, which Ctrl-C must end; the seconds that took."""
        timer = after(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        self.addCleanup(timer.cancel)
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            wait()
        return time.monotonic() - start - 0.3

    def test_ends_a_wait_for_a_batch_and_leaves_the_loader_whole(self):
        loader = self.open(**SLOW)
        batches = loader.batches()
        self.assertLess(self.interrupted(lambda: list(batches)), 1)
        self.assertLessEqual(loader.state_dict()["step"], 1)

    def test_ends_the_opening(self):
        self.assertLess(self.interrupted(lambda: self.open(**SLOW)), 1.5)

    def test_other_threads_run_while_one_waits(self):
        loader = self.open(**{**SLOW, "source__round_trip_ms": 400})
        turns = 0
        taker = threading.Thread(target=lambda: next(loader.batches()))
        taker.start()
        while taker.is_alive():
            turns += 1
            time.sleep(0.001)
        self.assertGreater(turns, 20)


class Forks(Case):
    def test_a_child_is_told_and_the_parent_goes_on(self):
        loader = self.open(loader__workers=2)
        batches = loader.batches()
        batch = next(batches)
        array = batch.target.numpy()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                refusals = 0
                for use in (lambda: next(batches), loader.state_dict,
                            lambda: len(loader), lambda: batch["target"],
                            lambda: iter(loader), lambda: batch.numpy()):
                    try:
                        use()
                    except penstock.RequestError as error:
                        refusals += error.code == "loader.forked"
                loader.close()
                del loader, batches, batch, array
                gc.collect()
                own = penstock.open(self.path, loader__workers=2)
                works = len(list(own)) == len(own)
                own.close()
                status = 0 if refusals == 6 and works else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(array.shape, batch.target.shape)
        self.assertEqual(next(batches).step, 1)


class Together(Case):
    def test_helpers_of_the_drop_in_start_beside_a_loader_that_runs(self):
        loader = self.open(loader__workers=2)
        batches = loader.batches()
        first = next(batches)
        with penstock.DataLoader(range(60), batch_size=4,
                                 num_workers=2) as items:
            both = list(zip(items, batches))
        self.assertEqual([int(i) for taken, _ in both for i in taken],
                         list(range(60)))
        self.assertEqual([batch.step for _, batch in both][:3], [1, 2, 3])
        self.assertEqual(loader.state_dict()["step"], (1 + len(both))
                         % len(loader))
        self.assertEqual(first.step, 0)


class TheEnd(Case):
    """The process ends well, whatever is left."""

    ENDS = {
        "a loader that iterates": "kept = loader; it = iter(kept); next(it)",
        "a batch alone": "kept = next(iter(loader)); del loader",
        "an array alone": "kept = next(iter(loader)).target.numpy(); "
                          "del loader",
        "a capsule": "kept = next(iter(loader)).target.__dlpack__()",
        "a cycle": "class Own: pass\nown = Own(); own.own = own; "
                   "own.loader = loader; own.batch = loader.peek()",
        "a module's global": "import sys; sys.kept = loader; "
                             "sys.batch = loader.peek()",
        "a thread that waits": (
            "import threading\n"
            "def take():\n  for batch in loader.batches(): batch.numpy()\n"
            "threading.Thread(target=take, daemon=True).start()\n"
            "import time; time.sleep(0.2)"),
        "an exception": "next(iter(loader)); raise SystemExit(0)",
    }

    def test_in_every_order(self):
        often = {"a thread that waits": 10}
        for name in [n for n in self.ENDS for _ in range(often.get(n, 1))]:
            text = self.ENDS[name]
            with self.subTest(name):
                start = (f"import penstock\nloader = penstock.open("
                         f"{str(self.path)!r}, loader__workers=2)\n")
                done = run_python(start + text)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (0, "", ""))

    def test_ctrl_c_leaves_by_a_traceback_not_a_crash(self):
        text = (f"import penstock, os, signal, threading\n"
                f"loader = penstock.open({str(self.path)!r}, loader__workers=1,"
                f" loader__cache='none', source__round_trip_ms=1000)\n"
                "threading.Timer(0.3, lambda: os.kill(os.getpid(), "
                "signal.SIGINT)).start()\nlist(loader.batches())")
        done = run_python(text)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertEqual(done.returncode, -signal.SIGINT)


class Many(Case):
    CYCLES = int(os.environ.get("PENSTOCK_TEST_CYCLES", "1000"))

    def cycle(self, number):
        loader = penstock.open(self.path, loader__workers=number % 3,
                               loader__cache=("ram", "none")[number % 2])
        for batch in loader:
            array = batch.target.numpy()
            if batch.step == number % 4:
                break
        if number % 5 == 0:
            loader.load_state_dict(loader.state_dict())
            next(iter(loader))
        if number % 7 == 0:
            try:
                loader.load_state_dict({"epoch": -1})
            except penstock.RequestError:
                pass
        if number % 2:
            loader.close()
        return array

    def setUp(self):
        quiet()

    def test_loaders_leave_nothing_behind(self):
        for number in range(60):
            self.cycle(number)
        gc.collect()
        before = threads(), descriptors()
        memory = resident_kib()
        for number in range(self.CYCLES):
            self.cycle(number)
        gc.collect()
        self.assertEqual((threads(), descriptors()), before)
        self.assertLess(resident_kib() - memory, 6 * 1024)

    def test_openings_that_fail_leave_nothing_behind(self):
        def fail():
            for wrong in ({"source__table": "none"}, {"loader__seeed": 1},
                          {"source__path": "/nowhere"}, {"device": "gpu"},
                          {"loader__batch_size": 10 ** 6}):
                with self.assertRaises(penstock.Error):
                    penstock.open(self.path, **wrong)
        fail()
        before = threads(), descriptors()
        memory = resident_kib()
        for _ in range(50):
            fail()
        self.assertEqual((threads(), descriptors()), before)
        self.assertLess(resident_kib() - memory, 4 * 1024)


if __name__ == "__main__":
    main()
