"""Rows that cannot be used: each error names the row, the column, the byte,
what was found and expected; the table stays unchanged."""
import hashlib
import json
import sqlite3
import unittest

from penstock_cli import Case

GOOD = '[{"a": 1.5, "b": true}]'
DEEP = "[" * 5000 + "]" * 5000


class BadRows(Case):
    """One bad row, with key 7, among good ones."""

    def with_row(self, heard, y=1.0,
                 declared="id INTEGER PRIMARY KEY, heard TEXT, y REAL"):
        rows = [(i, GOOD, 0.5) for i in range(1, 13) if i != 7]
        self.database([*rows, (7, heard, y)], declared)
        self.write_job(self.job(loader={"batch_size": 4}))

    def is_bad(self, *names, code="data.bad_rows", sets=()):
        """Refused by default; left out and listed with on_bad: skip."""
        path = self.folder / "d.sqlite"
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        self.refuse("transform", code, "row 7", *names, sets=sets)
        report = self.train(*[a for s in sets for a in ("--set", s)],
                            "--set", "source.on_bad=skip")
        self.assertEqual(report["dataset"]["left_out"], 1)
        self.assertEqual(report["dataset"]["rows"], 11)
        lines = [json.loads(line) for line in (
            self.folder / report["run"] / "quarantine.jsonl"
        ).read_text().splitlines()]
        self.assertEqual([line["key"] for line in lines], [7])
        self.assertTrue(lines[0]["why"])
        self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), before)
        return lines[0]

    def test_json_that_does_not_parse(self):
        for text, byte in ((GOOD[:-1], len(GOOD) - 1), ('[{"a": 1,}]', 9),
                           ("", 0), ("[{'a': 1}]", 2), ('[{"a": 01}]', 8),
                           ('[{"a": 1}] x', 11), ('[{"a": tru}]', 7)):
            with self.subTest(text=text):
                self.tidy()
                self.with_row(text)
                line = self.is_bad("'heard'", f"byte {byte}")
                self.assertEqual(line["byte"], byte)
                self.assertEqual(line["column"], "heard")

    def tidy(self):
        for path in self.folder.glob("d.sqlite*"):
            path.unlink()

    def test_json_that_is_no_list(self):
        for text, found in (('{"a": 1}', "object"), ('"a"', "text"),
                            ("17", "number"), ("true", "boolean"),
                            ("null", "null")):
            with self.subTest(text=text):
                self.tidy()
                self.with_row(text)
                self.assertIn(found, self.is_bad("'heard'", "list")["why"])

    def test_an_element_that_is_no_object(self):
        self.with_row('[{"a": 1}, 5]')
        self.is_bad("'heard'", "byte 11")

    def test_text_where_a_number_must_be(self):
        self.with_row('[{"a": "12"}]')
        self.is_bad("'heard'", "a", "byte 7")

    def test_a_mix_of_booleans_and_numbers(self):
        self.with_row('[{"a": 1, "b": 3}]')
        answer = self.run_it("train", "job.json", "--json")
        code = answer.json()["error"]["code"]
        self.refused(answer, "transform", code, "'b'", "boolean", "key 7")

    def test_nan_and_infinity_are_no_json(self):
        for word, byte in (("NaN", 7), ("Infinity", 7), ("-Infinity", 8)):
            with self.subTest(word=word):
                self.tidy()
                self.with_row('[{"a": %s}]' % word)
                self.is_bad("'heard'", f"byte {byte}")

    def test_a_number_that_float64_cannot_hold(self):
        self.with_row('[{"a": 1e999}]')
        self.is_bad("'heard'", "byte 7")

    def test_deep_nesting(self):
        self.with_row('[{"a": 1, "x": ' + DEEP + "}]")
        self.is_bad("'heard'", "deep")

    def test_sql_null_where_a_list_must_be(self):
        self.with_row(None)
        self.is_bad("'heard'", "NULL")

    def test_sql_null_where_a_number_must_be(self):
        self.with_row(GOOD, None)
        self.is_bad("'y'", "NULL", "number")

    def test_text_in_a_column_of_numbers(self):
        self.with_row(GOOD, "loud")
        self.is_bad("'y'", "'loud'", "number")

    def test_a_blob_in_a_column_of_numbers(self):
        self.with_row(GOOD, b"\x01\x02")
        self.is_bad("'y'", "BLOB of 2 bytes", "number")

    def test_an_infinity_in_a_column(self):
        self.with_row(GOOD, float("inf"))
        self.is_bad("'y'", "finite")

    def test_a_fraction_in_a_column_of_integers(self):
        self.with_row(GOOD, 0.25)
        integers = 'fields.y={"columns": ["id", "y"], "dtype": "int64"}'
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("UPDATE t SET y = 1.0 WHERE id <> 7")
        base.close()
        self.is_bad("'y'", "0.25", "integer", sets=[integers])

    def test_a_required_key_that_is_missing_or_null(self):
        required = 'fields.heard.json_set.required=["b"]'
        for text in ('[{"a": 1}]', '[{"a": 1, "b": null}]'):
            with self.subTest(text=text):
                self.tidy()
                self.with_row(text)
                self.is_bad("'heard'", "'b'", sets=[required])

    def test_too_many_elements_where_that_is_an_error(self):
        self.with_row(json.dumps([{"a": 1}] * 5))
        self.is_bad("'heard'", "5", "3",
                    sets=["fields.heard.json_set.overflow=error"])

    def test_a_value_that_float32_cannot_hold(self):
        self.with_row(GOOD, 1e39)
        self.refuse("transform", "transform.range", "row 7", "'y'", "float32",
                    "1e+39", "float64")
        self.assertEqual(self.train(
            "--set", "fields.y.dtype=float64")["dataset"]["rows"], 12)

    def test_many_bad_rows_name_the_first_three_and_the_count(self):
        self.database([(i, "[" if i % 2 else GOOD, 1.0) for i in range(1, 41)])
        self.write_job()
        error = self.refuse("transform", "data.bad_rows", "20 rows", "row 1",
                            "row 3", "row 5")
        self.assertNotIn("row 7", error["why"])

    def test_short_lists_are_left_out_and_counted_but_are_no_errors(self):
        self.with_row("[]")
        report = self.train()
        self.assertEqual(report["dataset"]["left_out"], 1)
        self.assertFalse((self.folder / report["run"] / "quarantine.jsonl")
                         .exists())


class BadKeys(Case):
    def test_two_rows_with_one_key(self):
        self.database([(1, GOOD, 1.0), (2, GOOD, 2.0), (2, GOOD, 3.0)],
                      "id INTEGER, heard TEXT, y REAL")
        self.write_job(self.job(source={"kind": "sqlite", "path": "d.sqlite",
                                        "table": "t", "key": "id"}))
        self.refuse("source", "source.duplicate_key", "key 2", "d.sqlite",
                    "source.key")

    def test_a_key_that_is_null(self):
        self.database([("a", GOOD, 1.0), (None, GOOD, 2.0)],
                      "id TEXT PRIMARY KEY, heard TEXT, y REAL")
        self.write_job()
        self.refuse("source", "source.bad_key", "'id'", "rowid 2", "NULL",
                    "a text")

    def test_a_text_among_integer_keys(self):
        self.database([(1, GOOD, 1.0), ("two", GOOD, 2.0)],
                      "id INT PRIMARY KEY, heard TEXT, y REAL")
        self.write_job()
        self.refuse("source", "source.bad_key", "'id'", "rowid 2", "'two'",
                    "an integer")

    def test_a_view_has_no_key_of_its_own(self):
        self.database([(1, GOOD, 1.0)], table="rows")
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("CREATE VIEW t AS SELECT * FROM rows")
        base.close()
        self.write_job()
        self.refuse("request", "source.no_key", "source.key", "t in d.sqlite")

    def test_a_key_that_is_no_utf8_is_refused_with_its_bytes(self):
        self.database([(i, GOOD, 1.0) for i in range(8)],
                      "id TEXT PRIMARY KEY, heard TEXT, y REAL")
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("UPDATE t SET id = CAST(x'ff41' AS TEXT) WHERE id=3")
        base.close()
        self.write_job(self.job(loader={"batch_size": 8}))
        answer = self.run_it("train", "job.json", "--json")
        self.refused(answer, "source", "source.bad_key", "x'ff41'", "rowid 4")


class Changes(Case):
    """Rows that change under a job that reads them again."""

    def test_a_row_that_changed_while_it_was_training_is_named(self):
        self.good_start(
            loader={"batch_size": 16, "cache": "none", "workers": 0},
            device={"kind": "sim", "step_ms": 20},
            train={"epochs": 500}, output={"dir": "out"})
        process = self.start("train", "job.json", "--json")
        steps = self.folder / "out" / "latest" / "steps.jsonl"
        self.wait_for(steps.exists, "the first steps")
        with sqlite3.connect(self.folder / "d.sqlite", timeout=30) as base:
            base.execute("UPDATE t SET y = 1e6 WHERE id = 5")
        base.close()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        error = json.loads(out)["error"]
        self.assertEqual(error["code"], "source.row_changed")
        self.assertIn("row 5", error["what"])
        # What was done is kept, and goes on when the row is what it was.
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("UPDATE t SET y = 2.0 WHERE id = 5")
        base.close()
        run = self.folder / "out" / "latest"
        taken = json.loads((run / "state.json").read_text())["steps_taken"]
        self.assertEqual(len((run / "steps.jsonl").read_text().splitlines()),
                         taken)
        self.assertGreater(taken, 0)
        name = run.resolve().name
        rest = self.succeed("train", "--resume", f"out/{name}", "--json",
                            "--set", f"train.max_steps={taken + 3}").json()
        self.assertEqual(rest["steps"], 3)


if __name__ == "__main__":
    unittest.main()
