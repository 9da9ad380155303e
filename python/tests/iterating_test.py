"""Epochs, steps, positions: which batches come, whatever makes them."""
import hashlib
import json
import logging
import sys
import threading
import unittest
from unittest import mock

import numpy as np

import penstock
from entry import main
from positions import (BATCH, Case, DEVICES, WORKERS, bytes_of,
                       fingerprint_of, run_program)


def digest(batch):
    return hashlib.sha256(bytes_of(batch)).hexdigest()


def order_digest(batch):
    return hashlib.sha256(batch.ids.astype("<i8").tobytes()).hexdigest()


class Iterating(Case):
    def told(self, epoch, *arguments):
        """What the program says of the steps of an epoch."""
        text = run_program("batch", self.path, "--epoch", epoch, "--steps",
                           "0:1000", *arguments)
        return [json.loads(line) for line in text.splitlines()]

    def assert_same(self, batches, told):
        self.assertEqual(
            [(b.epoch, b.step, b.row_keys, order_digest(b), digest(b))
             for b in batches],
            [(t["epoch"], t["step"], t["keys"], t["order_digest"],
              t["bytes_digest"]) for t in told])

    def test_threads_share_an_epoch_and_leave_the_next_one_whole(self):
        with self.open(loader__workers=2) as loader:
            for epoch in range(10):
                batches, seen = iter(loader), []

                def take(batches=batches, seen=seen):
                    seen.extend((batch.epoch, batch.step) for batch in batches)
                threads = [threading.Thread(target=take) for _ in range(3)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sorted(seen), [(epoch, step) for step
                                                in range(len(loader))])

    def test_an_interrupt_repeats_no_batch_that_another_thread_has(self):
        out, taken = threading.Event(), threading.Event()

        class Watch:
            def asks(self):
                pass

            rests = asks

            def got(self, epoch, rows):
                if threading.current_thread() is first and seen:
                    out.set()
                    taken.wait()
                    raise KeyboardInterrupt
        with self.open(loader__workers=1) as loader, \
                mock.patch.dict(sys.modules, torch=mock.Mock()):
            batches, seen = loader._engine.epoch(Watch()), []

            def take_two():
                seen.append(next(batches).step)
                with self.assertRaises(KeyboardInterrupt):
                    next(batches)
            first = threading.Thread(target=take_two)
            first.start()
            out.wait()  # the second is out of the loader
            seen.append(next(batches).step)
            taken.set()
            first.join()
            seen += [batch.step for batch in batches]
        self.assertEqual(seen, [step for step in range(len(loader))
                                if step != 1])

    def test_the_batches_are_those_of_the_program_on_every_device(self):
        for device in DEVICES:
            for workers in WORKERS:
                for cache in ("ram", "none"):
                    with self.subTest(device=device, workers=workers,
                                      cache=cache):
                        loader = self.open(device=device,
                                           loader__workers=workers,
                                           loader__cache=cache)
                        for epoch in range(2):
                            self.assert_same(list(loader), self.told(epoch))

    def test_the_length_is_that_of_an_epoch(self):
        loader = self.open()
        self.assertEqual(len(loader), len(self.told(0)))
        self.assertEqual(len(list(loader)), len(loader))

    def test_an_epoch_that_is_left_is_followed_by_the_next(self):
        loader = self.open()
        for batch in loader:
            if batch.step == 3:
                break
        self.assert_same(list(loader), self.told(1))

    def test_an_iteration_that_was_not_begun_loses_nothing(self):
        loader = self.open()
        iter(loader)
        self.assert_same(list(loader), self.told(0))

    def test_batches_go_on_across_epochs(self):
        loader = self.open()
        seen = list(loader.batches(len(loader) + 2))
        self.assert_same(seen, self.told(0) + self.told(1)[:2])
        self.assert_same(list(loader.batches(2)), self.told(1)[2:4])
        self.assertEqual(list(loader.batches(0)), [])
        with self.refused(penstock.RequestError, "loader.steps", "-1"):
            loader.batches(-1)

    def test_batches_without_a_number_have_no_end(self):
        loader = self.open()
        endless = loader.batches()
        for _ in range(3 * len(loader)):
            last = next(endless)
        self.assertEqual((last.epoch, last.step), (2, len(loader) - 1))

    def test_an_older_iteration_ends_by_an_error(self):
        loader = self.open()
        older = iter(loader)
        next(older)
        iter(loader)
        with self.refused(penstock.RequestError, "loader.iteration"):
            next(older)

    def test_set_epoch_chooses_and_is_not_needed(self):
        loader = self.open()
        loader.set_epoch(5)
        self.assert_same(list(loader), self.told(5))
        self.assert_same(list(loader), self.told(6))
        next(iter(loader))
        loader.set_epoch(8)  # the next one anyway
        self.assert_same(list(loader), self.told(8))
        with self.refused(penstock.RequestError, "resume.no_state", "-1"):
            loader.set_epoch(-1)

    def test_a_log_handler_that_raises_loses_no_batch_and_no_message(self):
        class Raises(logging.Handler):
            def emit(self, record):
                texts.append(record.getMessage())
                raise RuntimeError("the handler's own")
        texts, handler = [], Raises()
        logger = logging.getLogger("penstock")
        level = logger.level
        self.addCleanup(logger.setLevel, level)
        self.addCleanup(logger.removeHandler, handler)
        logger.setLevel(logging.WARNING)
        logger.addHandler(handler)
        loader = self.open(loader__workers=1, loader__prefetch=1)
        batches, held = loader.batches(12), []
        while True:  # the ring of 3 grows 9 times: the 1st, 2nd, 4th, 8th are told
            try:
                held.append(next(batches))
            except RuntimeError:
                continue
            except StopIteration:
                break
        self.assertEqual([b.epoch * len(loader) + b.step for b in held],
                         list(range(12)))
        self.assertEqual(len(set(texts)), 4)
        self.assertEqual(len(texts), 4)

    def test_peek_leaves_the_batch_the_next(self):
        for workers in WORKERS:
            loader = self.open(loader__workers=workers)
            seen = loader.peek()
            self.assertEqual(digest(seen), self.told(0)[0]["bytes_digest"])
            self.assert_same(list(loader), self.told(0))

    def test_the_held_out_side_comes_in_order_of_its_keys(self):
        loader = self.open(side="val")
        self.assert_same(list(loader), self.told(0, "--split", "val"))
        with self.refused(penstock.RequestError, "loader.side", "dev"):
            self.open(side="dev")

    def test_ranks_share_the_batch_of_a_job(self):
        same = {"source__fingerprint": fingerprint_of(self.open())}
        shares = [list(self.open(rank=rank, world=3, **same))
                  for rank in range(3)]
        for rank, share in enumerate(shares):
            self.assert_same(share, self.told(0, "--rank", rank, "--world",
                                              "3"))
        with self.refused(penstock.RequestError, "loader.rank", "rank 3 of 3"):
            self.open(rank=3, world=3)


class Torch(Case):
    """The loader in torch's words."""

    def test_does_not_shuffle_and_keeps_the_tail(self):
        numbers = np.concatenate([b.number.numpy()[:, 0]
                                  for b in self.loader()])
        self.assertEqual(numbers.tolist(), list(range(1, 301)))

    def test_the_columns_of_a_field_have_an_order(self):
        for columns in {"session", "tx_lat"}, None, 1:
            with self.assertRaisesRegex(TypeError, "a list of columns"):
                self.loader(fields={"x": columns})

    def test_drop_last_leaves_a_short_batch_out(self):
        loader = self.loader(drop_last=True, batch_size=7)
        self.assertEqual({b.rows for b in loader}, {7})
        self.assertEqual(len(loader), 300 // 7)
        self.assertEqual(len(self.loader(batch_size=7)), 300 // 7 + 1)

    def test_shuffles_by_the_seed(self):
        def order(**arguments):
            return [i for b in self.loader(shuffle=True, **arguments)
                    for i in b.ids.tolist()]
        first = order(seed=3)
        self.assertEqual(order(seed=3, num_workers=8, prefetch_factor=1), first)
        self.assertNotEqual(order(seed=4), first)
        self.assertEqual(sorted(first), list(range(300)))

    def test_the_batch_size_is_that_of_a_rank(self):
        for rank in range(2):
            loader = self.rank_loader(rank=rank, world=2,
                                      drop_last=True)
            self.assertEqual({b.rows for b in loader}, {BATCH})
            self.assertEqual(len(loader), 300 // (2 * BATCH))

    def test_fields_can_be_named_shortly(self):
        batch = self.loader(fields=["tx_lat", "tx_lon"]).peek()
        self.assertEqual(batch.keys(), ["tx_lat", "tx_lon"])
        batch = self.loader(fields={"a": "tx_lat", "b": ["tx_lat", "tx_lon"]}
                            ).peek()
        self.assertEqual((batch.a.shape, batch.b.shape),
                         ((BATCH, 1), (BATCH, 2)))

    def test_a_source_can_be_a_section_of_a_job(self):
        loader = penstock.Loader({"kind": "sqlite", "path": self.base,
                                  "where": "id <= 5"}, ["tx_lat"], 5,
                                 device="cpu")
        with loader:
            self.assertEqual([b.row_keys for b in loader], [[1, 2, 3, 4, 5]])

    def test_a_split_is_that_of_a_job(self):
        split = {"train": 0.5, "val": 0.5}
        sides = [{k for b in self.loader(split=split, side=side)
                  for k in b.row_keys} for side in ("train", "val")]
        self.assertEqual(sorted(sides[0] | sides[1]), list(range(1, 301)))
        self.assertFalse(sides[0] & sides[1])


if __name__ == "__main__":
    main()
