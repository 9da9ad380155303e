"""Items become batches by torch's rules, with torch and without."""
import collections
import tempfile
import unittest

import numpy as np

import dataloader_sets as sets
from dataloader_case import Case, needs_torch, torch
from dataloader_sets import Of, Pair
from entry import main
from penstock._dataloader.collate import (collate_by_numpy, default_convert,
                                          same)


def by_numpy(items):
    return collate_by_numpy(items, same)


class Mine(list):
    pass


class ByNumpy(unittest.TestCase):
    def assert_array(self, array, dtype, values):
        self.assertEqual(array.dtype, dtype)
        self.assertEqual(array.tolist(), values)

    def test_numbers(self):
        self.assert_array(by_numpy([1, 2]), np.int64, [1, 2])
        self.assert_array(by_numpy([1.0, 2]), np.float64, [1, 2])
        self.assert_array(by_numpy([1, 2.5]), np.float32, [1, 2.5])
        self.assert_array(by_numpy([True, False]), np.bool_, [True, False])
        self.assert_array(by_numpy([np.int8(3), np.int8(4)]), np.int8, [3, 4])

    def test_arrays(self):
        stacked = by_numpy([np.ones((2, 3), np.float16)] * 4)
        self.assertEqual((stacked.shape, stacked.dtype),
                         ((4, 2, 3), np.float16))
        self.assert_array(by_numpy([np.array(5), np.array(6)]), np.int64,
                          [5, 6])

    def test_texts_and_bytes_stay_a_list(self):
        self.assertEqual(by_numpy(["a", "b"]), ["a", "b"])
        self.assertEqual(by_numpy([b"a", b"b"]), [b"a", b"b"])

    def test_containers_field_by_field(self):
        got = by_numpy([{"a": [1, (2, "x")]}, {"a": [3, (4, "y")]}])
        self.assertEqual(got["a"][0].tolist(), [1, 3])
        self.assertEqual(got["a"][1][0].tolist(), [2, 4])
        self.assertEqual(got["a"][1][1], ("x", "y"))
        pair = by_numpy([Pair(1, 2.0), Pair(3, 4.0)])
        self.assertIsInstance(pair, Pair)
        self.assertEqual(pair.x.tolist(), [1, 3])

    def test_mappings_keep_their_kind(self):
        ordered = by_numpy([collections.OrderedDict(b=1, a=2)] * 2)
        self.assertIsInstance(ordered, collections.OrderedDict)
        self.assertEqual(list(ordered), ["b", "a"])
        default = collections.defaultdict(list, a=1)
        self.assertIs(by_numpy([default, default]).default_factory, list)

    def test_lists_keep_their_kind_and_ranges_become_lists(self):
        got = by_numpy([Mine([1, 2]), Mine([3, 4])])
        self.assertIsInstance(got, Mine)
        self.assert_array(got[1], np.int64, [2, 4])
        got = by_numpy([range(2), range(2)])
        self.assertIs(type(got), list)
        self.assert_array(got[1], np.int64, [1, 1])

    def test_rows_of_a_memory_map(self):
        with tempfile.TemporaryFile() as file:
            rows = np.memmap(file, np.int32, "w+", shape=(4, 2))
            rows[:] = np.arange(8).reshape(4, 2)
            self.assert_array(by_numpy(list(rows)), np.int32,
                              [[0, 1], [2, 3], [4, 5], [6, 7]])

    def test_the_first_item_is_not_changed(self):
        first = {"a": [1]}
        by_numpy([first, {"a": [2]}])
        self.assertEqual(first, {"a": [1]})

    def test_what_has_no_place(self):
        for thing in (object(), None, np.array(["a"]),
                      np.array([None], dtype=object)):
            with self.assertRaises(TypeError):
                by_numpy([thing, thing])


@needs_torch
class AgainstTorch(Case):
    """A worker without torch collates what torch's own would."""

    def test_numpys_rules_are_torchs(self):
        rows = [
            [1, 2], [1.5, 2], [2, 1.5], [True, False], ["a", "b"], [b"a"],
            [np.float32(1)] * 2, [np.int16(1)] * 2, [np.bool_(1)] * 2,
            [np.ones((2, 2))] * 3, [np.array(1)] * 2, [{"a": 1, "b": "x"}] * 2,
            [[1, [2.0, "t"]]] * 2, [(1, (2, 3))] * 2, [Pair(1, {"z": [1]})],
            [sets.mixed(i) for i in range(4)], [Mine([1, 2])] * 2]
        for items in rows:
            with self.subTest(items=items):
                ours = collate_by_numpy(items, torch.from_numpy)
                self.assert_same(ours, torch.utils.data.default_collate(items))

    def test_default_convert_is_torchs(self):
        for item in (1, 2.5, "a", b"a", np.float32(2), np.ones(3),
                     {"a": np.ones(2), "b": [np.int8(1), "x"]},
                     (np.ones(1), 2), Pair(np.ones(1), "s"),
                     np.array(["x"]), [np.ones(2), {"k": np.zeros(1)}], None):
            with self.subTest(item=item):
                self.assert_same(default_convert(item),
                                 torch.utils.data.default_convert(item))

    def test_workers_give_tensors_as_torchs_loader_does(self):
        for workers in (0, 1, 2):
            ours = list(self.loader(Of(6, sets.mixed), batch_size=4,
                                    num_workers=workers))
            theirs = list(torch.utils.data.DataLoader(Of(6, sets.mixed),
                                                      batch_size=4))
            self.assert_same(ours, theirs)

    def test_torchs_own_default_collate_can_be_named(self):
        loader = self.loader(
            Of(4, sets.mixed), batch_size=4, num_workers=1,
            collate_fn=torch.utils.data.default_collate)
        self.assertIsInstance(next(iter(loader))["x"], torch.Tensor)


class WithoutTorch(Case):
    def test_workers_give_arrays_where_torch_is_not_there(self):
        if torch is not None:
            self.skipTest("torch is there")
        for workers in (0, 2):
            batch = next(iter(self.loader(Of(6, sets.mixed), batch_size=4,
                                          num_workers=workers)))
            self.assertIsInstance(batch["x"], np.ndarray)
            self.assertEqual(batch["x"].shape, (4, 3))
            self.assertEqual(batch["name"], ["row 0", "row 1", "row 2",
                                             "row 3"])


if __name__ == "__main__":
    main()
