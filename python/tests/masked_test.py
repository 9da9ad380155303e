"""Masked arrays of numpy: a masked value is missing wherever arrays go in."""

import math
import unittest

import numpy

import penstock
from entry import main

NAN = math.nan


def masked(values, mask, dtype="float64"):
    return numpy.ma.masked_array(numpy.array(values, dtype), mask=mask)


class Masked(unittest.TestCase):
    def read(self, source, *arguments, **named):
        with penstock.Loader(source, *arguments, batch_size=8, num_workers=0,
                             shuffle=False, **named) as loader:
            return next(iter(loader)).numpy()

    def refused(self, *arguments, **named):
        with self.assertRaises(penstock.errors.Error) as raised:
            self.read(*arguments, **named)
        for text in ("2 values of the array are masked", "has no NaN", "filled"):
            self.assertIn(text, str(raised.exception))
        return raised.exception

    def test_arrays_are_nan_where_they_are_masked(self):
        for dtype in ("float64", "float32", "float16"):
            array = masked([1, 2, 3], [0, 1, 0], dtype)
            found = self.read({"m": array})["m"]
            self.assertEqual(found.dtype, dtype)
            numpy.testing.assert_array_equal(found, [1, NAN, 3])
            self.assertEqual(array.data[1], 2)  # is as it was
        rows = masked([[1, 2], [3, 4]], [[0, 0], [1, 1]])
        numpy.testing.assert_array_equal(self.read({"m": rows})["m"],
                                         [[1, 2], [NAN, NAN]])

    def test_integers_are_refused_where_they_are_masked(self):
        for dtype in ("int64", "uint8", "bool"):
            error = self.refused({"m": masked([1, 0, 1], [1, 1, 0], dtype)})
            self.assertEqual(error.code, "arrays.array")
            self.assertIn("'m'", str(error))

    def test_without_masked_values_they_are_plain_arrays(self):
        for mask in (False, [0, 0, 0]):
            found = self.read({"n": masked([1, 2, 3], mask, "int32")})
            self.assertEqual(found["n"].tolist(), [1, 2, 3])
            self.assertEqual(found["n"].dtype, "int32")

    def test_weights_that_are_masked_are_refused(self):
        with self.assertRaises(penstock.errors.Error) as raised:
            self.read({"x": numpy.arange(3.0)},
                      weights=masked([1, 2, 3], [0, 1, 0]))
        self.assertIn("NaN", str(raised.exception))

    def test_of_a_source_of_your_own(self):
        class Own:
            size = 3

            def __init__(self, dtype):
                self.values = masked([1, 2, 3], [0, 1, 0], dtype)

            def read(self, ids):
                return {"m": self.values[ids]}
        numpy.testing.assert_array_equal(self.read(Own("float32"))["m"],
                                         [1, NAN, 3])
        with self.assertRaises(penstock.SourceError) as raised:
            self.read(Own("int64"))
        self.assertIn("1 values of the array are masked", str(raised.exception))

    def test_of_a_source_with_columns(self):
        class Own:
            columns = {"m": "float64", "n": "int32", "v": "list[float32]"}

            def __len__(self):
                return 3

            def read(self, positions):
                return {"m": masked([1, 2, 3], [0, 1, 0])[positions],
                        "n": masked([1, 2, 3], [0, 1, 0], "int32")[positions],
                        "v": [masked([1, 2], [0, at == 1], "float32")
                              for at in positions]}
        found = self.read(Own(), {
            "m": {"column": "m", "missing": -1},
            "n": {"column": "n", "missing": -1, "dtype": "int32"},
            "v": {"array": {"column": "v", "shape": [2], "missing": -1}}})
        self.assertEqual(found["m"].tolist(), [1, -1, 3])
        self.assertEqual(found["n"].tolist(), [1, -1, 3])
        self.assertEqual(found["v"].tolist(), [[1, 2], [-1, -1], [1, 2]])

    def test_of_a_function_that_maps_rows(self):
        with penstock.Loader({"x": numpy.arange(4.0)}, batch_size=4) as loader:
            loader.map(lambda rows: {"y": numpy.ma.masked_less(rows["x"], 2)},
                       batched=True)
            numpy.testing.assert_array_equal(
                next(iter(loader)).numpy()["y"], [NAN, NAN, 2, 3])


if __name__ == "__main__":
    main()
