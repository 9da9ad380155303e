"""Rows by any key, and of queries: the same batches in every tier, with any
number of workers, on every device."""
import itertools
import unittest

from penstock_cli import Case

COLUMNS = "station TEXT, hour INTEGER, y REAL, heard TEXT"
FIELDS = {"y": {"columns": ["y"]},
          "heard": {"json_set": {"column": "heard", "keys": ["a"], "max": 2}}}
ALL = {"train": 1, "val": 0}  # sides follow from keys
LOADER = {"batch_size": 16, "seed": 3, "tail": "exact"}
WAYS = [(f"loader.workers={workers}", f"loader.cache={cache}",
         f"device={device}")
        for workers, cache, device in itertools.product(
            (0, 1, 2, 8), ("ram", "none"), ("cpu", "sim"))]


def rows():
    """In the order of their key, (station, hour)."""
    return [(f"s{i // 40}", i % 40 - 20, i / 2, '[{"a": %d}]' % i)
            for i in range(120)]


class Queries(Case):
    def bytes_of(self, source, *sets):
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite", **source},
            fields=FIELDS, split=ALL, loader=LOADER))
        arguments = ["--steps", "0:100", "--out", "out"]
        for change in sets:
            arguments += ["--set", change]
        self.batches(*arguments)
        return [file.read_bytes()
                for file in sorted((self.folder / "out").iterdir())]

    def always_the_same(self, source):
        expected = self.bytes_of(source)
        self.assertEqual(len(expected), 8)
        for way in WAYS:
            self.assertEqual(self.bytes_of(source, *way), expected, way)
        return expected

    def test_rows_have_one_order_however_they_are_named(self):
        self.database(rows(), COLUMNS + ", PRIMARY KEY (station, hour)")
        expected = self.always_the_same({"table": "t"})
        for source in ({"key": ["station", "hour"]}, {"key": "rowid"},
                       {"query": "SELECT * FROM t",
                        "key": ["station", "hour"]},
                       {"query": "SELECT hour, y, heard, station FROM t WHERE "
                        "y < 1e6 ORDER BY station, hour -- in time"}):
            self.assertEqual(self.always_the_same(source), expected, source)

    def test_the_numbers_of_rows_are_their_keys(self):
        self.database(rows(), COLUMNS)
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite",
                    "query": "SELECT * FROM t ORDER BY y DESC"},
            fields=FIELDS, split=ALL, loader=LOADER))
        lines = self.batches("--steps", "0:100")
        keys = [key for line in lines for key in line["keys"]]
        self.assertEqual(sorted(keys), list(range(120)))

    def test_peek_shows_the_result_of_a_query(self):
        self.database(rows(), COLUMNS)
        seen = self.succeed(
            "peek", "sqlite:d.sqlite?query=SELECT y, heard ->> '$[0].a' AS a "
            "FROM t WHERE station LIKE 's%' LIMIT 5", "--json").json()
        self.assertEqual([column["name"] for column in seen["columns"]],
                         ["y", "a"])
        self.assertEqual(seen["rows"], 5)

    def test_a_job_is_written_for_a_query(self):
        self.database(rows(), COLUMNS)
        self.succeed(
            "train", "--init", "sqlite:d.sqlite?key=station,hour&query="
            "SELECT station, hour, y FROM t", "--target", "station", "--out",
            "new.json", "--set", "model=none", "--set", "train.epochs=1")
        self.assertIn("SELECT station",
                      (self.folder / "new.json").read_text())

    def test_a_decimal_and_an_expression_are_targets_of_a_regression(self):
        self.database([(i, i % 60 / 4, "ab"[i % 2]) for i in range(300)],
                      "id INTEGER PRIMARY KEY, price DECIMAL(10,2), kind TEXT")
        for rows in "#t", ("?query=SELECT id, kind, price * 2 AS price FROM t "
                           "ORDER BY id"):
            self.run_it("train", "--init", f"sqlite:d.sqlite{rows}",
                        "--target", "price", "--out", "new.json", "--set",
                        "device=sim")
            job = (self.folder / "new.json").read_text()
            self.assertIn('"price": {"column": "price", "standardize": true}',
                          job)
            self.assertIn('"kind": {"category"', job)
            (self.folder / "new.json").unlink()

    def test_kept_rows_are_those_of_their_query(self):
        self.database(rows(), COLUMNS)

        def why(query):
            self.write_job(self.job(
                source={"kind": "sqlite", "path": "d.sqlite", "query": query,
                        "key": ["station", "hour"]},
                fields=FIELDS, model="none",
                loader={**LOADER, "cache": "disk", "cache_dir": "stores"}))
            return self.succeed("cache", "why", "job.json", "--json").json()

        query = "SELECT * FROM t WHERE y < 30"
        self.assertFalse(why(query)["hit"])
        self.succeed("train", "job.json", "--set", "train.epochs=1")
        self.assertTrue(why(query)["hit"])
        self.assertFalse(why(query + " OR y > 50")["hit"])
        changing = why(query + " AND y > abs(random() % 9)")
        self.assertFalse(changing["hit"])
        self.assertIn("source.query", changing["why"])

    def test_what_writes_is_refused(self):
        self.database(rows(), COLUMNS)
        for query, code, name in (
                ("DELETE FROM t", "source.query_writes", "writes"),
                ("SELECT * FROM t; SELECT 1", "source.query", "more than one"),
                ("SELECT y FROM t", "source.query_order", "ORDER BY")):
            self.write_job(self.job(
                source={"kind": "sqlite", "path": "d.sqlite", "query": query},
                fields={"y": {"columns": ["y"]}}))
            self.refuse("request", code, "source.query", name)
        self.assertEqual(
            self.succeed("peek", "sqlite:d.sqlite#t", "--json").json()["rows"],
            120)

    def test_a_query_and_a_table_exclude_each_other(self):
        self.write_job(self.job(source={
            "kind": "sqlite", "path": "d.sqlite", "table": "t",
            "query": "SELECT 1"}))
        self.refuse("request", "settings.value", "source.query")


if __name__ == "__main__":
    unittest.main()
