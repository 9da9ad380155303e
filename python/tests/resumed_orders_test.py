"""Orders that draw rows go on at every batch: by weights, balanced, limited,
mixed, and several of these together, with other workers."""

import contextlib
import pathlib
import sqlite3
import tempfile
import unittest

import penstock

ROWS = 90
BATCHES = 30  # more than an epoch of the longest of these
MIXED = {"fields": {"x": "x"}, "exhausted": "repeat"}


class GoesOn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        folder = pathlib.Path(folder.name)
        self.csv = folder / "t.csv"
        self.csv.write_text("x,w\n" + "".join(
            f"{i},{i % 4}\n" for i in range(ROWS)))
        base = folder / "d.sqlite"
        self.sqlite = f"sqlite:{base}#t"
        with contextlib.closing(sqlite3.connect(base)) as made, made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, "
                         "w REAL, kind TEXT)")
            made.executemany(
                "INSERT INTO t VALUES (?, ?, ?, ?)",
                [(i, i, i % 5, "aaaab"[i % 5]) for i in range(ROWS)])

    def open(self, source, **settings):
        loader = penstock.Loader(
            source, **{"fields": ["x"], "shuffle": True, "seed": 4,
                       "batch_size": 12, "device": "cpu", **settings})
        self.addCleanup(loader.close)
        return loader

    def goes_on(self, source, **settings):
        loader = self.open(source, **settings)
        states, seen = [], []
        for batch in loader.batches(BATCHES):
            seen.append((batch.epoch, batch.step, batch.ids.tolist(),
                         batch.numpy()["x"].tolist()))
            states.append(loader.state_dict())
        self.assertGreater(seen[-1][0], seen[0][0], "one epoch alone")
        self.assertGreater(len({str(one[2]) for one in seen}), BATCHES // 2)
        other = self.open(source, num_workers=2, **settings)
        for at, state in enumerate(states[:-1], 1):
            other.load_state_dict(state)
            self.assertEqual(
                [(batch.epoch, batch.step, batch.ids.tolist(),
                  batch.numpy()["x"].tolist())
                 for batch in other.batches(BATCHES - at)], seen[at:])

    def test_by_weights(self):
        self.goes_on(self.sqlite, weights="w")
        self.goes_on(str(self.csv), weights="w")

    def test_balanced(self):
        self.goes_on(self.sqlite, balance="kind")

    def test_limited(self):
        self.goes_on(self.sqlite, limit=50)
        self.goes_on(self.sqlite, limit="40%")
        self.goes_on(str(self.csv), limit=50,
                     split={"train": 0.8, "val": 0.2})

    def test_by_weights_and_limited(self):
        self.goes_on(self.sqlite, weights="w", limit=60)
        self.goes_on(self.sqlite, balance="kind", limit="50%")

    def test_in_pages(self):
        pages = {"paged": {"page": 8, "window": 32}}
        self.goes_on(self.sqlite, order=pages, limit=60)

    def test_mixed(self):
        sources = [{"source": str(self.csv), "weight": 2},
                   {"source": self.sqlite, "weight": 1}]
        self.goes_on(sources, **MIXED)
        self.goes_on(sources, limit=30, **MIXED)


if __name__ == "__main__":
    unittest.main()
