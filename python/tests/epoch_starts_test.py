"""The seams between the epochs of a loop that is watched: the start of workers,
and first batches that are slow."""
import io
import time
import unittest

import penstock
from penstock._watch.epoch_starts import EpochStarts
from positions import has
from entry import main


class FirstIsSlow:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0 if index else 0.2)
        return index


class StartsOfEpochs(unittest.TestCase):
    @staticmethod
    def report(*epochs):
        """Of a loop of 4 s without the seams; seconds until the first batch of
        each epoch was there, and that it was made."""
        starts = EpochStarts()
        for until_first_s, made_s in epochs:
            starts.started(until_first_s, made_s)
            starts.ended(0.01)
        report = {"au": 0.5, "samples_per_s": 10, "verdict": {
            "limit": "data", "actions": [], "no_action": "none"},
            "parts": {"compute": 0.5, "wait_data": 0.5}}
        starts.add_to(report, spent_s=4.0, wait_s=2.0)
        return report

    def test_one_that_makes_a_slow_item_is_no_slow_start(self):
        report = self.report((0.1, 0.05), (2.1, 2.05), (0.1, 0.05))
        self.assertEqual(report["verdict"]["actions"], [])
        self.assertAlmostEqual(report["epoch_starts"]["seconds"], 2.32)

    def test_what_is_left_is_predicted_for_workers_that_stay(self):
        report = self.report((1.1, 0.1), (3.1, 2.1), (1.1, 0.1))
        action, = report["verdict"]["actions"]
        self.assertEqual(action["knob"], "persistent_workers")
        # Two starts and two ends.
        self.assertAlmostEqual(action["predicted_gain"],
                               2.02 / (4.0 + 1.1 + 2.2))


class FirstBatches(unittest.TestCase):
    def test_a_slow_first_batch_of_an_epoch_is_among_the_longest_waits(self):
        class Slow:
            def __iter__(self):
                for number in range(12):
                    time.sleep(0 if number else 0.1)
                    yield number
        watched = penstock.watch(Slow(), file=io.StringIO())
        for _ in range(3):
            list(watched)
        worst = watched.report()["worst_steps"][:2]
        self.assertEqual({step["batch"] for step in worst}, {12, 24})
        self.assertGreater(worst[1]["wait_ms"], 90)

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_items_that_are_slow_come_first_in_their_epochs(self):
        import torch.utils.data
        watched = penstock.watch(torch.utils.data.DataLoader(
            FirstIsSlow(), batch_size=4, num_workers=1,
            multiprocessing_context="fork"), file=io.StringIO())
        for _ in range(3):
            list(watched)
        worst = watched.report()["worst_steps"][:3]
        self.assertEqual({step["batch"] for step in worst}, {0, 10, 20})
        self.assertEqual({step["item"] for step in worst}, {"dataset[0]"})


if __name__ == "__main__":
    main()
