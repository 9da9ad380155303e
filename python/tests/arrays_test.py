"""Arrays in memory as a loader's rows."""
import gc
import json
import unittest
import weakref

import numpy

import penstock
from entry import main
from positions import DEVICES, WORKERS, has, rows_of


class Arrays(unittest.TestCase):
    def setUp(self):
        self.x = numpy.arange(200, dtype="float32").reshape(100, 2)
        self.y = numpy.arange(100)

    def test_rows_of_arrays_come_as_they_are(self):
        for device in DEVICES:
            for workers in WORKERS:
                for cache in ("auto", "ram", "device"):
                    if (device, cache) == ("cpu", "device"):
                        continue
                    with penstock.Loader({"x": self.x, "y": self.y},
                                         batch_size=16, num_workers=workers,
                                         device=device, cache=cache) as loader:
                        self.assertEqual(len(loader), 7)
                        x, y = (rows_of(loader, name) for name in "xy")
                        numpy.testing.assert_array_equal(x, self.x)
                        numpy.testing.assert_array_equal(y, self.y)

    def test_shuffled_rows_are_each_there_once_and_belong_together(self):
        with penstock.Loader({"x": self.x, "y": self.y}, batch_size=16,
                             shuffle=True, seed=3) as loader:
            first, second = rows_of(loader, "y"), rows_of(loader, "y")
            for batch in loader:
                x, y = (array for array in batch.numpy().values())
                numpy.testing.assert_array_equal(x, self.x[y])
        self.assertEqual(sorted(first), list(range(100)))
        self.assertEqual(sorted(second), list(range(100)))
        self.assertNotEqual(list(first), list(second))

    def test_rows_are_drawn_by_weights_with_replacement(self):
        weights = numpy.zeros(100, dtype="float32")
        weights[[3, 50]] = 1, 3
        for given, arrays in ((weights, {"y": self.y}),
                              ("w", {"y": self.y, "w": weights})):
            with penstock.Loader(arrays, batch_size=10, weights=given, seed=5,
                                 num_workers=0) as loader:
                drawn = numpy.concatenate(
                    [rows_of(loader, "y") for _ in range(20)])
            self.assertEqual(set(drawn), {3, 50})
            self.assertAlmostEqual((drawn == 50).mean(), 0.75, delta=0.05)
        with penstock.Loader({"y": self.y, "c": self.y == 7}, fields=["y"],
                             batch_size=10, balance="c") as loader:
            drawn = numpy.concatenate(
                [rows_of(loader, "y") for _ in range(20)])
        self.assertAlmostEqual((drawn == 7).mean(), 0.5, delta=0.06)

    def test_weights_that_are_none_are_refused(self):
        for weights, why in (
                (numpy.ones(99), r"\[99\], expected \[100\]"),
                (numpy.ones((100, 2)), "expected"),
                (numpy.zeros(100), "are zero"),
                (-self.y, "row 1.*found -1"),
                (numpy.full(100, numpy.nan), "row 0.*found NaN"),
                ("z", "no array has that name")):
            with self.assertRaisesRegex(penstock.RequestError, f"(?s){why}"):
                penstock.Loader({"y": self.y}, weights=weights)
        with self.assertRaisesRegex(TypeError, "the name of a column"):
            penstock.Loader("csv:/nowhere.csv", fields=["y"], weights=[1, 2])
        with self.assertRaisesRegex(TypeError, "balance is a ndarray"):
            penstock.Loader({"y": self.y}, balance=self.y)
        with self.assertRaisesRegex(penstock.RequestError, "balance"):
            penstock.Loader({"y": self.y}, balance="z")

    def test_zeros_are_one_value_to_balance(self):
        z = numpy.array([0.0] * 50 + [-0.0] * 40 + [1.0] * 10)
        with penstock.Loader({"z": z}, batch_size=100, balance="z") as loader:
            drawn = numpy.concatenate(
                [rows_of(loader, "z") for _ in range(30)])
        self.assertAlmostEqual((drawn == 1).mean(), 0.5, delta=0.06)

    def test_a_part_of_the_rows_is_used(self):
        for limit, rows in ((10, 10), (1000, 100), ("50%", None)):
            with penstock.Loader({"y": self.y}, batch_size=7,
                                 limit=limit) as loader:
                seen = rows_of(loader, "y")
            self.assertEqual(len(set(seen)), len(seen))
            if rows is None:
                self.assertTrue(30 < len(seen) < 70)
            else:
                self.assertEqual(len(seen), rows)

    def test_all_numpy_types_of_numbers_and_every_layout_go(self):
        arrays = {name: numpy.arange(10).astype(name) for name in
                  penstock._rows.callables.DTYPES}
        arrays["fortran"] = numpy.asfortranarray(self.x[:10])
        arrays["strided"] = self.x[:20:2]
        arrays["big_endian"] = self.y[:10].astype(">i4")
        arrays["flags"] = self.y[:10] % 2 == 0
        arrays["empty"] = numpy.zeros((10, 0), "float32")
        locked = self.x[:10].copy()
        locked.flags.writeable = False
        arrays["read_only"] = locked
        with penstock.Loader(arrays, batch_size=10) as loader:
            batch = next(iter(loader)).numpy()
            self.assertEqual(list(batch), list(arrays))
            for name, array in arrays.items():
                numpy.testing.assert_array_equal(batch[name], array, name)
                self.assertEqual(batch[name].dtype,
                                 array.dtype.newbyteorder("="))

    def test_fields_choose_and_rename_arrays(self):
        arrays = {"x": self.x, "y": self.y}
        with penstock.Loader(arrays, ["y"], batch_size=4) as loader:
            self.assertEqual(list(loader.peek().keys()), ["y"])
        with penstock.Loader(arrays, {"label": "y"}, batch_size=4) as loader:
            self.assertEqual(list(loader.peek().keys()), ["label"])

    def test_a_split_holds_rows_out(self):
        seen = []
        for side in ("train", "val"):
            with penstock.Loader({"y": self.y}, batch_size=8, side=side, split={
                    "train": 0.7, "val": 0.3, "seed": 1}) as loader:
                seen.append(set(rows_of(loader, "y").tolist()))
        self.assertEqual(seen[0] | seen[1], set(range(100)))
        self.assertFalse(seen[0] & seen[1])
        self.assertTrue(50 < len(seen[0]) < 90)

    def test_ranks_share_the_rows(self):
        seen = []
        for rank in (0, 1):
            with penstock.Loader({"y": self.y}, batch_size=8, rank=rank,
                                 world=2) as loader:
                seen += rows_of(loader, "y").tolist()
        self.assertEqual(sorted(seen), list(range(100)))

    def test_a_state_goes_on_with_the_same_arrays_alone(self):
        def loader(**more):
            return penstock.Loader({"y": self.y}, batch_size=8, shuffle=True,
                                   seed=1, **more)
        with loader() as all_at_once, loader(num_workers=2) as later:
            for _ in all_at_once.batches(5):
                pass
            state = json.loads(json.dumps(all_at_once.state_dict()))
            rest = rows_of(all_at_once.batches(8), "y")
            later.load_state_dict(state)
            numpy.testing.assert_array_equal(rows_of(later, "y"), rest)
        self.y = self.y + 1
        with loader() as other:
            with self.assertRaises(penstock.RequestError) as raised:
                other.load_state_dict(state)
            self.assertEqual(raised.exception.code, "resume.other_data")

    def test_row_keys_are_the_numbers_of_the_rows(self):
        with penstock.Loader({"y": self.y}, batch_size=3) as loader:
            self.assertEqual(loader.peek().row_keys, [0, 1, 2])

    def test_arrays_are_kept_as_long_as_they_are_needed_and_no_longer(self):
        class Array(numpy.ndarray):
            """An array that can be watched."""
        array = self.y.view(Array)
        watched = weakref.ref(array)
        loader = penstock.Loader({"y": array}, batch_size=4, num_workers=2)
        del array
        gc.collect()
        batch = next(iter(loader))
        numpy.testing.assert_array_equal(batch.numpy()["y"], [0, 1, 2, 3])
        loader.close()
        del batch, loader
        gc.collect()
        self.assertIsNone(watched())

    def test_what_makes_no_rows_is_refused(self):
        for arrays, code in (
                ({"a": self.x, "b": self.y[:50]}, "arrays.length"),
                ({"a": numpy.float32(1)}, None),
                ({"a": self.y[:0]}, None),
                ({"a": numpy.array(["x"])}, "arrays.array"),
                ({"a": numpy.array([object()])}, "arrays.array"),
                ({"a": numpy.array([1j])}, "arrays.array"),
                ({"a": [1, 2, 3]}, "arrays.array"),
                ({}, None)):
            with self.assertRaises(penstock.RequestError, msg=arrays) as raised:
                penstock.Loader(arrays, batch_size=1)
            if code:
                self.assertEqual(raised.exception.code, code)
            self.assertTrue(raised.exception.next)
        with self.assertRaises(penstock.RequestError) as raised:
            penstock.Loader({"y": self.y}, ["z"])
        self.assertEqual(raised.exception.code, "arrays.field")
        with self.assertRaisesRegex(TypeError, "penstock.DataLoader"):
            penstock.Loader(object())

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_torch_tensors_go_too(self):
        import torch
        tensors = {"h": torch.arange(12, dtype=torch.bfloat16).reshape(6, 2),
                   "t": torch.arange(12.).reshape(2, 6).T,
                   "g": torch.ones(6, requires_grad=True)}
        with penstock.Loader(tensors, batch_size=6) as loader:
            batch = next(iter(loader)).torch()
            for name, tensor in tensors.items():
                self.assertTrue(torch.equal(batch[name], tensor.detach()))


if __name__ == "__main__":
    main()
