"""What stats() and explain() say."""
import time
import unittest
from unittest import mock

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

    def test_nothing_is_said_of_a_few_batches(self):
        loader = self.loader(Numbers(8), batch_size=4)
        self.assertIsNone(loader.stats()["first_batch_s"])
        list(loader)
        self.assertEqual(loader.stats()["limits"], "unknown")
        told = loader.explain()
        self.assertEqual((told.limit, told.au), ("unknown", None))
        self.assertRegex(str(told), "n/a.*\n.*too few .*\n.*there were 2,")

    def test_without_workers_their_rate_is_unknown(self):
        loader = self.loader(Busy(40, seconds=0.001), batch_size=4)
        for _ in loader:
            pass
        self.assertIsNone(loader.stats()["items_per_s_of_a_worker"])


class Advice(unittest.TestCase):
    def explained(self, wait_s, loop_s, worker_s, workers, cpus=4):
        meter = Meter()
        meter.batches, meter.items, meter.first_batch_s = 100, 1000, 0.1
        meter.wait_s, meter.loop_s = wait_s, loop_s
        if workers:
            meter.worked(worker_s, 1000)
        with mock.patch("os.sched_getaffinity", lambda _: range(cpus)):
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
        self.assertIn("make an item cheaper", told.cause)

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

    def test_a_gain_of_less_than_two_percent_is_no_advice(self):
        meter = Meter()
        meter.batches, meter.items = 100, 1000
        meter.wait_s, meter.loop_s = 0.0151, 1.0
        meter.worked(1.0, 1000)
        with mock.patch("os.sched_getaffinity", lambda _: range(4)):
            self.assertEqual(meter._advice(1, 0.001), (
                "more workers would gain less than 2 %", []))

    def test_a_notebook_shows_it_as_a_table(self):
        page = self.explained(9, 1, 10, workers=1)._repr_html_()
        for text in ("<b>data</b>: the workers do not keep up",
                     "accelerator utilisation 10.0 %, 100 samples/s",
                     "num_workers", "1 to 4: predicted 300 % more"):
            self.assertIn(text, page)


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
