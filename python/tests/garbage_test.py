"""Loaders in cycles: of functions, sources, iterations and errors that refer
to the loader that has them."""
import gc
import os
import sys
import threading
import time
import traceback
import unittest
import weakref

import numpy

import penstock
from entry import main
from footprint import footprint, quiet, until_as
from positions import run_python

WORKERS = (0, 1, 2)


class Numbers:
    size = 100

    def read(self, ids):
        return {"n": ids}


def loader_of(source, workers, **more):
    return penstock.Loader(source, batch_size=10, num_workers=workers, **more)


class Owner(Numbers):
    """Whatever a cycle is closed by."""

    def __init__(self, workers):
        self.workers = workers

    def same(self, row):
        return dict(row)

    def bad(self, row):
        if row["n"] == 50:
            raise ValueError("50")
        return dict(row)


def by_a_method(owner):
    owner.loader = loader_of(Numbers(), owner.workers).map(owner.same)
    next(iter(owner.loader))


def by_two_methods(owner):
    by_a_method(owner)
    owner.loader.map(owner.bad)


def by_a_source(owner):
    owner.loader = loader_of(owner, owner.workers)


def by_a_closure(owner):
    loader = loader_of(Numbers(), owner.workers)
    loader.map(lambda row: {**row, "rows": numpy.int64(
        loader is not owner)})


def by_an_iteration_alone(owner):
    owner.batches = iter(loader_of(owner, owner.workers))
    next(owner.batches)


def by_a_batch_that_is_kept(owner):
    by_a_method(owner)
    owner.batch = next(iter(owner.loader))
    owner.array = owner.batch.numpy()["n"]


def by_a_line(owner):
    by_a_method(owner)
    owner.line = owner.loader.progress()
    owner.step = owner.loader.step()


def by_an_error_of_this_frame(owner):
    loader = loader_of(Numbers(), owner.workers).map(owner.bad)
    owner.loader = loader
    try:
        list(loader)
    except penstock.TransformError:
        pass


def by_an_error_that_is_kept(owner):
    loader = loader_of(Numbers(), owner.workers).map(owner.bad)
    try:
        list(loader)
    except penstock.TransformError as error:
        owner.error = error


def by_an_error_that_nobody_heard_of(owner):
    owner.loader = loader_of(Numbers(), owner.workers, prefetch_factor=20)
    raised = threading.Event()

    def bad(row):
        if row["n"] == 50:
            raised.set()
            raise ValueError(owner)
        return dict(row)
    owner.loader.map(bad)
    if owner.workers:
        raised.wait()


def by_an_error_of_the_opening(owner):
    from penstock._rows import callables
    try:
        owner.rows = callables.rows_of_source(owner)
        penstock.Loader(owner, batch_size=0)
    except penstock.RequestError as error:
        owner.error = error


CYCLES = (by_a_method, by_two_methods, by_a_source, by_a_closure,
          by_an_iteration_alone, by_a_batch_that_is_kept, by_a_line,
          by_an_error_of_this_frame, by_an_error_that_is_kept,
          by_an_error_that_nobody_heard_of, by_an_error_of_the_opening)


class Garbage(unittest.TestCase):
    def test_is_found_and_leaves_nothing_behind(self):
        quiet()
        for close in CYCLES:
            for workers in WORKERS:
                with self.subTest(close.__name__, workers=workers):
                    before = footprint()
                    owner = Owner(workers)
                    close(owner)
                    watched = weakref.ref(owner)
                    del owner
                    # Threads that were still calling hold on until they end.
                    self.assertEqual(until_as(before), before)
                    gc.collect()
                    self.assertIsNone(watched())

    def test_is_nothing_that_is_still_used(self):
        for workers in WORKERS:
            owner = Owner(workers)
            owner.loader = loader_of(owner, workers).map(owner.same)
            batches = iter(owner.loader)
            del owner
            seen = []
            for batch in batches:
                gc.collect()
                seen += batch.numpy()["n"].tolist()
            self.assertEqual(seen, list(range(100)))

    def test_that_comes_back_has_a_loader_that_is_closed(self):
        back = []

        class Lazarus(Owner):
            def __del__(self):
                back.append(self)
        for workers in WORKERS:
            owner = Lazarus(workers)
            by_a_method(owner)
            del owner
            gc.collect()
            owner = back.pop()
            for use in (lambda: next(iter(owner.loader)), owner.loader.peek,
                        owner.loader.stats, lambda: len(owner.loader),
                        owner.loader.state_dict):
                with self.assertRaises(penstock.RequestError) as raised:
                    use()
                self.assertEqual(raised.exception.code, "loader.closed")
            owner.loader.close()
            self.assertIn("released", repr(owner.loader))

    def test_of_a_generator_that_stands_in_a_step_ends_without_a_word(self):
        def loop(owner):
            for _ in owner.loader:
                with owner.loader.step():
                    yield
        said = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = said.append
        for workers in WORKERS:
            for loop_first in (False, True):
                owner = Owner(workers)
                if loop_first:
                    owner.loop = loop(owner)
                owner.loader = loader_of(owner, workers)
                if not loop_first:
                    owner.loop = loop(owner)
                next(owner.loop)
                del owner
                gc.collect()
        self.assertEqual(said, [])

    def test_is_found_while_a_function_waits_for_who_finds_it(self):
        lock, waits = threading.Lock(), threading.Event()

        def locked(rows):
            if 70 in rows["n"]:
                waits.set()
                with lock:
                    pass
            return dict(rows)
        before = footprint()
        owner = Owner(2)
        owner.loader = loader_of(Numbers(), 2, prefetch_factor=1)
        owner.loader.map(locked, batched=True).map(owner.same)
        with lock:
            batches = iter(owner.loader)
            for _ in range(6):
                next(batches)
            waits.wait()
            watched = weakref.ref(owner)
            del owner, batches
            gc.collect()
        self.assertEqual(until_as(before), before)
        gc.collect()
        self.assertIsNone(watched())

    def test_that_is_young_may_be_the_last_to_know_an_old_loader(self):
        lock, begun = threading.Lock(), threading.Semaphore(0)

        def locked(row):
            begun.release()
            with lock:
                time.sleep(0.001)
            return dict(row)
        quiet()
        for generation in (0, 1):
            before = footprint()
            loader = loader_of(Numbers(), 2, prefetch_factor=50).map(locked)
            gc.collect()
            gc.collect()
            owner = Owner(2)
            owner.own, owner.loader = owner, loader
            owner.batches = iter(loader)
            next(owner.batches)
            del loader
            with lock:  # long before the workers have no more to do
                while begun.acquire(blocking=False):
                    pass
                begun.acquire(timeout=0.1)
                del owner
                gc.collect(generation)
            self.assertEqual(until_as(before), before)

    def test_in_a_forked_process_is_let_go_there_alone(self):
        owner = Owner(2)
        owner.loader = loader_of(owner, 2).map(owner.same)
        child = os.fork()
        if child == 0:
            del owner
            gc.collect()
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(list(owner.loader)), 10)
        owner.loader.close()


class OnALoadersOwnThread(unittest.TestCase):
    maxDiff = None
    START = """
import gc, threading, time, numpy, penstock
gc.disable()
class Numbers:
    size = 100000
    def read(self, ids):  # slower than what is asked for soon
        time.sleep(0.002)
        return {"n": ids}
class Own: pass
go, done = threading.Event(), threading.Event()
def opened(workers):
    loader = penstock.Loader(Numbers(), batch_size=10, num_workers=workers,
                             prefetch_factor=500)
    return loader.map(function, batched=True)
"""
    END = """
go.set()
done.wait()
while threads() > before: time.sleep(0.01)
print("ended")
"""
    COUNT = """
import os
def threads(): return len(os.listdir("/proc/self/task"))
before = threads()
"""

    def run_it(self, text):
        done = run_python(self.START + self.COUNT + text + self.END)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "ended\n", ""))

    def test_garbage_can_be_found(self):
        for workers in (1, 2, 8):
            self.run_it(f"""
def function(rows):
    if go.is_set():
        gc.collect()
        done.set()
    return dict(rows)
own = Own()
own.own, own.loader = own, opened({workers})
own.batches = iter(own.loader)
next(own.batches)
del own
""")

    def test_the_last_reference_can_go(self):
        for workers in (1, 2, 8):
            self.run_it(f"""
def function(rows):
    if go.is_set():
        kept.clear()
        done.set()
    return dict(rows)
kept = [opened({workers})]
kept.append(iter(kept[0]))
next(kept[1])
""")

    def test_it_can_go_with_what_the_thread_calls_its_own(self):
        # threading.local() ends when the thread's time with Python's lock does.
        self.run_it("""
own = threading.local()
def function(rows):
    if go.is_set() and kept:
        own.kept = kept.pop()
        done.set()
    return dict(rows)
kept = [opened(2)]
""")


class KeptErrors(unittest.TestCase):
    def test_keep_no_frame_of_the_loops_that_met_them(self):
        gc.disable()
        self.addCleanup(gc.enable)
        for workers in (1, 2):
            with loader_of(Numbers(), workers) as loader:
                loader.map(Owner(workers).bad)

                def train():
                    watched.append(weakref.ref(owner := Owner(workers)))
                    list(loader)
                    return owner
                watched, lengths = [], []
                for _ in range(3):
                    try:
                        train()
                    except penstock.TransformError as error:
                        lengths.append(len(traceback.extract_tb(
                            error.__traceback__)))
                        self.assertEqual(error.__cause__.args, ("50",))
                        self.assertIn("bad", [
                            frame.name for frame in traceback.extract_tb(
                                error.__cause__.__traceback__)])
                self.assertEqual(len(set(lengths)), 1)
                self.assertEqual([each() for each in watched], [None] * 3)

    def test_are_told_anew_each_time_and_in_full(self):
        with loader_of(Numbers(), 1) as loader:
            loader.map(Owner(1).bad)
            told = []
            for _ in range(2):
                with self.assertRaises(penstock.TransformError) as raised:
                    list(loader.batches())
                told.append(raised.exception)
            self.assertIsNot(*told)
            for part in ("kind", "code", "what", "where", "why", "next",
                         "__cause__"):
                self.assertEqual(getattr(told[0], part),
                                 getattr(told[1], part))
            self.assertEqual(str(told[0]), str(told[1]))


if __name__ == "__main__":
    main()
