"""What stats() and explain() say."""
import time
import unittest

from dataloader_case import Case
from dataloader_sets import Busy, Numbers
from entry import main
from penstock._dataloader.fetching import Bad
from penstock._dataloader.meter import Meter
from penstock.errors import TransformError


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
        self.assertRegex(loader.explain(), "^loader: the loop waited "
                         r"\d+% .*first batch after \d+ ms")

    def test_a_slow_loop_is_the_loops_fault(self):
        loader = self.loader(Numbers(60), batch_size=4, num_workers=1)
        for _ in loader:
            time.sleep(0.1)
        self.assertEqual(loader.stats()["limits"], "loop")
        self.assertIn("the input keeps up", loader.explain())

    def test_nothing_is_said_of_a_few_batches(self):
        loader = self.loader(Numbers(8), batch_size=4)
        self.assertIsNone(loader.stats()["first_batch_s"])
        list(loader)
        self.assertEqual(loader.stats()["limits"], "unknown")
        self.assertIn("too few to say", loader.explain())

    def test_without_workers_their_rate_is_unknown(self):
        loader = self.loader(Busy(40, seconds=0.001), batch_size=4)
        for _ in loader:
            pass
        self.assertIsNone(loader.stats()["items_per_s_of_a_worker"])


class Advice(unittest.TestCase):
    def explained(self, wait_s, loop_s, worker_s, workers):
        meter = Meter()
        meter.batches, meter.items, meter.first_batch_s = 100, 1000, 0.1
        meter.wait_s, meter.loop_s = wait_s, loop_s
        meter.worked(worker_s, 1000)
        return meter.explain(workers, True)

    def test_more_workers_than_processors_are_not_advised(self):
        self.assertIn("make an item cheaper",
                      self.explained(9, 1, 10, workers=100_000))

    def test_the_predicted_gain_is_bounded_by_the_loop(self):
        text = self.explained(wait_s=1, loop_s=9, worker_s=10, workers=1)
        if "num_workers=" in text:  # where there are two processors
            self.assertIn("at most 1.1 x the rate", text)

    def test_a_gain_of_less_than_two_percent_is_no_advice(self):
        meter = Meter()
        meter.batches, meter.items = 100, 1000
        meter.wait_s, meter.loop_s = 0.0151, 1.0
        meter.worked(1.0, 1000)
        self.assertIn("less than 2 %", meter._advice(1, True, 0.001))


class TooManyBad(Case):
    def test_the_limit_is_passed_by_one_more(self):
        meter = Meter(most_bad=2)
        for number in range(2):
            meter.note_bad(0, 0, number, Bad(number, ValueError("x")))
        with self.refused(TransformError, "loader.too_many_bad",
                          "dataset[9]", "max_bad allows 2"):
            meter.note_bad(0, 1, 0, Bad(9, ValueError("x")))


if __name__ == "__main__":
    main()
