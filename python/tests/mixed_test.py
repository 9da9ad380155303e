"""Several sources in one loader, and fields that people write every time."""
import csv
import json
import pathlib
import shutil
import sqlite3
import tempfile
import unittest
from contextlib import closing

import numpy as np

import penstock
from entry import main

FIELDS = {"x": {"columns": ["a", "b"], "standardize": True},
          "name": {"text": {"column": "name"}}}


def seen(batches):
    return [(b.epoch, b.step, b.ids.tolist(),
             {name: array.tobytes() for name, array in b.host().items()})
            for b in batches]


class Mixed(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-mixed-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with open(self.folder / "d.csv", "w", newline="") as file:
            csv.writer(file).writerows(
                [("a", "b", "name"),
                 *((i, i / 2, f"größe {i}") for i in range(100))])
        with closing(sqlite3.connect(self.folder / "d.sqlite")) as base:
            base.execute("CREATE TABLE t (a REAL, b REAL, name TEXT)")
            base.executemany("INSERT INTO t VALUES (?, ?, ?)",
                             [(1000 + i, -i, f"row {i}") for i in range(40)])
            base.commit()
        self.csv = self.folder / "d.csv"
        self.sqlite = f"sqlite:{self.folder / 'd.sqlite'}#t"

    def open(self, sources=None, **options):
        loader = penstock.Loader(
            sources or [{"source": self.csv, "weight": 3}, self.sqlite],
            options.pop("fields", FIELDS), options.pop("batch_size", 8),
            shuffle=options.pop("shuffle", True), seed=5, **options)
        self.addCleanup(loader.close)
        return loader

    def test_a_list_of_files_of_one_kind_is_all_of_their_rows(self):
        one, two = self.folder / "1.csv", self.folder / "2.csv"
        one.write_text("x\n" + "\n".join(map(str, range(100))) + "\n")
        two.write_text("x\n1000\n1001\n")
        rows = [*range(100), 1000, 1001]
        for files in ([one, two], (str(one), str(two))):
            with penstock.Loader(files, batch_size=200) as loader:
                batch = next(iter(loader)).numpy()
            self.assertEqual(batch["x"].tolist(), rows)
            self.assertNotIn("source", batch)
        with penstock.Loader([two, one], batch_size=200, where="x > 98"
                             ) as loader:
            self.assertEqual(next(iter(loader)).numpy()["x"].tolist(),
                             [1000, 1001, 99])
        for files, more in (([one, two], {"exhausted": "stop"}),
                            ([{"source": one}, two], {}),
                            ([self.csv, self.sqlite], {})):
            field = {"x": ["x" if two in files else "b"]}
            with penstock.Loader(files, field, **more) as loader:
                self.assertIn("source", next(iter(loader)).numpy())

    def test_each_row_says_where_it_came_from(self):
        loader = self.open()
        self.assertEqual(len(loader), -(-133 // 8))
        counts = np.zeros(2, int)
        for batch in loader:
            source = batch.host()["source"]
            self.assertEqual(source.dtype, np.int32)
            names = batch.texts("name")
            for at, key in zip(source, batch.row_keys):
                self.assertEqual(key.split(":")[0], str(at))
            for at, name in zip(source, names):
                self.assertTrue(name.startswith(("größe ", "row ")[at]), name)
            counts += np.bincount(source, minlength=2)
        self.assertEqual(counts.tolist(), [100, 33])

    def test_repeats_until_each_source_was_used_up(self):
        loader = self.open([self.csv, self.sqlite], exhausted="repeat")
        sources = np.concatenate([b.host()["source"] for b in loader])
        self.assertEqual(np.bincount(sources).tolist(), [100, 100])

    def test_statistics_are_those_of_all(self):
        a = np.array([*range(100), *range(1000, 1040)], float)
        found = self.open().statistics["x"]["a"]
        self.assertAlmostEqual(found["mean"], a.mean())
        self.assertAlmostEqual(found["deviation"], a.std())

    def test_statistics_of_a_source_are_its_own_where_its_fields_are(self):
        own = {**FIELDS, "x": {"columns": ["b", "a"], "standardize": True}}
        loader = self.open([self.csv, {"source": self.sqlite, "fields": own}])
        found = loader.statistics["sources"]
        self.assertAlmostEqual(found[0]["x"]["a"]["mean"], 49.5)
        self.assertAlmostEqual(found[1]["x"]["a"]["mean"], 1019.5)

    def test_goes_on_at_every_batch_on_any_number_of_ranks(self):
        whole = seen(self.open(exhausted="repeat").batches(42))
        for taken in range(0, 40, 3):
            loader = self.open(exhausted="repeat", num_workers=taken % 3)
            for _ in loader.batches(taken):
                pass
            state = loader.state_dict()
            self.assertLessEqual(len(json.dumps(state)), 128)
            other = self.open(exhausted="repeat", num_workers=2, cache="none")
            other.load_state_dict(state)
            self.assertEqual(seen(other.batches(2)), whole[taken:taken + 2])
        with self.assertRaises(penstock.RequestError) as caught:
            self.open(exhausted="stop").load_state_dict(state)
        self.assertIn(caught.exception.code,
                      ("resume.other_data", "resume.other_order"))
        with self.assertRaises(penstock.RequestError) as caught:
            self.open(rank=0, world=2)
        self.assertIn("sources[1].source.fingerprint", str(caught.exception))
        parts = loader.stats()["dataset"]["sources"]
        named = [{"source": {"kind": "csv", "path": str(self.csv),
                             "fingerprint": parts[0]["fingerprint"]},
                  "weight": 3},
                 {"source": {"kind": "sqlite", "table": "t",
                             "path": str(self.folder / "d.sqlite"),
                             "fingerprint": parts[1]["fingerprint"]}}]
        for world in (1, 2, 4):
            ranks = [[b.ids.tolist() for b in
                      self.open(named, exhausted="repeat", rank=rank,
                                world=world, batch_size=8 // world)
                      .batches(10)] for rank in range(world)]
            self.assertEqual([sum(step, []) for step in zip(*ranks)],
                             [ids for _, _, ids, _ in whole[:10]])

    def test_a_job_may_have_them_too(self):
        job = {"sources": [{"source": str(self.csv), "weight": 3},
                           {"source": self.sqlite}], "fields": FIELDS,
               "loader": {"batch_size": 8, "seed": 5, "tail": "exact"}}
        with penstock.open(job) as loader:
            self.assertEqual(seen(loader.batches(5)),
                             seen(self.open().batches(5)))

    def test_what_cannot_be_mixed_is_refused(self):
        for sources, text in (
                ([{"x": np.zeros(3)}, self.sqlite], "rows in memory"),
                ([self.csv, 3], "sources[1] is a int"),
                ([{"weight": 2}, self.csv], "sources[0]")):
            with self.assertRaises(TypeError) as caught:
                self.open(sources)
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(TypeError) as caught:
            self.open(where="a > 3")
        self.assertIn("one source", str(caught.exception))
        with self.assertRaises(penstock.RequestError):
            self.open([{"source": self.csv}])
        with self.assertRaises(penstock.RequestError):
            self.open(weights="a")
        with self.assertRaises(penstock.RequestError):
            penstock.Loader(self.csv, ["a"], exhausted="stop")

    def test_own_fields_need_none_of_the_loader(self):
        loader = self.open(
            [{"source": self.csv, "fields": ["a"]},
             {"source": self.sqlite, "fields": {"a": ["b"]}}], fields=None)
        self.assertEqual(next(iter(loader)).host()["a"].shape, (8, 1))


class Maths(unittest.TestCase):
    """What people write every time, and what undoes it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-maths-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.values = np.random.default_rng(1).lognormal(2, 1, 500).round(6)
        with open(self.folder / "d.csv", "w", newline="") as file:
            csv.writer(file).writerows(
                [("v", "kind"), *((value, "abc"[i % 3]) for i, value
                                  in enumerate(self.values.tolist()))])

    def loaded(self, rule):
        with penstock.Loader(self.folder / "d.csv", {"x": rule}, 500) as loader:
            [batch] = loader
            return batch.host()["x"], loader.statistics["x"]

    def test_bucketize(self):
        made, found = self.loaded({"column": "v", "bucketize": [5, 10, 20]})
        self.assertEqual(made.tolist(),
                         np.digitize(self.values, [5, 10, 20]).tolist())
        self.assertEqual(found["v"]["edges"], [5, 10, 20])
        made, found = self.loaded({"column": "v", "bucketize": 4})
        self.assertEqual(np.bincount(made).tolist(), [125] * 4)
        np.testing.assert_allclose(
            found["v"]["edges"], np.quantile(self.values, [.25, .5, .75]),
            rtol=1e-12)

    def test_quantile(self):
        made, found = self.loaded({"column": "v", "quantile": "uniform",
                                   "dtype": "float64"})
        places = np.linspace(0, 1, 1001)
        np.testing.assert_allclose(found["v"]["quantiles"],
                                   np.quantile(self.values, places),
                                   rtol=1e-12)
        np.testing.assert_allclose(
            np.interp(made, places, found["v"]["quantiles"]), self.values,
            rtol=1e-9)
        made, found = self.loaded({"column": "v", "quantile": "normal"})
        self.assertTrue(found["v"]["normal"])
        self.assertAlmostEqual(float(made.mean()), 0, places=2)

    def test_one_hot(self):
        made, found = self.loaded({"category": {"column": "kind",
                                                "unknown": "error",
                                                "one_hot": 3}})
        self.assertEqual(made.shape, (500, 3))
        self.assertEqual([found["classes"][at] for at in made.argmax(1)[:4]],
                         ["a", "b", "c", "a"])
        self.assertTrue((made.sum(1) == 1).all())
        with self.assertRaises(penstock.RequestError) as caught:
            self.loaded({"category": {"column": "kind", "one_hot": 3}})
        self.assertEqual(caught.exception.code, "fields.one_hot")

    def test_text(self):
        with penstock.Loader(self.folder / "d.csv",
                             {"x": {"text": {"column": "kind"}}}, 4) as loader:
            batch = next(iter(loader))
            self.assertEqual(batch.texts("x"), ["a", "b", "c", "a"])
            arrays = batch.host()
            self.assertEqual(arrays["x"].tobytes(), b"abca")
            self.assertEqual(arrays["x_cu_seqlens"].tolist(), [0, 1, 2, 3, 4])
            with self.assertRaises(KeyError):
                batch.texts("x_cu_seqlens")
            with self.assertRaises(KeyError):
                batch.texts("y")


if __name__ == "__main__":
    main()
