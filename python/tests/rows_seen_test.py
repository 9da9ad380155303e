"""Which rows reach a loop and a user's function: those of the side that was
asked for, and none that is bad or only fills up a batch."""
import unittest

import numpy

import penstock
from entry import main

BAD = 7


class Numbers:
    """Rows 0 .. 99 of an object of the user, made when they are read."""
    size = 100

    def read(self, ids):
        return {"n": ids}


class WithABadRow:
    """2,000 rows of a user's own source, of which one is infinite."""
    columns = {"a": "float64", "b": "float64"}

    def __len__(self):
        return 2000

    def read(self, positions):
        p = numpy.asarray(positions)
        return {"a": p * 1.0, "b": numpy.where(p == BAD, numpy.inf, p * 2.0)}


class OfAnObject(unittest.TestCase):
    def numbers(self, side="train", **arguments):
        with penstock.Loader(Numbers(), batch_size=10, side=side,
                             **arguments) as loader:
            return [n for batch in loader for n in batch.numpy()["n"].tolist()]

    def test_a_split_is_that_of_arrays(self):
        split = {"val": 0.3, "seed": 4}
        sides = [self.numbers(side, split=split) for side in ("train", "val")]
        self.assertEqual(sorted(sum(sides, [])), list(range(100)))
        for side, ours in zip(("train", "val"), sides):
            with penstock.Loader({"n": numpy.arange(100)}, batch_size=10,
                                 split=split, side=side) as arrays:
                self.assertEqual(ours, [n for batch in arrays
                                        for n in batch.numpy()["n"].tolist()])

    def test_a_split_holds_in_every_order(self):
        split = {"val": 0.3, "seed": 4}
        train = set(self.numbers(split=split))
        for order in {"shuffle": True}, {"shuffle": True, "order": {
                "paged": {"page": 4, "window": 2}}}:
            self.assertEqual(set(self.numbers(split=split, **order)), train)

    def test_a_limit_leaves_so_many_of_each_side(self):
        self.assertEqual(len(self.numbers(limit=20)), 20)
        self.assertEqual(len(self.numbers("val", split={"val": 0.3},
                                          limit=8)), 8)

    def test_what_cannot_be_done_is_refused_by_name(self):
        for named in ({"weights": "n"}, {"balance": "n"}, {"cache": "ram"},
                      {"cache": "disk"}, {"cache": {"ram_gib": 1}}):
            with self.subTest(named), self.assertRaises(
                    penstock.RequestError) as refused:
                self.numbers(**named)
            self.assertEqual(refused.exception.code, "source.setting")
            self.assertEqual(refused.exception.where,
                             "loader." + next(iter(named)))
        for named in {"where": "n > 3"}, {"on_bad": "skip"}, {"key": "n"}, {
                "query": "select 1"}:
            with self.subTest(named), self.assertRaisesRegex(
                    TypeError, next(iter(named))):
                self.numbers(**named)


class OfAFunction(unittest.TestCase):
    def opened(self, on_bad, workers=0, tail="exact"):
        return penstock.open({
            "source": WithABadRow(),
            "fields": {name: {"column": name, "dtype": "float64"}
                       for name in "ab"},
            "loader": {"batch_size": 10, "tail": tail, "shuffle": False,
                       "on_bad": on_bad, "workers": workers, "cache": "none"},
            "device": "cpu"})

    def test_a_row_that_is_masked_is_given_to_no_function(self):
        for workers in 0, 4:
            seen = []

            def doubled(row):
                seen.append(float(row["b"]))
                return {"a": row["a"] * 2, "b": row["b"]}
            with self.opened("mask", workers) as loader:
                batch = next(iter(loader.map(doubled)))
                self.assertEqual(batch.numpy()["a"].tolist(), [
                    0 if row == BAD else row * 2 for row in range(10)])
                self.assertEqual(batch.numpy()["weight"].tolist(),
                                 [row != BAD for row in range(10)])
            # Row 0 alone is 0; it was tried on it, too.
            self.assertEqual((seen.count(0.0), seen.count(2.0)), (2, 1))
            self.assertNotIn(numpy.inf, seen)

    def test_a_batch_that_is_mapped_is_without_it(self):
        for workers in 0, 4:
            seen = []

            def centred(rows):
                seen.append(rows["a"].tolist())
                return {"a": rows["a"] - rows["a"].mean(),
                        "n": numpy.full(len(rows["a"]), len(rows["a"]))}
            with self.opened("mask", workers) as loader:
                batch = next(iter(loader.map(centred, batched=True)))
            good = [float(row) for row in range(10) if row != BAD]
            self.assertIn(good, seen)
            mean = sum(good) / 9
            self.assertEqual(batch.numpy()["a"].tolist(), [
                0 if row == BAD else row - mean for row in range(10)])
            self.assertEqual(batch.numpy()["n"].tolist(), [9] * 7 + [0] + [9] * 2)
            self.assertTrue(all(len(rows) == 9 for rows in seen
                                if rows[0] == 0))

    def test_a_batch_that_is_mapped_has_the_substitute_in_its_place(self):
        found = []
        for workers in 0, 4:
            def centred(rows):
                return {"a": rows["a"], "mean": numpy.full(
                    len(rows["a"]), rows["a"].mean())}
            with self.opened("substitute", workers) as loader:
                loader.map(centred, batched=True)
                loader.map(lambda rows: dict(rows), batched=True)
                batch = next(iter(loader))
                rejected, = batch.rejected
                self.assertEqual((rejected["row"], rejected["key"]),
                                 (BAD, BAD))
                other = rejected["substitute"]
                self.assertEqual(batch.ids.tolist()[BAD], other)
                rows = [*range(BAD), other, 8, 9]
                self.assertEqual(batch.numpy()["a"].tolist(), rows)
                self.assertEqual(batch.numpy()["mean"].tolist(), [sum(rows) / 10] * 10)
            with self.opened("substitute", workers) as plain:
                found.append((other, next(iter(plain)).ids.tolist()[BAD]))
        self.assertEqual(len({one for pair in found for one in pair}), 1)

    def test_it_is_tried_without_the_weights_of_the_loader(self):
        for on_bad, tail in ("mask", "pad"), ("mask", "exact"):
            keys = []
            with self.opened(on_bad, tail=tail) as loader:
                loader.map(lambda row: keys.append(sorted(row)) or dict(row))
                self.assertEqual(keys, [["a", "b"]])
                with self.assertRaisesRegex(penstock.TransformError,
                                            "KeyError: 'weight'"):
                    loader.map(lambda row: {"a": row["a"] * row["weight"]})

    def test_it_is_tried_on_a_row_that_is_not_bad(self):
        class BeginsBadly(WithABadRow):
            def read(self, positions):
                p = numpy.asarray(positions)
                return {"a": p * 1.0, "b": numpy.where(p < 3, numpy.inf, p)}
        seen = []
        with penstock.open({
                "source": BeginsBadly(), "fields": {
                    "b": {"column": "b", "dtype": "float64"}},
                "loader": {"batch_size": 6, "shuffle": False, "workers": 0,
                           "on_bad": "mask", "cache": "none"},
                "device": "cpu"}) as loader:
            loader.map(lambda row: seen.append(float(row["b"])) or dict(row))
        self.assertEqual(seen, [3.0])


class States(unittest.TestCase):
    def test_a_place_that_no_run_gets_to_is_refused(self):
        with penstock.Loader({"x": numpy.arange(100)},
                             batch_size=10) as loader:
            good = loader.state_dict()
            for wrong in ({"epoch": 2 ** 63 - 1}, {"step": 2 ** 63 - 1},
                          {"epoch": 2 ** 64}, {"epoch": -1}, {"step": 10}):
                with self.subTest(wrong), self.assertRaises(
                        penstock.RequestError):
                    loader.load_state_dict({**good, **wrong})
            with self.assertRaises(penstock.RequestError):
                loader.set_epoch(2 ** 63 - 1)
            self.assertEqual(loader.state_dict(), good)
            last = {**good, "epoch": 2 ** 62, "step": 9}
            loader.load_state_dict(last)
            self.assertEqual(next(iter(loader)).epoch, last["epoch"])

    def test_so_is_one_of_the_drop_in_for_torch(self):
        loader = penstock.DataLoader([1, 2, 3, 4], batch_size=2)
        good = loader.state_dict()
        for wrong in ({"epoch": 2 ** 63 - 1}, {"step": 2 ** 63},
                      {"seed": -1}, {"seed": 2 ** 64}):
            with self.subTest(wrong), self.assertRaises(
                    penstock.RequestError):
                loader.load_state_dict({**good, **wrong})
        loader.load_state_dict(good)


class OfDifferentLengths(unittest.TestCase):
    def test_no_function_maps_them(self):
        rows = pyarrow_or_skip(self).table(
            {"s": [[1.0] * (i % 5 + 1) for i in range(20)],
             "y": list(range(20))})
        with penstock.Loader(rows, batch_size=4) as loader:
            with self.assertRaises(penstock.RequestError) as raised:
                loader.map(lambda batch: {"y2": batch["y"] * 2})
        self.assertEqual(raised.exception.code, "map.lengths")
        self.assertIn("'s'", str(raised.exception))


def pyarrow_or_skip(test):
    try:
        import pyarrow
    except ImportError:
        test.skipTest("pyarrow is not installed")
    return pyarrow


if __name__ == "__main__":
    main()
