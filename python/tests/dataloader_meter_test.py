"""What stats() and explain() say."""
import json
import os
import pathlib
import tempfile
import time
import unittest
from unittest import mock

from dataloader_case import Case
from dataloader_sets import Busy, Locked, Numbers, Slow
from entry import main
from fake_cuda import Gpu
from penstock._dataloader.fetching import Bad
from penstock._dataloader import meter as meters
from penstock._dataloader.looks import Looks, waits_for_process
from penstock._dataloader.meter import Meter
from penstock._dataloader.transfer_cost import (NO_TRANSFER, TransferCost,
                                               measured_transfer)
from penstock.errors import TransformError

KNOWN = json.loads((pathlib.Path(__file__).parent
                    / "dataloader_known.json").read_text())


class Stats(Case):
    def test_a_slow_data_set_is_the_loaders_fault(self):
        loader = self.loader(Busy(60, seconds=0.002), batch_size=4,
                             num_workers=1)
        for _ in loader:
            pass
        stats = loader.stats()
        self.assertEqual((stats["batches"], stats["items"]), (15, 60))
        self.assertEqual(stats["limits"], "loader")
        self.assertGreater(stats["wait_share"], 0.5)
        self.assertGreaterEqual(stats["worker_s_per_item"], 0.002)
        self.assertGreater(stats["first_batch_s"], 0.008)
        told = loader.explain()
        self.assertEqual((told.limit, told.stage), ("data", None))
        self.assertAlmostEqual(told.au + stats["wait_share"], 1)
        self.assertRegex(told.because, r"^the loop waited \d+% .*first batch "
                         r"after \d+ ms\); 1 worker\(s\) needed \d.* per item")

    def test_a_slow_loop_is_the_loops_fault(self):
        loader = self.loader(Numbers(60), batch_size=4, num_workers=1)
        for _ in loader:
            time.sleep(0.1)
        self.assertEqual(loader.stats()["limits"], "loop")
        told = loader.explain()
        self.assertEqual((told.limit, told.actions), ("compute", []))
        self.assertIn("the input keeps up", str(told))
        self.assertRegex(str(told), "nothing to set: without any waiting the "
                         r"loop would be \d.*% faster")

    def on_gpu(self, item_s, step_ms, steps=30):
        """A loop that queues its steps on a GPU, and never waits for it."""
        gpu = Gpu()
        with mock.patch.dict("sys.modules", {"torch": gpu.torch()}):
            meter = Meter()
            for step in range(steps):
                asked = meter.asked()
                time.sleep(item_s)
                meter.answered(asked, 4, step == 0)
                gpu.run(step_ms)
            meter.paused()
            return meter.explain(0), meter

    def test_waiting_while_the_gpu_works_is_no_fault(self):
        told, meter = self.on_gpu(0.005, step_ms=20)
        self.assertEqual(told.limit, "compute")
        self.assertGreater(told.au, 0.9, "the GPU was never without work")
        self.assertAlmostEqual(meter.wait_s + meter.loop_s, 29 * 0.02, delta=0.1)

    def test_a_gpu_that_waits_is_the_loaders_fault(self):
        told, meter = self.on_gpu(0.010, step_ms=2)
        self.assertEqual(told.limit, "data")
        self.assertLess(told.au, 0.4)

    def test_the_start_of_an_epoch_is_no_waiting(self):
        gpu, meter = Gpu(), Meter()
        with mock.patch.dict("sys.modules", {"torch": gpu.torch()}):
            for _ in range(3):
                for step in range(6):
                    asked = meter.asked()
                    time.sleep(0.1 if step == 0 else 0)
                    meter.answered(asked, 4, step == 0)
                    gpu.run(5)
                meter.asked()
                meter.paused()
                time.sleep(0.05)
            told = meter.explain(0)
        self.assertGreater(told.au, 0.9)

    def test_time_that_is_no_steps_is_left_out(self):
        gpu, meter = Gpu(), Meter()
        with mock.patch.dict("sys.modules", {"torch": gpu.torch()}):
            for step in range(12):
                meter.answered(meter.asked(), 4, step == 0)
                if step in (4, 6):
                    time.sleep(0.1)
                    meter.restart_step()
                gpu.run(5)
                time.sleep(0.005)
            meter.explain(0)
        self.assertEqual(meter.gpu_steps, 11, "the last one goes on")
        self.assertLess(meter.wait_s + meter.loop_s, 0.15)

    def test_a_worker_makes_what_the_loop_made_while_its_gpu_worked(self):
        gpu, meter = Gpu(), Meter()
        with mock.patch.dict("sys.modules", {"torch": gpu.torch()}):
            for step in range(12):
                asked = meter.asked()
                time.sleep(0.02)
                meter.answered(asked, 4, step == 0)
                gpu.run(15)
            meter.transfer = NO_TRANSFER
            told = meter.explain(0)
        self.assertEqual(told.limit, "data")
        for action in told.actions:
            self.assertGreaterEqual(action["to"], 2, "one takes as long")

    def test_a_gpu_that_waits_within_the_steps_is_the_loops_fault(self):
        gpu, meter = Gpu(), Meter()
        with mock.patch.dict("sys.modules", {"torch": gpu.torch()}):
            for step in range(60):
                meter.answered(meter.asked(), 4, step == 0)
                gpu.run(1)
                time.sleep(0.004)  # what the loop does within the step
            told = meter.explain(0)
            self.assertEqual(told.limit, "compute", "no driver was asked")
            self.assertEqual(meter.gpu_steps, 59)
            self.assertGreater(meter.gpu_drained, 53, "if nobody else works")
            meter._gpu_use = [0.1, 0.12, 0.11]
            told = meter.explain(0)
        self.assertEqual(told.limit, "host")
        self.assertIn("busy for only 11 % of the time", told.cause)

    def test_nothing_is_said_of_a_few_batches(self):
        loader = self.loader(Numbers(8), batch_size=4)
        self.assertIsNone(loader.stats()["first_batch_s"])
        list(loader)
        self.assertEqual(loader.stats()["limits"], "unknown")
        told = loader.explain()
        self.assertEqual((told.limit, told.au), ("unknown", None))
        self.assertRegex(str(told), "n/a.*\n.*too few .*\n.*there were 2 "
                         ".*\n.*take more batches")

    def test_without_workers_their_rate_is_unknown(self):
        loader = self.loader(Busy(40, seconds=0.001), batch_size=4)
        for _ in loader:
            pass
        self.assertIsNone(loader.stats()["items_per_s_of_a_worker"])

    def test_moving_a_batch_is_measured_where_the_loop_waits(self):
        for seconds, loop_s, measures in ((0.002, 0, True), (0, 0.02, False)):
            loader = self.loader(Busy(60, seconds=seconds), batch_size=4)
            for _ in loader:
                time.sleep(loop_s)
            told = loader.explain().because
            self.assertEqual("moved a batch" in told, measures, told)

    def test_threads_move_nothing(self):
        loader = self.loader(Busy(60, seconds=0.002), batch_size=4,
                             workers="threads")
        list(loader)
        self.assertNotIn("moving a batch", loader.explain().because)

    def test_workers_tell_their_time_on_processors(self):
        loader = self.loader(Busy(60, seconds=0.002), batch_size=4,
                             num_workers=1)
        list(loader)
        meter = loader._progress.meter
        self.assertGreater(meter.worker_cpu_s, 0)
        self.assertLess(meter.worker_cpu_s, 1.5 * meter.worker_s)
        self.assertGreater(meter.blocked_s, 0)
        self.assertLessEqual(meter.blocked_s, meter.wait_s)


class Waiting(Case):
    def told(self, dataset, **arguments):
        loader = self.loader(dataset, batch_size=4, **arguments)
        with mock.patch("os.sched_getaffinity", lambda _: range(2)):
            list(loader)
            return loader.explain()

    def test_items_that_wait_may_have_more_workers_than_processors(self):
        for workers, kind in ((0, "auto"), (1, "processes"), (2, "processes"),
                              (1, "threads"), (2, "threads")):
            with self.subTest(workers=workers, kind=kind):
                told = self.told(Slow(48, seconds=0.02),
                                 num_workers=workers, workers=kind)
                if "needed a processor" not in told.because:
                    self.skipTest("the kernel tells nothing of threads")
                (action,) = told.actions
                self.assertEqual((action["knob"], action["from"]),
                                 ("num_workers", workers))
                self.assertGreater(action["to"], 2)
                self.assertIn("which mostly wait", action["cost"])

    def test_items_that_compute_may_not(self):
        for workers in (0, 1, 2):
            told = self.told(Busy(80, seconds=0.005), num_workers=workers)
            for action in told.actions:
                self.assertLessEqual(action["to"], 2)

    def test_workers_that_wait_for_one_lock_get_no_more_of_them(self):
        with tempfile.NamedTemporaryFile() as file:
            told = self.told(Locked(240, seconds=0.004, path=file.name),
                             num_workers=4)
        if waits_for_process(os.getpid()) is None:
            self.skipTest("the kernel tells nothing of processes")
        self.assertEqual(told.actions, [])
        self.assertIn("wait for a lock that another worker", told.cause)


class Rehearsal(unittest.TestCase):
    def test_a_larger_batch_takes_longer(self):
        small, large = (measured_transfer(bytearray(size), 4)
                        for size in (100, 1 << 26))
        self.assertIsNone(large.why_not)
        self.assertGreater(large.worker_s, small.worker_s)
        self.assertGreater(small.loop_s, 0)

    def test_processor_time_is_that_of_what_counts(self):
        def work(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass

        meter = Meter()
        for first in (True, False, False):
            asked = meter.asked()
            work(0.03)  # the wait for a batch; the first one does not count
            meter.answered(asked, 1, first)
            work(0.03)  # a step
        meter.asked()
        meter.paused()
        work(0.03)  # between two epochs
        self.assertGreater(meter.cpu_s, 5 * 0.03 - 0.005)
        self.assertLess(meter.cpu_s, 6 * 0.03)

    def test_what_cannot_be_pickled_is_said_so(self):
        transfer = measured_transfer(lambda: 0, 4)
        self.assertEqual(transfer[:2], (0, 0))
        self.assertIn("pickle", transfer.why_not)


class Advice(unittest.TestCase):
    def explained(self, wait_s, loop_s, worker_s, workers, cpus=4,
                  transfer=NO_TRANSFER, left=1, **numbers):
        meter = Meter()
        meter.batches, meter.items, meter.first_batch_s = 100, 1000, 0.1
        meter.wait_s, meter.loop_s, meter.transfer = wait_s, loop_s, transfer
        meter.blocked_s = wait_s
        for name, number in numbers.items():
            setattr(meter, name, number)
        if workers:
            meter.worked(worker_s, 1000)
        with mock.patch("os.sched_getaffinity", lambda _: range(cpus)), \
                mock.patch.object(meter, "processors_left", lambda: left):
            return meter.explain(workers)

    def changes(self, *numbers, **more):
        """(from, to, predicted gain) of the one thing to change."""
        (action,) = self.explained(*numbers, **more).actions
        self.assertEqual(action["knob"], "num_workers")
        return (action["from"], action["to"],
                round(action["predicted_gain"], 2))

    def test_more_workers_than_processors_are_not_advised(self):
        told = self.explained(9, 1, 10, workers=4)
        self.assertEqual(told.actions, [])
        self.assertIn("make an item cheaper", told.no_action)

    def test_the_predicted_gain_is_bounded_by_the_loop_and_the_workers(self):
        self.assertEqual(self.changes(1, 9, 10, workers=1), (1, 2, 0.11))
        self.assertEqual(self.changes(9, 1, 10, workers=1), (1, 4, 3.0))
        self.assertEqual(self.changes(9, 1, 10, workers=1, cpus=2),
                         (1, 2, 1.0))

    def test_workers_take_the_items_off_the_loop(self):
        self.assertEqual(self.changes(5, 5, 0, workers=0), (0, 1, 1.0))
        self.assertEqual(self.changes(9, 3, 0, workers=0), (0, 3, 3.0))
        self.assertEqual(self.changes(9, 1, 0, workers=0, cpus=2),
                         (0, 2, round(10 / 4.5 - 1, 2)))

    def test_moving_batches_eats_the_gain(self):
        """Half of the time is fetching; a worker would need as long again to
        send what it fetched, and the loop to receive it."""
        told = self.explained(5, 5, 0, workers=0,
                              transfer=TransferCost(0.05, 0.07))
        self.assertEqual((told.limit, told.actions), ("data", []))
        self.assertIn("-17 %", told.no_action)
        self.assertIn("50.00 ms of a worker and 70.00 ms of the loop",
                      told.because)
        self.assertEqual(self.changes(5, 5, 0, workers=0, cpus=1,
                                      transfer=TransferCost(0.02, 0.01)),
                         (0, 1, round(10 / 7 - 1, 2)))

    def test_what_the_loop_spends_on_receiving_no_worker_takes_off(self):
        told = self.explained(5, 5, 9, workers=1, blocked_s=1)
        self.assertEqual(told.actions, [])
        self.assertIn("4.00 s on receiving", told.no_action)
        self.assertEqual(self.changes(5, 5, 10, workers=1, blocked_s=3),
                         (1, 2, round(10 / 7 - 1, 2)))

    def test_processors_that_are_busy_give_nothing(self):
        told = self.explained(5, 5, 0, workers=0, cpus=2, cpu_s=20)
        self.assertIn("processors are fully used", told.no_action)
        told = self.explained(5, 5, 0, workers=0, cpus=2, cpu_s=10, left=0.5)
        self.assertIn("processors are fully used", told.no_action)
        self.assertIn("a processor for 50% of", told.because)
        self.assertEqual(self.changes(5, 5, 0, workers=0, cpus=2, cpu_s=16),
                         (0, 1, 0.25))

    def test_what_was_not_or_cannot_be_moved_is_not_advised(self):
        for transfer, why in ((None, "not been measured yet"),
                            (TransferCost(0, 0, "TypeError: a lock"), "a lock")):
            told = self.explained(5, 5, 0, workers=0, transfer=transfer)
            self.assertEqual(told.actions, [])
            self.assertIn(why, told.no_action)
            self.assertIn(why, str(told))

    def test_above_90_percent_it_is_the_loop_that_limits(self):
        told = self.explained(0.9, 9.1, 9, workers=1)
        self.assertEqual(told.limit, "compute")
        self.assertIn("faster", told.no_action)
        self.assertEqual(self.explained(1.1, 8.9, 10, workers=1).limit, "data")

    def test_a_gain_of_less_than_two_percent_is_no_advice(self):
        told = self.explained(2, 5, 5, workers=1)
        self.assertEqual((told.limit, told.actions), ("data", []))
        self.assertIn("batches come in bursts", told.no_action)

    def test_other_work_is_seen_in_the_time_that_a_thread_waits(self):
        with mock.patch.object(meters, "scheduled", lambda _: (10, 10)):
            meter = Meter()
        self.assertGreater(Meter().processors_left(), 0)
        for now, left in (((40, 20), 0.75), ((10, 10), 1.0), (None, 1.0)):
            with mock.patch.object(meters, "scheduled", lambda _: now):
                self.assertEqual(meter.processors_left(), left)
        with mock.patch.object(meters, "scheduled", lambda _: (20, 40)):
            self.assertEqual(meter.processors_left(), 0.25)
            self.assertEqual(meter.processors_left(360, 0), 0.925,
                             "a loop that waits for its workers is woken late")

    def test_what_waits_for_a_processor_needs_one(self):
        waits = {"looked_s": 10, "ran_s": 0.5}
        self.assertEqual(self.changes(9.9, 0.1, 10, workers=1, cpus=2, **waits)
                         [1], 32)
        self.assertEqual(self.changes(9.9, 0.1, 10, workers=1, cpus=2,
                                      queued_s=5, **waits)[1], 2)

    def test_a_notebook_shows_it_as_a_table(self):
        page = self.explained(9, 1, 10, workers=1)._repr_html_()
        for text in ("<b>data</b>: the workers do not keep up",
                     "accelerator utilisation 10.0 %, 100 samples/s",
                     "num_workers", "1 to 4: predicted 4 x faster"):
            self.assertIn(text, page)


class OfBefore(unittest.TestCase):
    """The verdicts that were worked out in Python, word for word."""

    def test_verdicts_are_those_of_before(self):
        self.assertEqual(len(KNOWN["verdicts"]), 40)
        for known in KNOWN["verdicts"]:
            with self.subTest(known["window"]):
                self.assertEqual(self.told(**known["window"]), known["told"])

    def told(self, workers, cpus, left, moving, worker_s, worker_cpu_s,
             worker_items, **counted):
        meter = Meter()
        vars(meter).update(
            counted, worker_s=worker_s, worker_cpu_s=worker_cpu_s,
            worker_items=worker_items,
            transfer=moving and TransferCost(*moving))
        with mock.patch("os.sched_getaffinity", lambda _: range(cpus)), \
                mock.patch.object(meter, "processors_left", lambda: left):
            told, stats = meter.explain(workers), meter.stats(workers)
        verdict = {name: getattr(told, name) for name in (
            "limit", "stage", "cause", "because", "actions", "no_action")}
        return {"limits": stats["limits"], "au": told.au, "parts": told.parts,
                "samples_per_s": told.samples_per_s, "verdict": verdict}


class LooksAtMakers(unittest.TestCase):
    def looked(self, seconds_of_batches):
        """A look costs: each of 32 batches, and then one every 20 ms."""
        looks, now, looked = Looks(), [0.0], 0
        with mock.patch("time.perf_counter", lambda: now[0]), \
                mock.patch("penstock._dataloader.looks.scheduled",
                           lambda _: (round(1e9 * now[0]), 0)):
            for took in seconds_of_batches:
                looks.begin()
                now[0] += took
                looks.end()
                looked += looks.take()[0] > 0
        return looked

    def test_at_each_batch_that_takes_long_but_the_first(self):
        self.assertEqual(self.looked([0.05] * 100), 99)

    def test_at_some_of_many_short_ones(self):
        self.assertAlmostEqual(self.looked([0.001] * 232), 32 + 10, delta=1)

    def test_what_the_kernel_does_not_tell_is_not_counted(self):
        looks = Looks()
        with mock.patch("penstock._dataloader.looks.scheduled", lambda _: None):
            for _ in range(3):
                looks.begin()
                looks.end()
        self.assertEqual(looks.take(), (0, 0, 0))


class TooManyBad(Case):
    def test_the_limit_is_passed_by_one_more(self):
        meter = Meter(most_bad=2)
        for number in range(2):
            meter.note_bad(0, 0, number, Bad(number, ValueError("x")))
        with self.refused(TransformError, "loader.too_many_bad",
                          "dataset[9]", "max_bad is 2"):
            meter.note_bad(0, 1, 0, Bad(9, ValueError("x")))


if __name__ == "__main__":
    main()
