"""penstock tokenize: texts of JSON lines become ids."""
import gzip
import json
import shutil
import subprocess
import unittest

from penstock_cli import PROGRAM, Case


def characters():
    """Byte -> the character that stands for it in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return {b: chr(b if b in printable else next(others)) for b in range(256)}


class Tokenize(Case):
    def setUp(self):
        super().setUp()
        of = characters()
        vocabulary = {of[byte]: byte for byte in range(256)}
        vocabulary |= {"ab": 256, of[32] + "ab": 257}
        end = {"content": "<end>", "special": True, "normalized": False}
        self.write("tokenizer.json", {
            "version": "1.0",
            "added_tokens": [{"id": 258, **end}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "<end>", "type_id": 0}}],
                "special_tokens": {"<end>": {"id": "<end>", "ids": [258]}}},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocabulary,
                      "merges": ["a b", of[32] + " ab"]}})

    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document))

    def lines_of(self, *documents, name="t.jsonl"):
        (self.folder / name).write_text(
            "".join(json.dumps(document) + "\n" for document in documents))

    def test_one_list_of_ids_for_each_document_in_order(self):
        self.lines_of({"text": "ab ab"}, {"text": ""}, {"text": "b<end>"})
        answer = self.succeed("tokenize", "tokenizer.json", "t.jsonl", "--json")
        self.assertEqual(answer.lines(), [[256, 257], [], [98, 258]])

    def test_special_adds_what_the_template_says(self):
        self.lines_of({"body": "ab", "text": 3})
        answer = self.succeed("tokenize", "tokenizer.json", "t.jsonl", "--json",
                              "--special", "--field", "body")
        self.assertEqual(answer.lines(), [[256, 258]])

    def test_standard_input_by_a_dash(self):
        done = subprocess.run(
            [PROGRAM, "tokenize", "tokenizer.json", "-", "--json"],
            input='{"text": "ab"}\n', capture_output=True, text=True,
            cwd=self.folder, check=True, timeout=60)
        self.assertEqual(done.stdout, "[256]\n")

    def test_a_pipe_by_its_name_and_a_file_without_documents(self):
        self.lines_of({"text": "ab"}, {"text": "b"})
        answer = subprocess.run(
            ["bash", "-c", f"{PROGRAM} tokenize tokenizer.json "
             "<(cat t.jsonl; echo; cat t.jsonl) --json"],
            cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.stderr, "")
        self.assertEqual(answer.stdout, "[256]\n[98]\n" * 2)
        (self.folder / "none.jsonl").write_text("")
        answer = self.succeed("tokenize", "tokenizer.json", "none.jsonl", "--json")
        self.assertEqual(answer.lines(), [])

    def test_a_summary_for_people(self):
        self.lines_of({"text": "ab ab"})
        self.assertEqual(
            self.succeed("tokenize", "tokenizer.json", "t.jsonl").out,
            "1 documents, 2 tokens, 5 bytes of text\n")

    def refuse_line(self, line, *says):
        (self.folder / "t.jsonl").write_text('{"text": "a"}\n' + line + "\n")
        answer = self.run_it("tokenize", "tokenizer.json", "t.jsonl")
        self.assertEqual(answer.code, 4, answer.err)
        for text in says:
            self.assertIn(text, answer.err)
        done = subprocess.run(
            [PROGRAM, "tokenize", "tokenizer.json", "-"],
            input='{"text": "a"}\n' + line + "\n", capture_output=True,
            text=True, cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("standard input:2", done.stderr)

    def test_a_line_that_holds_no_text_is_named(self):
        self.refuse_line("[1]", "t.jsonl:2:1", "JSON object")
        self.refuse_line('{"other": "a"}', "t.jsonl:2", "field 'text'",
                         "is missing")
        self.refuse_line('{"text": 5}', "t.jsonl:2:10", "holds 5", "a text")
        self.refuse_line('{"text": ["a"]}', "t.jsonl:2", 'holds ["a"]',
                         "a text")
        self.refuse_line('{"text": "a', "t.jsonl:2:10", "not JSON")

    def test_files_that_are_compressed_and_all_that_a_pattern_names(self):
        lines = b'{"text": "ab"}\n{"text": "b"}\n'
        (self.folder / "1.jsonl.gz").write_bytes(gzip.compress(lines))
        if shutil.which("zstd") is None:
            self.skipTest("there is no zstd program")
        subprocess.run(["zstd", "-q", "-o", self.folder / "2.jsonl.zst"],
                       input=lines, check=True)
        for name in ("1.jsonl.gz", "2.jsonl.zst"):
            answer = self.succeed("tokenize", "tokenizer.json", name, "--json")
            self.assertEqual(answer.lines(), [[256], [98]])
        answer = self.succeed("tokenize", "tokenizer.json", "*.jsonl.*",
                              "--json")
        self.assertEqual(answer.lines(), [[256], [98]] * 2)
        (self.folder / "cut.jsonl.gz").write_bytes(gzip.compress(lines)[:-9])
        answer = self.run_it("tokenize", "tokenizer.json", "cut.jsonl.gz")
        self.assertEqual(answer.code, 3, answer.err)
        self.assertIn("cut.jsonl.gz", answer.err)

    def test_a_member_of_a_member(self):
        self.lines_of({"a": {"b": "ab"}}, {"c": 1, "a": {"d": 2, "b": "b"}})
        answer = self.succeed("tokenize", "tokenizer.json", "t.jsonl",
                              "--field", "a.b", "--json")
        self.assertEqual(answer.lines(), [[256], [98]])
        done = subprocess.run(
            [PROGRAM, "tokenize", "tokenizer.json", "-", "--field", "a.b",
             "--json"], input='{"a": {"b": "ab"}}\n', capture_output=True,
            text=True, cwd=self.folder, check=True, timeout=60)
        self.assertEqual(done.stdout, "[256]\n")

    def test_a_file_that_is_not_there(self):
        answer = self.run_it("tokenize", "tokenizer.json", "no.jsonl", "--json")
        self.refused(answer, "source", "files.missing", "no.jsonl")
        self.lines_of({"text": "a"})
        answer = self.run_it("tokenize", "tokenizer.json", "t.jsonl", "--json",
                             "--field", "txt")
        self.refused(answer, "request", "source.unknown_column", "--field",
                     "text")
        answer = self.run_it("tokenize", "no.json", "-", "--json")
        self.assertEqual(answer.code, 2, answer.err)

    def test_a_part_that_is_not_known_is_named(self):
        document = json.loads((self.folder / "tokenizer.json").read_text())
        document["normalizer"] = {"type": "Casefold"}
        self.write("tokenizer.json", document)
        answer = self.run_it("tokenize", "tokenizer.json", "-", "--json")
        self.refused(answer, "request", "tokenizer.part", "normalizer",
                     "'Casefold'")


if __name__ == "__main__":
    unittest.main()
