"""What the drop-in would give in place of a watched loader: pure functions."""
import types
import unittest

from entry import main
from penstock._watch import predicting
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


class DropIn(unittest.TestCase):
    def told(self, a_meter, a_made, workers=0, to=2, moving=NO_TRANSFER,
             cpus=4, share=1.0, idle=None, epoch=0, again_made_s=0.0):
        return predicting.drop_in_of(
            predicting.Loop(a_meter, again_made_s, workers, 2, epoch), a_made,
            moving, predicting.Processors(cpus, share, idle), verdict(to))

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

    def test_no_epoch_is_faster_than_its_slowest_item(self):
        """Of 12 batches, whose slow one came first in the last of them: then the
        loop waited for it, and the meter left that out."""
        quick = [0.017] * 11
        times = [*quick, 2.0, *quick, 2.0, 2.0, *quick]
        waited = 2 * (2.0 + 0.085) + 0.085  # two workers
        a_meter = meter(0.002, (waited - 0.072) / 35, batches=36)
        for workers in (2, 32):
            told = self.told(a_meter, made(times, 0.01), workers=2, to=workers,
                             epoch=12, again_made_s=2.0)
            self.assertGreater(told["gain"], -0.02)
            self.assertLess(told["gain"], 0.08)

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
