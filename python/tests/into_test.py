"""Batches that are written into arrays of the caller."""
import itertools
import unittest

import numpy

import penstock
from positions import DEVICES


class Into(unittest.TestCase):
    def setUp(self):
        self.x = numpy.arange(1000 * 5, dtype="float32").reshape(1000, 5)
        self.arrays = {"x": self.x, "y": numpy.arange(1000)}
        self.into = {"x": numpy.empty((64, 5), "float32"),
                     "y": numpy.empty(64, "int64")}

    def seen(self, loader, **how):
        for rows in loader.into(self.into, **how):
            self.assertIsInstance(rows, int)
            yield self.into["x"][:rows].copy(), self.into["y"][:rows].copy()

    def test_gives_the_batches_of_an_epoch_in_order(self):
        for device, workers in itertools.product(DEVICES, (0, 1, 2)):
            with penstock.Loader(self.arrays, batch_size=64, seed=3,
                                 device=device,
                                 num_workers=workers) as loader:
                plain = [(b.host()["x"], b.host()["y"]) for b in loader]
                loader.set_epoch(0)
                filled = list(self.seen(loader))
            self.assertEqual(len(filled), 16)
            self.assertEqual(len(filled[-1][1]), 1000 - 15 * 64)
            for (x, y), (other_x, other_y) in zip(plain, filled):
                numpy.testing.assert_array_equal(x, other_x)
                numpy.testing.assert_array_equal(y, other_y)

    def test_goes_on_across_epochs_and_keeps_the_state(self):
        with penstock.Loader(self.arrays, batch_size=64, seed=3) as loader:
            first = list(self.seen(loader, steps=20))
            state = loader.state_dict()
            after = list(self.seen(loader, steps=5))
        self.assertEqual(len(first), 20)
        with penstock.Loader(self.arrays, batch_size=64, seed=3) as loader:
            loader.load_state_dict(state)
            again = list(self.seen(loader, steps=5))
        for (_, y), (_, other) in zip(after, again):
            numpy.testing.assert_array_equal(y, other)

    def test_refuses_what_does_not_fit(self):
        cases = [
            ({"x": self.into["x"]}, "'y'"),
            ({**self.into, "y": numpy.empty(63, "int64")}, r"\[63\]"),
            ({**self.into, "y": numpy.empty(64, "int32")}, "int32"),
            ({**self.into, "y": [0] * 64}, "list"),
        ]
        frozen = numpy.empty(64, "int64")
        frozen.setflags(write=False)
        cases.append(({**self.into, "y": frozen}, "writable"))
        with penstock.Loader(self.arrays, batch_size=64) as loader:
            for into, named in cases:
                with self.assertRaisesRegex(penstock.Error, named):
                    next(loader.into(into))
            self.assertEqual(len(list(loader)), 16, "none is lost")


if __name__ == "__main__":
    unittest.main()
