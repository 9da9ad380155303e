"""One table in many forms: a database, CSV, JSON lines, Parquet, Arrow, a
Hugging Face folder. Batches are the same, byte for byte, wherever rows come
from, with any number of workers and in any tier."""
import csv
import gzip
import itertools
import json
import pathlib
import shutil
import struct
import unittest

from penstock_cli import Case, has_part, read_safetensors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/files"
COLUMNS = ["id", "x", "n", "flag", "heard_at", "name", "heard"]
DECLARED = ("id INTEGER PRIMARY KEY, x REAL, n INTEGER, flag BOOLEAN, "
            "heard_at TIMESTAMP, name TEXT, heard TEXT")
WHERE = "n <> 3 AND (name LIKE 'B%' OR name IS NULL OR x BETWEEN 10 AND 70)"


def rows():
    for i in range(200):
        day, minute = divmod(i, 24 * 60)
        yield (i, i * 0.5, i % 17, i % 3 == 0,
               f"2024-01-{1 + day:02} {minute // 60:02}:{minute % 60:02}:00",
               None if i % 9 == 4 else ["cat", "dog", "bär"][i % 3],
               [{"a": i + j / 4, "b": j % 2 == 0} for j in range(1 + i % 4)])


class Files(Case):
    def setUp(self):
        super().setUp()
        self.database([(*row[:6], json.dumps(row[6])) for row in rows()],
                      DECLARED)
        with open(self.folder / "rows.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([(*row[:6], json.dumps(row[6]))
                              for row in rows()])
        lines = [json.dumps(dict(zip(COLUMNS, row))) for row in rows()]
        half = self.folder / "parts"
        half.mkdir()
        (half / "a.jsonl").write_text("\n".join(lines[:90]) + "\n")
        with gzip.open(half / "b.JSONL.gz", "wt") as file:
            file.write("\n".join(lines[90:]))
        self.sources = {
            "csv": {"kind": "csv", "path": "rows.csv"},
            "jsonl": {"kind": "jsonl", "path": "parts"}}
        if has_part("parquet"):
            for name in ("rows.parquet", "rows.arrow"):
                shutil.copy(DATA / name, self.folder)
            shutil.copytree(DATA / "saved", self.folder / "saved")
            self.sources |= {
                "parquet": {"kind": "parquet", "path": "rows.parquet"},
                "arrow": {"kind": "arrow", "path": ["rows.arrow"]},
                "hf": {"kind": "hf", "path": "saved"}}

    def job_over(self, source, **more):
        return self.job(
            source={**source, **more},
            fields={"heard": {"json_set": {"column": "heard",
                                           "keys": ["a", "b"], "max": 3},
                              "standardize": True},
                    "y": {"columns": ["x", "n", "flag"], "standardize": True},
                    "when": {"columns": ["heard_at"], "dtype": "float64"},
                    "number": {"columns": ["id", "n"], "dtype": "int64"}},
            split={"val": 0.25, "seed": 4, "by": "id"},
            loader={"batch_size": 16, "seed": 9})

    def digests(self, source, *sets, **more):
        self.write_job(self.job_over(source, **more))
        arguments = [word for change in sets for word in ("--set", change)]
        lines = self.batches("--steps", "0:1000", *arguments)
        self.assertGreater(len(lines), 3)
        return [(line["keys"], line["bytes_digest"]) for line in lines]


class AllForms(Files):
    def test_give_the_batches_of_the_database(self):
        expected = self.digests({"kind": "sqlite", "path": "d.sqlite"})
        for kind, source in self.sources.items():
            with self.subTest(kind):
                self.assertEqual(self.digests(source), expected)

    def test_select_the_rows_of_the_database(self):
        # Rows are numbered among those that are kept, and a database names
        # them by their keys: the same rows in the same order all the same.
        in_order = ("split.val=0", "loader.shuffle=false")
        expected = self.digests({"kind": "sqlite", "path": "d.sqlite"},
                                *in_order, where=WHERE)
        for kind, source in self.sources.items():
            with self.subTest(kind):
                found = self.digests(source, *in_order, where=WHERE)
                self.assertEqual([digest for _, digest in found],
                                 [digest for _, digest in expected])

    def test_workers_and_tiers_change_nothing(self):
        for kind, source in self.sources.items():
            expected = self.digests(source, "loader.workers=1")
            ways = itertools.product((0, 1, 2, 8), ("ram", "none", "disk"))
            for workers, cache in ways:
                with self.subTest(kind, workers=workers, cache=cache):
                    found = self.digests(
                        source, f"loader.workers={workers}",
                        f"loader.cache={cache}",
                        f'loader.cache_dir="{self.folder}/stores"')
                    self.assertEqual(found, expected)

    def test_a_row_keeps_its_side_when_a_file_is_added(self):
        def sides():
            self.write_job(self.job_over(self.sources["jsonl"]) |
                           {"split": {"val": 0.5}})
            found = {}
            for side in ("train", "val"):
                self.batches("--split", side, "--steps", "0:1000", "--out",
                             side, "--set", "loader.tail=exact")
                for file in sorted((self.folder / side).iterdir()):
                    dtype, _, data = read_safetensors(file)["number"]
                    self.assertEqual(dtype, "I64")
                    numbers = struct.iter_unpack("<qq", data)
                    found |= {number: side for number, _ in numbers}
                shutil.rmtree(self.folder / side)
            return found
        before = sides()
        lines = [json.dumps(dict(zip(COLUMNS, (1000 + row[0], *row[1:]))))
                 for row in rows()]
        (self.folder / "parts/0.jsonl").write_text("\n".join(lines))
        after = sides()
        self.assertEqual({number: side for number, side in after.items()
                          if number < 1000}, before)
        self.assertEqual(len(before), 200)
        self.assertEqual(set(before.values()), {"train", "val"})

    def test_are_shown_by_peek(self):
        for kind, source in self.sources.items():
            path = source["path"]
            path = path if isinstance(path, str) else path[0]
            shown = self.succeed("peek", f"{kind}:{path}", "--json").json()
            self.assertEqual([c["name"] for c in shown["columns"]][:6],
                             COLUMNS[:6], kind)
            self.assertEqual(shown["rows"], 200)
            self.assertEqual(shown["first"][0]["id"], 0)

    def test_train_without_a_network(self):
        self.write_job(self.job_over(self.sources["csv"]))
        report = self.train()
        self.assertEqual(report["dataset"]["rows"], 200)


class Refusals(Files):
    def test_a_file_that_is_not_there(self):
        self.write_job(self.job_over({"kind": "csv", "path": "none.csv"}))
        self.refuse("source", "files.missing", "none.csv")

    def test_a_condition_that_is_no_condition(self):
        self.write_job(self.job_over(self.sources["csv"], where="x ** 2 > 1"))
        self.refuse("request", "source.where", "character 3", "'*'")

    def test_a_bad_cell_stops_the_run_or_is_left_out(self):
        text = (self.folder / "rows.csv").read_text().splitlines()
        text[8] = text[8].replace("3.5", "3.x", 1)
        (self.folder / "rows.csv").write_text("\n".join(text))
        source = {**self.sources["csv"], "columns": {"x": "float32"}}
        self.write_job(self.job_over(source))
        self.refuse("transform", "data.bad_rows", "rows.csv:9", "'3.x'")
        self.write_job(self.job_over(source, on_bad="skip"))
        self.assertEqual(self.train()["dataset"]["rows"], 199)


if __name__ == "__main__":
    unittest.main()
