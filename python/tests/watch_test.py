"""penstock.watch: what limits a loop that is there already. The loops are those
of torch's DataLoader, each with a known fault."""

import concurrent.futures
import io
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy

import penstock
from penstock._watch import timed_items
from positions import has, run_python
from entry import main

FORK = multiprocessing.get_context("fork")


def compute(seconds):
    """On a processor until its clock has gone on so far."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Items:
    """Each item is what `make` takes, then its own number."""

    def __init__(self, length, make=lambda index: None):
        self.length, self.make = length, make

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.make(index)
        return numpy.full(4, index, numpy.float32)


def slow_start(worker):
    time.sleep(0.3)


class Locked:
    def __init__(self, seconds):
        self.lock, self.seconds = FORK.Lock(), seconds

    def __call__(self, index):
        with self.lock:
            time.sleep(self.seconds)


class InItsOwnThread:
    """Which each process has for itself."""

    def __init__(self, work, seconds):
        self.work, self.seconds, self.thread = work, seconds, None

    def __call__(self, index):
        if self.thread is None:
            self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.thread.submit(self.work, self.seconds).result()


class ItemClock:
    """Stands for the module `time` where items are timed, in each process by
    itself: it goes on only when an item moves `now`."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def thread_time(self):
        return 0.0

    process_time = thread_time


class WatchOfAnyLoop(unittest.TestCase):
    def watched(self, loop, body=lambda: None, **options):
        self.file = io.StringIO()
        watched = penstock.watch(loop, file=self.file, **options)
        for batch in watched:
            body()
        return watched

    def test_a_generator_that_is_slow(self):
        def slow():
            for number in range(20):
                time.sleep(0.005)
                yield [number] * 3
        told = self.watched(slow()).explain()
        self.assertEqual(told.limit, "data")
        self.assertIn("penstock: ", self.file.getvalue())
        self.assertIn("the loop waited", self.file.getvalue())

    def test_a_loop_that_is_slow(self):
        told = self.watched([[1]] * 20, lambda: time.sleep(0.005)).explain()
        self.assertEqual((told.limit, told.actions), ("compute", []))

    def test_too_few_batches_say_nothing(self):
        self.assertEqual(self.watched([1, 2]).explain().limit, "unknown")
        self.assertEqual(self.file.getvalue(), "")

    def test_is_told_once_and_again_when_asked(self):
        watched = penstock.watch([1] * 20, file=(file := io.StringIO()),
                                 after_s=0.0)
        for _ in range(3):
            self.assertEqual(list(watched), [1] * 20)
        self.assertEqual(file.getvalue().count("penstock: "), 1)
        self.assertEqual(watched.report()["verdict"]["limit"],
                         watched.explain().limit)

    def test_what_the_loop_raises_and_breaks_stays_its_own(self):
        def broken():
            yield 1
            raise ValueError("mine")
        with self.assertRaisesRegex(ValueError, "mine"):
            list(penstock.watch(broken()))
        watched = penstock.watch([1] * 30, file=io.StringIO())
        for _ in watched:
            break
        with self.assertRaises(KeyError):
            for _ in watched:
                raise KeyError
        self.assertEqual(len(list(watched)), 30)
        self.assertEqual(len(watched), 30)

    def test_a_loop_inside_of_the_loop_is_not_counted_twice(self):
        watched = penstock.watch([1, 2], file=io.StringIO())
        self.assertEqual([(a, b) for a in watched for b in watched],
                         [(1, 1), (1, 2), (2, 1), (2, 2)])

    def test_a_generator_has_no_workers_to_set(self):
        def slow():
            for number in range(20):
                time.sleep(0.005)
                yield [number] * 3
        told = self.watched(slow(), lambda: time.sleep(0.005)).explain()
        self.assertEqual((told.limit, told.actions), ("data", []))
        self.assertIn("penstock.DataLoader", told.no_action)

    def test_a_loop_that_is_left_by_break_is_told_the_verdict(self):
        watched = penstock.watch(iter(range(100)), file=(file := io.StringIO()))
        for number in watched:
            if number == 20:
                break
        self.assertEqual(file.getvalue(), "")  # it may go on
        del watched
        self.assertEqual(file.getvalue().count("penstock: "), 1)

    def test_the_verdict_is_told_at_the_end_and_not_after_each_epoch(self):
        watched = penstock.watch([1] * 20, file=(file := io.StringIO()))
        for _ in range(3):
            list(watched)
        self.assertEqual(file.getvalue(), "")
        del watched
        self.assertEqual(file.getvalue().count("penstock: "), 1)
        for _ in penstock.watch([1] * 20, file=(file := io.StringIO())):
            self.assertEqual(file.getvalue(), "")
        self.assertEqual(file.getvalue().count("penstock: "), 1)

    def test_the_end_of_the_program_is_an_end(self):
        done = run_python("import penstock\n"
                          "watched = penstock.watch([1] * 20)\n"
                          "for _ in range(3): list(watched)\n"
                          "print('done')")
        self.assertEqual(done.stdout, "done\n")
        self.assertEqual(done.stderr.count("penstock: "), 1)

    def test_what_is_told_early_is_told_again_where_the_loop_goes_on(self):
        watched = penstock.watch([1] * 20, file=(file := io.StringIO()),
                                 after_s=0.05)
        for _ in watched:
            time.sleep(0.02)
        self.assertEqual(file.getvalue().count("penstock: "), 1)
        for _ in watched:
            time.sleep(0.02)
        del watched
        self.assertEqual(file.getvalue().count("penstock: "), 2)

    def test_the_end_is_told_though_the_loop_went_on_for_little(self):
        for _ in penstock.watch([1] * 20, file=(file := io.StringIO()),
                                after_s=0.3):
            time.sleep(0.02)
        self.assertEqual(file.getvalue().count("penstock: "), 2)
        self.assertIn("20 batches", file.getvalue())

    def test_what_is_watched_already_is_watched_once(self):
        watched = penstock.watch([1] * 20, file=(file := io.StringIO()))
        self.assertIs(penstock.watch(watched), watched)
        list(penstock.watch(watched))
        del watched
        self.assertEqual(file.getvalue().count("penstock: "), 1)

    def test_a_long_pause_between_two_batches_is_no_step(self):
        pauses = iter([0.002] * 30 + [0.4] + [0.002] * 29)
        told = self.watched([[1]] * 60, lambda: time.sleep(next(pauses)))
        report = told.report()
        self.assertEqual(report["pauses"]["count"], 1)
        self.assertGreater(report["pauses"]["seconds"], 0.3)
        self.assertLess(told._penstock_watch._meter.loop_s, 0.35)
        self.assertIn("1 pause", str(told.explain()))

    def test_what_comes_in_turn_is_no_pause(self):
        turns = iter(([0.001] * 9 + [0.06]) * 6)
        watched = self.watched([[1]] * 60, lambda: time.sleep(next(turns)))
        self.assertLessEqual(watched.report()["pauses"]["count"], 2)

    def test_the_longest_waits_and_the_machine_are_in_the_report(self):
        def slow():
            for number in range(20):
                time.sleep(0.1 if number == 12 else 0)
                yield number
        report = self.watched(slow()).report()
        self.assertEqual(report["worst_steps"][0]["batch"], 12)
        self.assertGreater(report["worst_steps"][0]["wait_ms"], 90)
        self.assertLessEqual(len(report["worst_steps"]), 5)
        self.assertIn("memory_percent", report["machine"])

    def test_a_fork_goes_on_with_the_loop_and_says_nothing(self):
        file, numbers = io.StringIO(), []
        watched, (read, write) = penstock.watch(range(40), file=file), os.pipe()
        child = None
        for number in watched:
            numbers.append(number)
            if number == 20:
                child = os.fork()
        if child == 0:
            os.write(write, f"{len(numbers)} {file.getvalue()}".encode())
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.read(read, 100), b"40 ")
        os.close(read), os.close(write)
        del watched
        self.assertEqual(file.getvalue().count("penstock: "), 1)

    def test_a_file_that_is_closed_ends_no_loop(self):
        file = io.StringIO()
        file.close()
        self.assertEqual(list(penstock.watch([1] * 20, file=file)), [1] * 20)

    def test_our_own_loaders_tell_themselves(self):
        with penstock.Loader({"x": numpy.arange(100.0)},
                             batch_size=10) as loader:
            watched = self.watched(loader)
            self.assertEqual(str(watched.explain()), str(loader.explain()))
        loader = penstock.DataLoader(Items(40), batch_size=4)
        self.watched(loader)  # and is dropped at once
        self.assertIn("penstock: ", self.file.getvalue())

    def test_so_do_iterations_of_our_own_loaders(self):
        quiet = io.StringIO()
        with penstock.Loader({"x": numpy.arange(100.0)},
                             batch_size=10) as loader:
            for begin in (lambda: loader.batches(10), loader.__iter__,
                          lambda: loader.progress(file=quiet)):
                told = self.watched(begin()).explain()
                self.assertEqual(str(told), str(loader.explain()))
                self.assertIn("stages", told.report)
        loader = penstock.DataLoader(Items(80), batch_size=4)
        for begin in (lambda: loader.progress(file=quiet), loader.__iter__):
            told = self.watched(begin(), lambda: time.sleep(0.001)).explain()
            # What else the machine does may have changed since then.
            self.assertEqual(told.because.partition(";")[0],
                             loader.explain().because.partition(";")[0])


@unittest.skipUnless(has("torch"), "torch is not installed")
class WatchOfTorch(unittest.TestCase):
    def told(self, dataset, body=lambda: None, epochs=1, **options):
        import torch.utils.data
        options.setdefault("batch_size", 4)
        if options.get("num_workers"):
            options.setdefault("multiprocessing_context", FORK)
        loader = torch.utils.data.DataLoader(dataset, **options)
        self.watched = penstock.watch(loader, file=io.StringIO())
        self.batches = []
        for _ in range(epochs):
            for batch in self.watched:
                self.batches.append(batch)
                body()
        return self.watched.explain()

    def test_batches_are_those_of_torch(self):
        import torch.utils.data
        for options in ({}, {"num_workers": 2}, {"shuffle": True},
                        {"batch_size": None}, {"drop_last": True},
                        {"num_workers": 1, "persistent_workers": True}):
            options = {"batch_size": 4, **options}
            if options.get("num_workers"):
                options["multiprocessing_context"] = FORK
            loader = torch.utils.data.DataLoader(Items(22), **options)
            watched = penstock.watch(loader, file=io.StringIO())
            self.assertEqual(len(watched), len(loader))
            for _ in range(2):
                torch.manual_seed(3)
                plain = list(loader)
                torch.manual_seed(3)
                seen = list(watched)
                self.assertEqual(len(plain), len(seen))
                for one, other in zip(plain, seen):
                    self.assertTrue(torch.equal(one, other), options)

    def test_workers_that_are_started_again_in_each_epoch(self):
        """Of which torch says nothing, and which it does unless it is told."""
        told = self.told(Items(40), lambda: time.sleep(0.002), epochs=4,
                         num_workers=1, worker_init_fn=slow_start)
        self.assertEqual((told.limit, told.stage),
                         ("data", "start of the workers"))
        self.assertEqual(
            [(action["knob"], action["to"]) for action in told.actions
             if action["knob"] == "persistent_workers"],
            [("persistent_workers", True)])
        report = self.watched.report()
        self.assertEqual(report["epoch_starts"]["count"], 4)
        self.assertGreater(report["epoch_starts"]["seconds"], 4 * 0.3)
        self.assertLess(report["au"], 0.5)
        parts = report["parts"]
        self.assertAlmostEqual(parts["compute"] + parts["wait_data"], 1)
        # Three of four starts would be spared, and little else takes time.
        self.assertGreater(told.actions[0]["predicted_gain"], 0.9)
        self.assertIn("persistent_workers from false to true", str(told))
        told = self.told(Items(40), epochs=3, num_workers=1,
                         worker_init_fn=slow_start, persistent_workers=True)
        self.assertNotIn("persistent_workers", str(told))

    def test_iterable_data_sets_and_those_that_take_many_indices(self):
        import torch.utils.data

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(numpy.arange(20.0))

        class Many(Items):
            def __getitems__(self, indices):
                return [self[index] for index in indices]

        for dataset in (Stream(), Many(20)):
            for workers in (0, 1):
                self.told(dataset, num_workers=workers)
                self.assertEqual(len(self.batches), 5)
                self.assertGreater(len(self.watched._penstock_watch._made.seconds), 0)

    def test_batches_that_are_quick_are_timed_in_their_turn(self):
        """And stand for those that were not: all items are counted."""
        timed = []

        class Counted(Items):
            def __getitem__(self, index):
                timed.append(sys._getframe(1).f_code.co_name == "make")
                return index

        told = self.told(Counted(4000))
        self.assertEqual(len(self.batches), 1000)
        self.assertLess(sum(timed), 1000)
        self.assertGreater(sum(timed), 4 * 64)  # the first ones all are
        made = self.watched._penstock_watch._made
        self.assertLess(abs(made.items - 4000), 4 * 32)  # after the last one
        self.assertGreater(len(made.seconds), 2000)
        self.assertIn(told.limit, ("data", "compute"))

    def test_what_was_skipped_counts_for_as_long_as_it_took(self):
        from penstock._watch.timed_items import Made

        def batch(seconds, skipped):
            made = Made()
            made.add_items([0.0, *(seconds * i / 4 for i in range(1, 5))], 0.0,
                           str)
            made.skipped.extend(skipped)
            return made

        for own, skipped in ((0.004, [0.4]), (0.4, [0.004]), (0.4, [0.4, 0.4])):
            made = Made()
            for _ in range(100):
                made.add(batch(0.004, [0.004] * 31))
            made.add(batch(own, skipped))
            slow = [*skipped, own].count(0.4)
            self.assertEqual(made.items, 4 * (3200 + len(skipped) + 1))
            self.assertAlmostEqual(made.item_s, 12.8 + own + sum(skipped))
            self.assertEqual(len(made.batch_seconds), 3201 + len(skipped))
            self.assertEqual(sum(s > 0.3 for s in made.batch_seconds), slow)
            self.assertEqual(len(made.seconds), made.items)
            self.assertAlmostEqual(sum(made.seconds), made.item_s)
            # Where it was timed, each of its items took a quarter.
            self.assertEqual(sum(s > 0.3 for s in made.seconds),
                             skipped.count(0.4))

    def test_a_fork_of_the_loop_can_end(self):
        ended = subprocess.run([sys.executable, "-c", """
import os, signal, sys
import penstock
from torch.utils.data import DataLoader

for number, _ in enumerate(penstock.watch(DataLoader(range(200)))):
    if number == 20:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            sys.exit(7)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""], stderr=subprocess.DEVNULL, timeout=100)
        self.assertEqual(ended.returncode, 7)

    def test_no_workers_and_items_that_compute(self):
        told = self.told(Items(60, lambda i: compute(0.005)),
                         lambda: time.sleep(0.005))
        self.assertEqual((told.limit, told.stage), ("data", "__getitem__"))
        self.assertIn("the loop itself fetches the items", told.cause)
        self.assertIn("it computes for", told.cause)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(told.actions[0]["knob"], "num_workers")

    def test_no_workers_and_items_that_wait(self):
        told = self.told(Items(60, lambda i: time.sleep(0.005)))
        self.assertIn("sleeps", told.cause)

    def test_a_lock_that_all_workers_share(self):
        told = self.told(Items(120, Locked(0.005)), num_workers=2)
        self.assertEqual(told.stage, "__getitem__")
        self.assertIn("waits for a lock", told.cause)

    def test_a_thread_of_each_worker_is_no_lock_that_they_share(self):
        told = self.told(Items(120, InItsOwnThread(time.sleep, 0.005)),
                         num_workers=2)
        self.assertIn("another thread of its own process", told.cause)
        self.assertEqual(told.actions[0]["knob"], "num_workers")
        self.assertGreater(told.actions[0]["to"], 2)

    def test_what_threads_of_workers_compute_needs_processors(self):
        told = self.told(Items(120, InItsOwnThread(compute, 0.005)),
                         num_workers=2)
        for action in told.actions:
            self.assertLessEqual(action["to"], len(os.sched_getaffinity(0)))

    def test_one_slow_item_in_200(self):
        """How long items take is told by a clock of their own, which other
        work on the machine does not change; the loop really waits."""
        clock = ItemClock()

        def make(index):
            slow = index % 200 == 99
            time.sleep(0.3 if slow else 0)
            clock.now += 0.6 if slow else 0.001

        with unittest.mock.patch.object(timed_items, "time", clock):
            told = self.told(Items(400, make), num_workers=2)
        self.assertEqual(told.limit, "order")
        self.assertRegex(told.cause,
                         r"one item in 200 .* median of 1 ms, the longest, "
                         r"dataset\[\d?99\], 600 ms")
        worst = self.watched.report()["worst_steps"][0]
        self.assertRegex(worst["item"], r"dataset\[\d?99\]")
        self.assertEqual(worst["item_ms"], 600)

    def test_a_fat_collate(self):
        def fat(items):
            compute(0.02)
            return items
        for workers in (0, 2):
            told = self.told(Items(100), collate_fn=fat, num_workers=workers)
            self.assertEqual(told.stage, "collate_fn", told.cause)

    def test_a_loop_that_computes(self):
        """And whose worker is ahead of it, however busy the machine is: a step
        ends when the batch after the next one has been made. Batches are no
        tensors, for which the loop would have to ask the worker's process."""
        made, steps = FORK.Value("i", 0), 0

        def make(index):
            with made.get_lock():
                made.value += 1

        def step():
            nonlocal steps
            steps += 1
            compute(0.02)
            while made.value < min(60, 4 * (steps + 2)):
                time.sleep(0.001)

        told = self.told(Items(60, make), step, num_workers=1,
                         prefetch_factor=4, collate_fn=list)
        self.assertEqual((told.limit, told.stage), ("compute", None))

    def test_what_our_loader_would_give_is_predicted(self):
        told = self.told(SleepingItems(80), lambda: time.sleep(0.002))
        drop_in = told.report["drop_in"]
        self.assertIs(drop_in["prediction"], True)
        # More of them: all its workers begin with a batch.
        ours = penstock.DataLoader(SleepingItems(400), batch_size=4,
                                   num_workers=drop_in["workers"])
        samples, began = 0, None
        for batch in ours:
            if began is None:
                began = time.perf_counter()
            else:
                samples += len(batch)
            time.sleep(0.002)
        measured = samples / (time.perf_counter() - began)
        # A wide margin: this machine may have other work to do.
        self.assertLess(drop_in["samples_per_s"], 2 * measured)
        most = drop_in["up_to"] or drop_in
        self.assertGreater(most["samples_per_s"], measured / 2)
        self.assertEqual(most["gain"] >= 0.02,
                         "instead: predicted" in str(told))

    def test_nothing_is_predicted_where_nothing_is_measured(self):
        told = self.told(Items(8))
        self.assertIsNone(told.report["drop_in"])

    def test_a_pipe_and_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "pipe")
            os.mkfifo(path)

            def feed():
                with open(path, "wb", buffering=0) as to:
                    for _ in range(40):
                        time.sleep(0.01)
                        to.write(b"x")
            thread = threading.Thread(target=feed)
            thread.start()
            with open(path, "rb", buffering=0) as source:
                told = self.told(Items(40, lambda i: source.read(1)),
                                 batch_size=1)
            thread.join()
        self.assertIn("replies from the network", told.cause)

    def test_an_item_that_fails_stays_the_users_error(self):
        def fails(index):
            if index == 30:
                raise KeyError("no such row")
        for workers in (0, 1):
            with self.assertRaisesRegex(KeyError, "no such row"):
                self.told(Items(60, fails), num_workers=workers)

    def test_worker_init_fn_sees_the_users_data_set(self):
        import torch.utils.data

        def init(worker):
            torch.utils.data.get_worker_info().dataset.make = \
                lambda index: time.sleep(0)
        self.told(Items(8, None), num_workers=1, worker_init_fn=init)
        self.assertEqual(len(self.batches), 2)

    def test_spawned_workers_get_what_they_need(self):
        self.told(SleepingItems(8), num_workers=1,
                  multiprocessing_context="spawn")
        self.assertEqual(len(self.batches), 2)
        self.assertGreater(self.watched._penstock_watch._made.item_s, 0.07)

    def test_the_loader_itself_stays_as_it_was(self):
        import torch.utils.data
        dataset = Items(8)
        loader = torch.utils.data.DataLoader(dataset, batch_size=4)
        list(penstock.watch(loader, file=io.StringIO()))
        self.assertIs(loader.dataset, dataset)
        self.assertIs(type(next(iter(loader))), torch.Tensor)


class SleepingItems(Items):
    """Can be pickled."""

    def __init__(self, length):
        super().__init__(length, None)

    def __getitem__(self, index):
        time.sleep(0.01)
        return numpy.zeros(2)


if __name__ == "__main__":
    main()
