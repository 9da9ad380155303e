"""What a newcomer is answered whose first command cannot work: one message of
at most 300 characters that names what to write instead."""
import os
import unittest

from penstock_cli import Case


class FirstAnswers(Case):
    def asked(self, *arguments, code=2):
        """The message, of a command that ends with `code`."""
        found = self.run_it(*arguments)
        text = found.out + found.err
        self.assertEqual(found.code, code, text)
        self.assertLessEqual(len(text), 300, text)
        return text

    def file(self, name, data=b""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return name

    def test_a_typo_is_answered_by_the_nearest_name(self):
        self.file("t.csv", b"a,b\n1,2\n")
        self.file("job.json", b"{}")
        self.file("below/deep.parquet")
        for arguments, near in (
                (["peek", "t.cvs"], "'t.csv'"),
                (["peek", "below/dep.parquett"], "'below/deep.parquet'"),
                (["train", "jb.json"], "'job.json'"),
                (["train", "--init", "t.cvs", "--target", "b"], "'t.csv'")):
            with self.subTest(arguments):
                self.assertIn(f"did you mean {near}?", self.asked(*arguments))
        self.assertIn("did you mean 'parquet:'?",
                      self.asked("peek", "parket:t.parquet"))
        self.assertIn("did you mean 't.csv'?", self.asked("peek", "tt.csv",
                                                          code=3))

    def test_nothing_like_it_is_there(self):
        text = self.asked("peek", "nothing_like_it")
        self.assertIn("the file or folder does not exist", text)
        self.assertIn(os.fspath(self.folder.resolve()), text)

    def test_a_table_is_no_job(self):
        self.file("cars.csv", b"a,b\n1,2\n")
        for verb in "train", "verify-resume", "prepare":
            with self.subTest(verb):
                self.assertIn("penstock train --init cars.csv --target COLUMN",
                              self.asked(verb, "cars.csv"))

    def test_rows_in_json_are_no_job(self):
        self.file("lines.json", b'{"a": 1}\n{"a": 2}\n')
        self.file("one.json", b'{"a": 1}\n')
        self.file("list.json", b' [\n {"a": 1}, {"a": 2}]')
        for verb in "train", "peek":
            self.assertIn("jsonl:lines.json", self.asked(verb, "lines.json"))
            self.assertIn("jsonl:one.json", self.asked(verb, "one.json"))
            self.assertIn("jq -c '.[]' list.json > list.jsonl",
                          self.asked(verb, "list.json"))

    def test_a_job_with_a_mistake_is_still_a_job(self):
        self.file("broken.json", b'{"source": {"kind": "csv"},\n "fields" {}}')
        self.assertIn("line 2", self.asked("train", "broken.json"))
        self.file("odd.json", b'{"source": "t.csv", "feilds": {}}')
        self.assertIn("fields", self.asked("train", "odd.json"))

    def test_a_folder_is_answered_by_what_it_holds(self):
        self.file("sounds/a/1.wav")
        self.file("photos/cat/1.JPG")
        self.file("shards/000.tar")
        self.file("odd/1.xyz")
        for folder, uri in (("sounds", "audio:sounds"),
                            ("photos", "images:photos"),
                            ("shards", "images:shards/*.tar")):
            with self.subTest(folder):
                self.assertIn(f"write {uri}\n",
                              self.asked("peek", folder))
                self.assertIn(uri, self.asked("train", folder))
        self.assertIn("none of its files", self.asked("peek", "odd"))

    def test_a_file_is_answered_by_what_it_is(self):
        for name, data, answer in (
                ("t.csv.bz2", b"BZh9", "bunzip2 -k t.csv.bz2"),
                ("t.csv.xz", b"\xfd7zXZ", "unxz -k t.csv.xz"),
                ("t.xlsx", b"PK", 'pandas.read_excel("t.xlsx")'),
                ("t.dat", b"a,b\n1,2\n", "csv:t.dat"),
                ("rows", b'{"a": 1}\n{"a": 2}\n', "jsonl:rows"),
                ("notes", b"Some words\n", "text:notes"),
                ("t.db", b"SQLite format 3\0", "sqlite:t.db#TABLE"),
                ("t.part", b"PAR1....", "parquet:t.part"),
                ("t.bytes", b"\0\1\2", "KIND:PATH")):
            with self.subTest(name):
                self.assertIn(answer, self.asked("peek", self.file(name, data)))
                if "." in name:
                    self.assertIn(answer, self.asked("train", name))

    def test_the_answers_for_rows_in_json_work(self):
        self.file("lines.json", b'{"a": 1, "b": 0}\n{"a": 2, "b": 1}\n' * 20)
        for verb in "peek", "check":
            with self.subTest(verb):
                self.assertIn("40 rows", self.succeed(verb, "jsonl:lines.json").out)
        self.assertIn("penstock train --init jsonl:lines.json",
                      self.asked("train", "jsonl:lines.json"))
        self.run_it("train", "--init", "jsonl:lines.json", "--target", "b",
                    "--set", "device=sim")  # the job is written, not trained
        self.assertIn("jsonl", (self.folder / "lines.job.json").read_text())

    def test_a_pipe_is_not_waited_for(self):
        for name in "f.sqlite", "f.tar", "f.csv":
            with self.subTest(name):
                os.mkfifo(self.folder / name)
                answer = self.run_it("peek", name)
                self.assertIn(answer.code, (2, 3), answer.err)

    def test_an_address_is_answered_without_its_password(self):
        self.assertIn("curl -LO https://example.org/t.csv",
                      self.asked("peek", "https://example.org/t.csv"))
        for uri in ("https://user:secret@example.org/t.csv",
                    "https://example.org/t.csv?token=secret",
                    "mysql://user:secret@example.org/base",
                    "gs://bucket:secret@x/t.csv"):
            with self.subTest(uri):
                self.assertNotIn("secret", self.asked("peek", uri))

    def test_decimal_commas_are_asked_about(self):
        self.file("de.csv", b"a;b\n1,5;2,5\n2,25;3,5\n")
        for verb in "peek", "check":
            with self.subTest(verb):
                self.assertIn("csv:de.csv?decimal=,", self.asked(verb, "de.csv"))
        seen = self.succeed("peek", "csv:de.csv?decimal=,", "--json").json()
        self.assertEqual(seen["first"][1], {"a": 2.25, "b": 3.5})
        self.file("en.csv", b'a,b\n"0,5",x\n"1,5",y\n')
        self.file("big.csv", b"a;b\n1.234,5;x\n0,5;y\n")
        self.assertIn("csv:en.csv?decimal=,", self.asked("peek", "en.csv"))
        self.assertIn("csv:big.csv?decimal=,&thousands=.",
                      self.asked("peek", "big.csv"))
        for uri, first in (("csv:en.csv?decimal=,", .5),
                           ("csv:big.csv?decimal=,&thousands=.", 1234.5)):
            seen = self.succeed("peek", uri, "--json").json()
            self.assertEqual(seen["first"][0]["a"], first)

    def test_a_stray_text_among_numbers_is_asked_about(self):
        self.file("t.csv", "".join(["age,y\n"] + [
            f"{'?' if i == 700 else i % 90},{'uv'[i % 2]}\n"
            for i in range(900)]).encode())
        for command in (["peek"], ["check"], ["train", "--init"]):
            with self.subTest(command):
                more = ["--target", "y"] if "--init" in command else []
                said = self.asked(*command, "t.csv", *more)
                for part in ("899 of its 900 cells", "1 is not: text '?'",
                             "t.csv:702", "csv:t.csv?na=,?",
                             '{"age":"text"}'):
                    self.assertIn(part, said)
        seen = self.succeed("peek", "csv:t.csv?na=,?", "--json").json()
        self.assertEqual(seen["columns"][0]["type"], "int64")
        self.assertEqual(seen["columns"][0]["nulls"], 1)
        self.succeed("check", 'csv:t.csv?columns={"age":"text"}')

    def test_a_row_in_place_of_the_header_is_told_of(self):
        self.file("iris.csv", b"5.1,3.5,setosa\n4.9,3.0,setosa\n")
        for command in (["peek"], ["check"]):
            with self.subTest(command):
                said = self.run_it(*command, "iris.csv").err
                self.assertEqual(said.count("csv:iris.csv?header=false"), 1)
        self.assertNotIn("header", self.run_it(
            "peek", "csv:iris.csv?header=false").err)


if __name__ == "__main__":
    unittest.main()
