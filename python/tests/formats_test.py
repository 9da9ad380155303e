"""Batches that hold tensors: format="torch", "numpy" or "jax"."""
import unittest
import warnings

import numpy as np

import penstock
from entry import main
from positions import BATCH, Case, has

FIELDS = ["receivers", "target", "number"]


class Formats(Case):
    """As arrays of numpy, which are there wherever the package is."""

    def test_unpacks_the_fields_and_names_the_rest(self):
        plain = self.open()
        for batch, same in zip(self.open(format="numpy"), plain, strict=True):
            receivers, target, number = batch
            expected = same.host()
            np.testing.assert_array_equal(receivers, expected["receivers"])
            np.testing.assert_array_equal(target, expected["target"])
            np.testing.assert_array_equal(number, expected["number"])
            np.testing.assert_array_equal(batch["receivers_mask"],
                                          expected["receivers_mask"])
            np.testing.assert_array_equal(batch.ids, same.ids)
            self.assertEqual(dict(batch).keys(), expected.keys())
            self.assertEqual((len(batch), batch.step), (3, same.step))
            self.assertIs(batch[-1], number)
            self.assertIs(batch.target, target)

    def test_is_the_same_wherever_batches_are_given(self):
        loader = self.open(format="numpy", side="val")
        with open("/dev/null", "w", encoding="utf-8") as file:
            for batch in (loader.peek(), next(iter(loader)),
                          next(loader.batches(1)),
                          next(loader.progress(file=file))):
                self.assertTrue(all(isinstance(field, np.ndarray)
                                    for field in batch), batch)

    def test_weights_of_padding_come_by_name(self):
        loader = self.loader(format="numpy", source={
            "kind": "sqlite", "path": str(self.base), "table": "measurements"})
        *_, last = loader
        self.assertEqual(len(last), 2)
        padded = self.open(format="numpy", loader__tail="pad")
        *_, last = padded
        receivers, target, number = last
        self.assertEqual(last["weight"].sum(), (last.ids >= 0).sum())
        self.assertLess(last["weight"].sum(), BATCH)

    def test_of_several_sources_source_comes_by_name(self):
        one = f"sqlite:{self.base}#measurements"
        loader = self.loader(source=[one, {"source": one, "weight": 2}],
                             format="numpy", shuffle=True)
        batch = loader.peek()
        self.assertEqual(len(batch), 2)
        self.assertEqual(set(batch["source"].tolist()), {0, 1})

    def test_a_field_may_have_any_name(self):
        arrays = {"x": np.arange(6.), "x_mask": np.arange(6),
                  "source": np.arange(6)}
        with penstock.Loader(arrays, batch_size=6, format="numpy") as loader:
            x, mask, source = loader.peek()
            self.assertEqual(mask.tolist(), source.tolist())
        fields = {"lengths": ["tx_lat"], "mask": ["tx_lon"]}
        lengths, mask = self.loader(fields=fields, format="numpy").peek()
        self.assertEqual(lengths.shape, (BATCH, 1))

    def test_rows_that_differ_in_length_are_padded_with_their_lengths(self):
        path = self.folder / "ragged.jsonl"
        path.write_text('{"x": [1, 2]}\n{"x": [3]}\n{"x": []}\n')
        with penstock.Loader(path, {"x": {"array": {"column": "x",
                                                   "lengths": "padded"}}},
                             batch_size=3, format="numpy") as loader:
            batch = loader.peek()
            (x,) = batch
            self.assertEqual(x.tolist(), [[1, 2], [3, 0], [0, 0]])
            self.assertEqual(batch["x_lengths"].tolist(), [2, 1, 0])

    def test_packed_texts_stay_packed(self):
        path = self.folder / "texts.jsonl"
        path.write_text('{"x": "ab"}\n{"x": "c"}\n')
        with penstock.Loader(path, {"x": {"text": {"column": "x"}}},
                             batch_size=2, format="numpy") as loader:
            batch = loader.peek()
            (x,) = batch
            self.assertEqual(bytes(x), b"abc")
            self.assertEqual(batch["x_cu_seqlens"].tolist(), [0, 2, 3])
            self.assertEqual(batch.texts("x"), ["ab", "c"])

    def test_a_map_changes_what_a_batch_holds(self):
        loader = self.loader(format="numpy")
        loader.peek()
        loader.map(lambda row: {"sum": row["target"].sum(), **row})
        total, target, number = loader.peek()
        np.testing.assert_allclose(total, target.sum(axis=1), rtol=1e-6)

    def test_into_and_the_batches_without_a_format_are_as_before(self):
        loader = self.loader(format="numpy")
        target, number = (np.zeros_like(array) for array in loader.peek())
        rows = next(loader.into({"target": target, "number": number}))
        self.assertEqual(rows, BATCH)
        self.assertTrue(target.any())
        self.assertIsInstance(self.loader().peek(), penstock.Batch)

    def test_names_what_it_does_not_know(self):
        with self.assertRaisesRegex(ValueError, "'troch': did you mean 'torch'"):
            self.loader(format="troch")
        batch = self.open(format="numpy").peek()
        with self.assertRaisesRegex(KeyError, "targt.*'target'"):
            batch["targt"]
        with self.assertRaisesRegex(AttributeError, "targt.*'target'"):
            batch.targt
        with self.assertRaises(IndexError):
            batch[3]

    def test_a_library_that_is_missing_is_named(self):
        for name in ("torch", "jax"):
            if not has(name):
                with self.assertRaisesRegex(ImportError, f"needs {name}"):
                    self.loader(format=name)


@unittest.skipUnless(has("torch"), "torch is not installed")
class Tensors(Case):
    def test_a_loop_trains_on_what_it_unpacks(self):
        import torch
        loader = self.open(format="torch")
        for batch, same in zip(loader, self.open(), strict=True):
            expected = same.torch()
            for field, name in zip(batch, FIELDS, strict=True):
                self.assertTrue(torch.equal(field, expected[name]))
        model = torch.nn.Linear(15, 2)
        for receivers, target, number in loader:
            torch.nn.functional.mse_loss(model(receivers.flatten(1)),
                                         target).backward()
        self.assertIsNotNone(model.weight.grad)

    def test_unsigned_integers_are_widened_and_that_is_told_once(self):
        import torch
        arrays = {"small": np.array([1, 65535], "uint16"),
                  "large": np.array([1, 4294967295], "uint32"),
                  "bytes": np.array([1, 255], "uint8")}
        with penstock.Loader(arrays, batch_size=1, format="torch") as loader:
            with self.assertWarnsRegex(
                    UserWarning, "'large' from uint32 to int64, 'small' from "
                                 "uint16 to int32"):
                loader.peek()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                *_, (small, large, raw) = loader
        self.assertEqual((small.dtype, large.dtype, raw.dtype),
                         (torch.int32, torch.int64, torch.uint8))
        self.assertEqual((small.item(), large.item()), (65535, 4294967295))

    def test_a_field_in_place_of_a_tensor_names_the_format(self):
        import torch
        batch = self.open().peek()
        target = batch.target
        other = torch.zeros(BATCH, 2)
        for wrong in (lambda: torch.nn.Linear(2, 2)(target),
                      lambda: torch.nn.functional.mse_loss(other, target),
                      lambda: torch.stack([target, target]),
                      lambda: other + target):
            with self.assertRaisesRegex(TypeError, 'format="torch"'):
                wrong()
        with self.assertRaisesRegex(AttributeError, '\'float\'.*"torch"'):
            target.float()
        self.assertTrue(torch.equal(torch.as_tensor(target), target.torch()))
        self.assertTrue(torch.equal(torch.asarray(target), target.torch()))


@unittest.skipUnless(has("jax"), "JAX is not installed")
class OfJax(Case):
    def test_fields_are_arrays_of_jax(self):
        import jax
        for field in self.loader(format="jax").peek():
            self.assertIsInstance(field, jax.Array)


if __name__ == "__main__":
    main()
