"""Loaders by the thousand leave nothing behind.

PENSTOCK_TEST_CYCLES says how many there are (10000 for the real thing; some
hundreds otherwise), and PENSTOCK_TEST_REPORT=1 prints what was measured.
"""
import gc
import io
import os
import random
import sys
import unittest
from unittest import mock

import alarm
import garbage_test as garbage
import penstock
from dataloader_sets import Bad
from entry import main
from fake_cuda import Gpu
from footprint import footprint, quiet, resident_kib, until_as
from positions import Case, DEVICES

CYCLES = int(os.environ.get("PENSTOCK_TEST_CYCLES", "200"))
REPORT = os.environ.get("PENSTOCK_TEST_REPORT") == "1"
# An allocator keeps some of what it was given back. A loader of these tests
# has some 100 KiB: one that is lost in ten cycles shows.
GROWTH_KIB = 6 * 1024
# The sanitizer's allocator keeps memory in quarantine, on purpose.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")


class Mine(Exception):
    pass


class Cycles(Case):
    def setUp(self):
        quiet()
        self.draw = random.Random(7)

    def many(self, cycle, cycles=CYCLES, warm_up=60):
        """Runs `cycle(number)` so often; what it leaves behind is measured
        after a warm-up."""
        for number in range(warm_up):
            cycle(number)
        gc.collect()
        quiet()
        before, memory = footprint(), resident_kib()
        for number in range(cycles):
            cycle(number)
        after, grown = until_as(before), resident_kib() - memory
        if REPORT:
            print(f"\n{self.id().split('.')[-1]}: {cycles} cycles, RSS "
                  f"{memory} {grown:+d} KiB, threads {before['threads']} -> "
                  f"{after['threads']}, descriptors "
                  f"{len(before['descriptors'])} -> "
                  f"{len(after['descriptors'])}", file=sys.stderr)
        self.assertEqual(after, before)
        if not SANITIZED:
            self.assertLess(grown, GROWTH_KIB)

    def one(self, number, device):
        """A loader is opened, used in one of many ways, and let go."""
        loader = penstock.open(self.path, device=device,
                               loader__workers=number % 3,
                               loader__cache=("ram", "none")[number % 2])
        for batch in loader:
            array = batch.target.numpy()
            if batch.step == number % 4:
                break
        if number % 5 == 0:
            loader.load_state_dict(loader.state_dict())
            next(iter(loader))
        if number % 6 == 0:
            loader.peek()
            next(loader.progress(file=io.StringIO()))
            loader.explain(), loader.shares(), loader._repr_html_()
        if number % 2:
            loader.close()
        return array

    def test_on_each_device(self):
        for device in DEVICES:
            with self.subTest(device=device):
                self.many(lambda number: self.one(number, device))

    def test_of_one_loaders_epochs(self):
        loaders = [self.open(loader__workers=workers) for workers in range(3)]
        self.many(lambda number: next(iter(loaders[number % 3])), 6 * CYCLES)

    def test_under_a_watch(self):
        torch = Gpu().torch()
        with mock.patch.dict(sys.modules, {"torch": torch}):
            def cycle(number):
                torch.profiled = number % 2 == 0
                torch.ranges.clear()
                self.one(number, "cpu")
            self.many(cycle, CYCLES // 4)

    def test_with_an_exception_at_every_stage(self):
        self.many(lambda number: self.fail_at(
            STAGES[number % len(STAGES)], number), CYCLES)

    def fail_at(self, stage, number):
        opening = {"loader__workers": number % 3,
                   "loader__cache": ("ram", "none")[number % 2]}
        if isinstance(stage, dict):
            with self.assertRaises(penstock.Error):
                penstock.open(self.path, **{**opening, **stage})
            return
        loader = penstock.open(self.path, **opening)
        with self.assertRaises((Mine, penstock.Error, TypeError, KeyError)):
            stage(loader)
        if number % 2:
            loader.close()

    def test_let_go_in_every_order(self):
        def cycle(number):
            loader = penstock.open(self.path, loader__workers=number % 3)
            batches = iter(loader)
            batch = next(batches)
            things = [loader, batches, batch, batch.target,
                      batch.target.numpy(), batch.ids, loader.step(),
                      loader.progress(file=io.StringIO()),
                      loader.explain(), next(loader.batches())]
            cycle = {"things": things}
            if number % 3 == 0:
                cycle["self"] = cycle
            del loader, batches, batch
            self.draw.shuffle(things)
            while things and (number % 3 or len(things) > 5):
                things.pop()
                if number % 10 == 0:
                    gc.collect()
        self.many(cycle)

    def test_as_garbage_in_every_kind_of_cycle(self):
        def cycle(number):
            ways = len(garbage.CYCLES)
            garbage.CYCLES[number % ways](garbage.Owner(number // ways % 3))
            if number % 4 == 0:
                gc.collect()
        self.many(cycle)

    def test_whose_functions_fail_again_and_again(self):
        def cycle(number):
            with garbage.loader_of(garbage.Numbers(), number % 3) as loader:
                loader.map(garbage.Owner(0).bad)
                for _ in range(3):
                    with self.assertRaises(penstock.TransformError):
                        for _ in loader.batches():
                            pass
        self.many(cycle)

    def test_of_one_loaders_errors(self):
        loader = garbage.loader_of(garbage.Numbers(), 2)
        loader.map(garbage.Owner(2).bad)
        state = loader.state_dict()

        def cycle(number):
            with self.assertRaises(penstock.TransformError):
                for _ in loader.batches():
                    pass
            if number % 3 == 0:
                loader.load_state_dict(state)
        self.many(cycle, 3 * CYCLES)

    def test_interrupted_anywhere(self):
        alarm.listen(self)
        self.many(lambda number: alarm.rings(
            self.draw.uniform(1e-4, 0.02), lambda: self.one(number, "cpu")))

    def test_interrupted_anywhere_with_functions(self):
        alarm.listen(self)

        def one(number):
            owner = garbage.Owner(number % 3)
            owner.loader = garbage.loader_of(owner, number % 3)
            for batch in owner.loader.map(owner.same):
                batch.numpy()

        def cycle(number):
            alarm.rings(self.draw.uniform(1e-4, 0.02), lambda: one(number))
            if number % 4 == 0:
                gc.collect()
        self.many(cycle)


def raising(*_):
    raise Mine


def in_the_loop(loader):
    for batch in loader:
        array = batch.target.numpy()
        raise Mine


def in_a_step(loader):
    for _ in loader:
        with loader.step():
            raise Mine


def behind_a_line(loader):
    for _ in loader.progress(file=io.StringIO()):
        raise Mine


def in_a_consumer(loader):
    field = loader.peek().target
    with mock.patch.object(sys.modules["numpy"], "asarray", raising):
        array = field.__dlpack__()
        sys.modules["numpy"].asarray(array)


def for_a_device_that_is_none(loader):
    try:
        loader.peek().target.__dlpack__(dl_device=(2, 0))
    except BufferError:
        raise Mine from None


# A dict: what opening refuses; a function: what goes wrong later.
STAGES = (
    {"source__table": "none"}, {"loader__seeed": 1},
    {"source__path": "/nowhere"}, {"device": "gpu"},
    {"loader__batch_size": 10 ** 6}, {"fields__target": {"columns": ["no"]}},
    {"source__where": "no such column"}, {"side": "test"},
    in_the_loop, in_a_step, behind_a_line, in_a_consumer,
    for_a_device_that_is_none,
    lambda loader: loader.load_state_dict({"epoch": -1}),
    lambda loader: loader.load_state_dict({"v": 1, "epoch": 0, "step": 0,
                                           "data": "x", "order": "y"}),
    lambda loader: loader.load_state_dict(object()),
    lambda loader: loader.set_epoch(-1), lambda loader: loader.batches(-1),
    lambda loader: loader.peek()["no"],
    lambda loader: [iterator := iter(loader), iter(loader), next(iterator)],
    lambda loader: [loader.close(), next(iter(loader))],
    lambda loader: [iterator := iter(loader), loader.close(), next(iterator)],
)


class DropIn(unittest.TestCase):
    """penstock.DataLoader: fewer cycles, because each starts processes."""
    setUp, many = Cycles.setUp, Cycles.many

    def one(self, number, workers, kind="processes"):
        loader = penstock.DataLoader(
            Bad(12, bad=({}, {0}, {7}, {11})[number % 4], error=ValueError),
            batch_size=2,
            num_workers=workers, workers=kind,
            persistent_workers=bool(workers and number % 3 == 0))
        try:
            for batch in loader:
                if number % 5 == 0:
                    break
        except ValueError:
            pass
        if number % 2:
            loader.close()

    def test_on_the_loops_own_thread(self):
        self.many(lambda number: self.one(number, 0))

    def test_with_threads(self):
        self.many(lambda number: self.one(number, 2, "threads"))

    def test_with_processes(self):
        self.many(lambda number: self.one(number, 1), max(12, CYCLES // 20),
                  warm_up=8)


if __name__ == "__main__":
    main()
