"""What the drop-in would give in place of a watched loader: pure functions."""
import types
import unittest

from entry import main
from penstock import predicting
from penstock._dataloader.transfer_cost import NO_TRANSFER, TransferCost


def meter(loop_s=0.004, wait_s=0.02, cpu_s=0.02, batches=101):
    """Per batch of 4 items."""
    return types.SimpleNamespace(
        batches=batches, items=4 * batches, gpu_steps=0, loop_s=loop_s * (batches - 1),
        wait_s=wait_s * (batches - 1), cpu_s=cpu_s * (batches - 1),
        worker_items=0, worker_cpu_s=0.0)


def made(times, cpu=1.0, seen=(0,) * 8):
    """`times` of batches, `cpu` of them on a processor."""
    return types.SimpleNamespace(
        items=4 * len(times), item_s=sum(times), item_cpu_s=cpu * sum(times),
        collate_s=0.0, collate_cpu_s=0.0, batch_seconds=times, seen=seen)


def verdict(to=None):
    return {"actions": [] if to is None else
            [{"knob": "num_workers", "to": to}]}


class Steady(unittest.TestCase):
    def test_the_slower_of_workers_and_loop(self):
        for workers in (1, 2, 8):
            self.assertAlmostEqual(
                predicting.steady_s([0.8], workers, 2, 0.0), 0.8 / workers,
                delta=0.02 * 0.8)
            self.assertAlmostEqual(
                predicting.steady_s([0.8], workers, 2, 1.0), 1.0)

    def test_a_slow_batch_holds_up_those_behind_it(self):
        """Two workers, 49 batches of 1 and one of 100: while it is made, the
        other one makes the three that may be on their way."""
        took = predicting.steady_s([1.0] * 49 + [100.0], 2, 2, 0.0)
        self.assertAlmostEqual(took * 50, 100 + 46 / 2, delta=3)
        ahead = predicting.steady_s([1.0] * 49 + [100.0], 2, 1000, 0.0)
        self.assertAlmostEqual(ahead * 50, 149 / 2, delta=30)


class DropIn(unittest.TestCase):
    def told(self, a_meter, a_made, workers=0, to=2, moving=NO_TRANSFER,
             cpus=4, share=1.0, idle=None):
        return predicting.drop_in_of(
            a_meter, a_made, workers, 2, moving,
            predicting.Processors(cpus, share, idle), verdict(to))

    def test_work_is_shared_by_the_workers(self):
        told = self.told(meter(), made([0.02] * 101))
        self.assertAlmostEqual(told["samples_per_s"], 400, delta=4)
        self.assertAlmostEqual(told["gain"], 1.4, delta=0.03)
        self.assertIsNone(told["up_to"])

    def test_processors_bound_it(self):
        told = self.told(meter(cpu_s=0.024), made([0.02] * 101), cpus=1)
        self.assertAlmostEqual(told["samples_per_s"], 4 / 0.024, delta=2)

    def test_without_workers_it_is_as_it_was(self):
        told = self.told(meter(), made([0.02] * 101), to=None)
        self.assertEqual(told["workers"], 0)
        self.assertAlmostEqual(told["gain"], 0, delta=0.01)

    def test_a_slow_item_is_no_mean(self):
        times = ([0.004] * 49 + [0.4]) * 2
        told = self.told(meter(0.001, 0.009, batches=100), made(times, 0.01),
                         workers=2, to=None)
        by_means = 4 / (sum(times) / 100 / 2)
        self.assertLess(told["samples_per_s"], 0.7 * by_means)

    def test_other_work_makes_it_a_range(self):
        """One thread had half a processor of two; three may get no more, or
        1.2 times two thirds of them."""
        told = self.told(meter(0.004, 0.04, 0.02), made([0.04] * 101, 0.5),
                         cpus=2, share=0.5)
        self.assertGreater(told["up_to"]["gain"], told["gain"])
        self.assertIn("other work", told["up_to"]["why"])
        self.assertAlmostEqual(told["samples_per_s"], 4 / 0.04, delta=2)

    def test_processors_that_others_keep_busy_make_it_a_range(self):
        """The loop has a processor for itself, and nothing is left."""
        told = self.told(meter(), made([0.02] * 101), idle=0.0)
        self.assertAlmostEqual(told["gain"], 0, delta=0.05)
        self.assertGreater(told["up_to"]["gain"], 0.5)
        free = self.told(meter(), made([0.02] * 101), idle=2.0)
        self.assertIsNone(free["up_to"])
        self.assertGreater(free["gain"], told["up_to"]["gain"])

    def test_a_lock_of_unknown_share_makes_it_a_range(self):
        told = self.told(meter(0.0, 0.02, 0.001),
                         made([0.02] * 101, 0.05, (0, 60, 0, 0, 0, 40, 0, 100)),
                         workers=1)
        self.assertAlmostEqual(told["gain"], 0, delta=0.01)
        self.assertAlmostEqual(told["up_to"]["gain"], 1, delta=0.03)
        self.assertIn("lock", told["up_to"]["why"])

    def test_nothing_from_too_little(self):
        few = made([0.02] * 101)
        self.assertIsNone(self.told(meter(batches=7), few))
        self.assertIsNone(self.told(meter(), few,
                                    moving=TransferCost(0, 0, "a lock")))


class Processors(unittest.TestCase):
    def test_as_many_as_now_or_by_threads(self):
        self.assertEqual(predicting.processors_got(1, 3, 4, 1.0), (1.0, 2.0),
                         "three others may run, and take no notice")
        now, then = predicting.processors_got(1, 3, 2, 0.5)
        self.assertEqual(now, 0.5)  # three others run
        self.assertAlmostEqual(then, 2 * 3 / 6)


if __name__ == "__main__":
    main()
