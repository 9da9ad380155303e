"""penstock tokenize: texts of JSON lines become ids."""
import json
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

    def test_a_summary_for_people(self):
        self.lines_of({"text": "ab ab"})
        self.assertEqual(
            self.succeed("tokenize", "tokenizer.json", "t.jsonl").out,
            "1 documents, 2 tokens, 5 bytes of text\n")

    def refuse_line(self, line, *says):
        (self.folder / "t.jsonl").write_text('{"text": "a"}\n' + line + "\n")
        answer = self.run_it("tokenize", "tokenizer.json", "t.jsonl")
        self.assertEqual(answer.code, 4, answer.err)
        for text in ("t.jsonl, line 2", *says):
            self.assertIn(text, answer.err)

    def test_a_line_that_holds_no_text_is_named(self):
        self.refuse_line("[1]", "expected an object")
        self.refuse_line('{"other": "a"}', "field 'text'", "found nothing")
        self.refuse_line('{"text": 5}', "found an integer")
        self.refuse_line('{"text": "a', "not valid JSON")
        self.refuse_line("", "it is empty")

    def test_a_file_that_is_not_there(self):
        answer = self.run_it("tokenize", "tokenizer.json", "no.jsonl", "--json")
        self.refused(answer, "source", "tokenizer.unreadable", "no.jsonl")
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
