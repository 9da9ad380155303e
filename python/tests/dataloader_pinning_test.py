"""Batches pinned ahead of the loop. Without a GPU, pinning is played."""
import contextlib
import unittest
from unittest import mock

from dataloader_case import Case, needs_torch, numbers, torch
from dataloader_sets import Bad, Hangs, Numbers, Pair, Rows, Slow
from entry import main


class Page:
    """Something that can be pinned."""
    is_pinned = False

    def pin_memory(self):
        page = Page()
        page.is_pinned = True
        return page


@needs_torch
class Containers(unittest.TestCase):
    def test_everything_that_can_be_pinned_is_found(self):
        from penstock._dataloader.pinning import pinned

        got = pinned({"a": [Page(), (Page(), "text")], "b": Pair(Page(), 3)})
        self.assertTrue(got["a"][0].is_pinned)
        self.assertTrue(got["a"][1][0].is_pinned)
        self.assertEqual(got["a"][1][1], "text")
        self.assertIsInstance(got["b"], Pair)
        self.assertTrue(got["b"].x.is_pinned)
        self.assertEqual(got["b"].y, 3)

    def test_kinds_of_containers_are_kept(self):
        from penstock._dataloader.pinning import pinned

        class Mine(dict):
            extra = 5
        got = pinned(Mine(a=Page()))
        self.assertIsInstance(got, Mine)
        self.assertTrue(got["a"].is_pinned)
        self.assertEqual(pinned(range(3)), [0, 1, 2])
        self.assertEqual(pinned(b"raw"), b"raw")


@needs_torch
class Ahead(Case):
    """A thread takes, pins and hands on; the device is a played one."""

    def setUp(self):
        super().setUp()
        played = contextlib.ExitStack()
        self.addCleanup(played.close)
        self.pinned = []

        def pin(batch):
            self.pinned.append(batch)
            return batch
        for what, by in (("penstock._dataloader.pinning.available", lambda: True),
                         ("penstock._dataloader.pinning.pinned", pin),
                         ("torch.cuda.current_device", lambda: 0),
                         ("torch.cuda.set_device", lambda device: None)):
            played.enter_context(mock.patch(what, by))

    def test_batches_come_in_order_and_each_was_pinned(self):
        for workers in (0, 2):
            for persistent in {False, workers > 0}:
                self.pinned.clear()
                loader = self.loader(Numbers(20), batch_size=2,
                                     num_workers=workers, pin_memory=True,
                                     persistent_workers=persistent)
                for _ in range(3):
                    got = [numbers(batch) for batch in loader]
                    self.assertEqual(got, [[i, i + 1]
                                           for i in range(0, 20, 2)])
                self.assertEqual(len(self.pinned), 30)

    def test_the_state_counts_what_was_handed_out(self):
        loader = self.loader(Numbers(20), batch_size=2, num_workers=1,
                             pin_memory=True)
        loop = iter(loader)
        next(loop), next(loop)
        self.assertEqual(loader.state_dict()["step"], 2)

    def test_an_error_takes_its_turn_and_the_loop_goes_on(self):
        loop = iter(self.loader(Bad(8, bad={2}, error=ValueError),
                                batch_size=2, num_workers=1,
                                pin_memory=True))
        next(loop)
        with self.assertRaises(ValueError):
            next(loop)
        self.assertEqual(numbers(next(loop)[1]), [4, 5])

    def test_a_device_to_pin_for_is_warned_of(self):
        loader = self.loader(Numbers(4), pin_memory=True,
                             pin_memory_device="cuda")
        with self.assertWarnsRegex(UserWarning, "device has no effect"):
            self.assertEqual(len(list(loader)), 4)
        self.assertEqual(len(self.pinned), 4)

    def test_leaving_early_ends_the_thread(self):
        for data in (Rows(100), Slow(100, seconds=0.05), Hangs(9, at=2)):
            loop = iter(self.loader(data, num_workers=2, pin_memory=True))
            next(loop)
            del loop

    def test_a_timeout_is_heard_through_the_thread(self):
        loop = iter(self.loader(Hangs(8, at=1), num_workers=1, timeout=4,
                                pin_memory=True))
        next(loop)
        with self.assertRaisesRegex(TimeoutError, "timed out"):
            next(loop)


@needs_torch
class OnTheGpu(Case):
    def setUp(self):
        if not torch.cuda.is_available():
            self.skipTest("there is no GPU")
        torch.zeros(1).pin_memory()  # CUDA opens files of its own
        super().setUp()

    def test_batches_are_pinned(self):
        for workers in (0, 2):
            for x, y in self.loader(Rows(10), batch_size=4,
                                    num_workers=workers, pin_memory=True):
                self.assertTrue(x.is_pinned() and y.is_pinned())


if __name__ == "__main__":
    main()
