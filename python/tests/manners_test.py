"""Ctrl-C at any time, and forks."""
import faulthandler
import gc
import io
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import unittest
from unittest import mock

import alarm
import penstock
from entry import main
from fake_cuda import Gpu
from footprint import footprint, quiet, until_as
from positions import Case, run_python

SLOW = {"loader__cache": "none", "loader__workers": 1, "loader__prefetch": 1,
        "source__round_trip_ms": 1000}


def after(seconds, call):
    timer = threading.Timer(seconds, call)
    timer.start()
    return timer


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
        self.assertLess(self.interrupted(lambda: list(batches)), 5)
        self.assertLessEqual(loader.state_dict()["step"], 1)

    def test_ends_a_wait_behind_a_progress_line(self):
        loader = self.open(**SLOW)
        batches = loader.progress(file=io.StringIO())
        self.assertLess(self.interrupted(lambda: list(batches)), 5)
        self.assertLessEqual(loader.state_dict()["step"], 1)

    def test_ends_a_wait_under_a_watch(self):
        with mock.patch.dict(sys.modules, {"torch": Gpu().torch()}):
            loader = self.open(**SLOW)
            self.assertLess(self.interrupted(lambda: list(loader)), 5)

    def test_ends_the_opening(self):
        self.assertLess(self.interrupted(lambda: self.open(**SLOW)), 2.5)

    def test_ends_a_peek_when_its_rows_are_there(self):
        loader = self.open(**{**SLOW, "source__round_trip_ms": 300})

        def peek():
            while True:
                loader.peek()
        self.assertLess(self.interrupted(peek), 5)
        self.assertEqual(loader.peek().step, 0)

    def test_in_close_is_heard_once_it_is_closed(self):
        loader = self.open(**{**SLOW, "source__round_trip_ms": 300})
        batches = loader.batches()
        taker = threading.Thread(target=lambda: self.assertRaises(
            penstock.Error, list, batches))
        taker.start()

        def close():
            while True:
                loader.close()
        self.assertLess(self.interrupted(close), 5)
        taker.join()
        with self.refused(penstock.RequestError, "loader.closed"):
            next(batches)

    def test_other_threads_run_while_one_waits(self):
        loader = self.open(**{**SLOW, "source__round_trip_ms": 400})
        turns = 0
        taker = threading.Thread(target=lambda: next(loader.batches()))
        taker.start()
        while taker.is_alive():
            turns += 1
            time.sleep(0.001)
        self.assertGreater(turns, 20)

    def one_life(self, number, opened):
        with penstock.open(self.path, loader__workers=number % 3,
                           loader__cache=("ram", "none")[number % 2],
                           source__round_trip_ms=number % 4) as loader:
            opened.append(loader)
            loader.peek()
            for batch in loader.progress(file=io.StringIO()):
                batch.target.numpy()
                with loader.step():
                    pass
            loader.load_state_dict(loader.state_dict())
            next(iter(loader))
            loader.explain()

    def test_at_any_time_leaves_nothing_behind(self):
        # Wherever in a loader's life the alarm rings.
        alarm.listen(self)
        faulthandler.dump_traceback_later(120, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        draw = random.Random(7)
        self.one_life(1, [])
        quiet()
        before = footprint()
        began = time.monotonic()
        self.one_life(2, [])
        whole = time.monotonic() - began
        interrupted = 0
        for number in range(150):
            opened = []
            interrupted += alarm.rings(
                draw.uniform(0.0005, 1.2 * whole),
                lambda: self.one_life(number, opened))
            for loader in opened:  # an interrupted close() can be repeated
                loader.close()
        del opened
        self.assertGreater(interrupted, 30)
        self.assertEqual(until_as(before), before)


class Forks(Case):
    def child(self, work):
        """Runs `work` in a fork; its exit code, which is 0 for True."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if work() else 2
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_a_child_is_told_and_the_parent_goes_on(self):
        loader = self.open(loader__workers=2)
        batches = loader.batches()
        batch = next(batches)
        field, array = batch.target, batch.target.numpy()
        step = loader.step()
        uses = (lambda: next(batches), loader.state_dict, lambda: len(loader),
                lambda: iter(loader), loader.peek, loader.stats,
                loader.explain, loader.shares, loader.progress,
                step.__enter__, lambda: loader.set_epoch(3),
                lambda: loader.load_state_dict({}), lambda: loader.plan,
                lambda: loader.statistics,
                lambda: batch["target"], lambda: batch.target,
                lambda: batch.numpy(), lambda: list(batch), batch.items,
                batch.values, lambda: batch.ids, lambda: batch.row_keys,
                field.numpy, field.__dlpack__,
                lambda: field.__array_interface__)

        def work():
            for number, use in enumerate(uses):
                try:
                    use()
                except penstock.RequestError as error:
                    if error.code != "loader.forked":
                        os.write(2, f"use {number}: {error.code}\n".encode())
                        return False
                else:
                    os.write(2, f"use {number} was not refused\n".encode())
                    return False
            return True
        self.assertEqual(self.child(work), 0)
        self.assertEqual(array.shape, batch.target.shape)
        self.assertEqual(next(batches).step, 1)

    def test_a_child_lets_everything_go_and_opens_its_own(self):
        loader = self.open(loader__workers=2)
        kept = {"loader": loader, "batches": loader.batches()}
        kept["batch"] = next(kept["batches"])
        kept["field"] = kept["batch"].target
        kept["array"] = kept["field"].numpy()

        def work():
            repr(kept["loader"]), kept["loader"]._repr_html_()
            kept["loader"].close()
            kept.clear()
            gc.collect()
            own = penstock.open(self.path, loader__workers=2)
            works = len(list(own)) == len(own)
            own.close()
            return works
        self.assertEqual(self.child(work), 0)
        self.assertEqual(next(kept["batches"]).step, 1)

    def test_a_child_of_multiprocessing_is_told(self):
        loader = self.open(loader__workers=2)
        context = multiprocessing.get_context("fork")
        told = context.Queue()

        def work():
            try:
                next(iter(loader))
            except penstock.RequestError as error:
                told.put((error.code, error.next))
        process = context.Process(target=work)
        process.start()
        code, advice = told.get(timeout=30)
        process.join()
        self.assertEqual((process.exitcode, code), (0, "loader.forked"))
        self.assertIn("spawn", advice)
        told.close()

    def test_a_child_that_ends_as_a_program_does_says_nothing(self):
        done = run_python(
            "import os, sys, penstock\n"
            f"loader = penstock.open({str(self.path)!r}, loader__workers=2)\n"
            "batches = loader.batches(); batch = next(batches)\n"
            "field = batch.target; array = field.__dlpack__()\n"
            "if os.fork() == 0: sys.exit(0)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "", ""))


class Together(Case):
    def test_workers_of_the_drop_in_start_beside_a_loader_that_runs(self):
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


if __name__ == "__main__":
    main()
