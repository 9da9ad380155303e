"""What is said of documents that cannot be used."""
import json
import pathlib
import unittest

from text_test import TokensCase, byte_tokenizer


class LeftOut(TokensCase):
    def setUp(self):
        super().setUp()
        with open(self.folder / "docs/1.jsonl", "a", encoding="utf-8") as file:
            for line in ('{"other": 1}', '{"input_ids": [3, 1000]}', "[1]",
                         '{"input_ids": "no"}'):
                file.write("\n" + line)
        self.write_job(self.tokens_job(
            source={"kind": "jsonl", "path": "docs", "on_bad": "skip"}))

    def test_are_counted_shown_and_listed(self):
        answer = self.succeed("prepare", "job.json", "--json")
        found = answer.json()
        self.assertEqual((found["documents"], found["left_out"]), (150, 4))
        listed = [json.loads(line) for line in pathlib.Path(
            found["left_out_list"]).read_text().splitlines()]
        self.assertEqual([row["key"] for row in listed], [100, 101, 102, 103])
        self.assertEqual({row["column"] for row in listed}, {"input_ids"})
        for shown in ("4 rows are unusable", "row 100", "1.jsonl:51",
                      "token 1 is 1000", found["left_out_list"]):
            self.assertIn(shown, answer.err)
        self.assertNotIn("row 103", answer.err)

    def test_are_shown_again_where_the_store_was_there(self):
        first = self.succeed("prepare", "job.json", "--json").json()
        pathlib.Path(first["left_out_list"]).unlink()
        plain = self.succeed("prepare", "job.json")
        self.assertIn("4 rows were left out", plain.out)
        self.assertIn(first["left_out_list"], plain.out)
        self.assertTrue(pathlib.Path(first["left_out_list"]).exists())

    def test_go_with_their_store(self):
        found = self.succeed("prepare", "job.json", "--json").json()
        self.succeed("cache", "prune", "--dir", "stores", "--unused-days", "0",
                     "--yes")
        for path in ("store", "left_out_list"):
            self.assertFalse(pathlib.Path(found[path]).exists())

    def test_there_are_none_where_all_can_be_used(self):
        self.write_job(self.tokens_job(source={
            "kind": "jsonl", "path": "docs/0.jsonl", "on_bad": "skip"}))
        found = self.succeed("prepare", "job.json", "--json").json()
        self.assertEqual(found["left_out"], 0)
        self.assertNotIn("left_out_list", found)


class Named(TokensCase):
    def setUp(self):
        super().setUp()
        byte_tokenizer(self.folder)

    def lines(self, *lines, fields=None):
        (self.folder / "t.jsonl").write_text("\n".join(lines))
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "t.jsonl"},
            fields=fields or {"tokens": {"tokens": {
                "column": "text", "tokenizer": "tokenizer.json",
                "max_length": 32}}},
            loader={"batch_size": 2,
                    "cache_dir": str(self.folder / "stores")}))

    def refuse_rows(self, *names):
        error = self.refuse("transform", "data.bad_rows", *names)
        self.assertEqual(error["what"].split()[0],
                         str(sum("t.jsonl:" in name for name in names)))

    def test_by_the_line_that_lacks_the_field(self):
        self.lines('{"text": "a"}', "", '{"other": "b"}', '{"text": "c"}')
        self.refuse_rows("column 'text': is NULL, expected a text (t.jsonl:3)")

    def test_by_the_line_that_holds_something_else(self):
        self.lines('{"text": "a"}', '{"text": 5}', '{"text": true}')
        self.refuse_rows("holds 5 where a text is expected (t.jsonl:2:10)",
                         "holds true where a text is expected "
                         "(t.jsonl:3:10)")
        self.lines('{"text": "a\\"b"}', '{"text": ["b"]}', '{"text": {"a": 1}}')
        self.refuse_rows('holds ["b"], expected a text (t.jsonl:2)',
                         'holds {"a": 1}, expected a text (t.jsonl:3)')

    def test_not_where_the_job_says_that_all_are_texts(self):
        self.lines('{"text": "a"}', '{"text": 5}', '{"text": ["b"]}')
        found = self.succeed("prepare", "job.json", "--json", "--set",
                             'source.columns={"text": "text"}').json()
        self.assertEqual((found["documents"], found["tokens"]), (3, 7))

    def test_texts_between_lists_are_the_same_texts(self):
        self.lines('{"text": "a\\"\\u00e4"}', '{"text": ["b"]}')
        found = self.succeed("prepare", "job.json", "--json", "--set",
                             "source.on_bad=skip").json()
        self.assertEqual((found["tokens"], found["left_out"]), (4, 1))

    def test_numbers_are_not_blamed_for_what_stands_between_them(self):
        self.lines('{"x": 1}', '{"x": 2}', '{"x": 3}', '{"x": "zz"}',
                   '{"x": {"a": 1}}', '{"x": 4.5}',
                   fields={"x": {"columns": ["x"]}})
        self.refuse_rows('holds "zz"', "(t.jsonl:4:7)", 'holds {"a": 1}',
                         "(t.jsonl:5:7)")
        self.lines('{"x": 1}', '{"x": "zz"}', '{"x": "1"}',
                   fields={"x": {"category": {"column": "x"}}})
        self.succeed("prepare", "job.json")

    def test_bytes_that_are_no_utf8(self):
        self.lines('{"text": "a"}')
        with open(self.folder / "t.jsonl", "ab") as file:
            file.write(b'\n{"text": "b\xff"}')
        self.refuse_rows("is not UTF-8, as JSON must be (t.jsonl:2:12)")

    def test_by_the_column_where_a_line_is_no_json(self):
        self.lines('{"text": "a"}', '  [1]', '{"text": "b", }',
                   '{"text": "c"')
        self.refuse_rows("JSON object (t.jsonl:2:1)", "(t.jsonl:3:15)",
                         "(t.jsonl:4:13)")

    def test_documents_without_any_token(self):
        self.lines('{"text": ""}', '{"text": ""}')
        self.refuse("source", "packing.empty", "none of the 2 documents")


if __name__ == "__main__":
    unittest.main()
