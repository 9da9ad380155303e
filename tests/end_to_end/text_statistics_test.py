"""What `penstock prepare` says of the documents of a job."""
import json
import unittest

from text_test import TokensCase, byte_tokenizer, tokens_of


class Statistics(TokensCase):
    def test_they_say_what_the_documents_are_like(self):
        (self.folder / "docs/0.jsonl").write_text("\n".join(
            json.dumps({"meta": {"n": d}, "input_ids": [d // 2, 7, 7]})
            for d in range(50)))
        self.write_job(self.tokens_job())
        found = self.succeed("prepare", "job.json", "--json").json()
        about = found["statistics"]["text"]
        documents = [[d // 2, 7, 7] for d in range(50)] + [
            tokens_of(d) for d in range(50, 150)]
        uses = {}
        for tokens in documents:
            for token in tokens:
                uses[token] = uses.get(token, 0) + 1
        ranked = sorted(uses.items(), key=lambda use: (-use[1], use[0]))
        self.assertEqual(about["most_used"], [list(use) for use in ranked[:10]])
        self.assertEqual(about["unused"], 1000 - len(uses))
        several = [tuple(tokens) for tokens in documents if len(tokens) > 1]
        self.assertEqual(about["duplicates"],
                         len(several) - len(set(several)))
        shown = self.succeed("prepare", "job.json").out
        self.assertIn("most used tokens: 7 (", shown)

    def test_they_count_characters_and_only_rows_that_are_kept(self):
        byte_tokenizer(self.folder)
        texts = ["é" * 700 + "x" * 300, "日本" * 130, "z", "€"]
        (self.folder / "t.jsonl").write_text("\n".join(
            json.dumps({"text": text, "x": "none" if text == "z" else 1})
            for text in texts))
        for fields in ({}, {"x": {"columns": ["x"]}}):
            self.write_job(self.job(
                source={"kind": "jsonl", "path": "t.jsonl", "on_bad": "skip"},
                fields={"tokens": {"tokens": {
                    "column": "text", "tokenizer": "tokenizer.json",
                    "pack": "none", "max_length": 4096}}, **fields},
                loader={"cache_dir": str(self.folder / "stores")}))
            about = self.succeed("prepare", "job.json", "--json").json()[
                "statistics"]["tokens"]
            kept = [text for text in texts if text != "z" or not fields]
            encoded = "".join(kept).encode()
            self.assertEqual(
                (about["documents"], about["characters"], about["tokens"]),
                (len(kept), len("".join(kept)), len(encoded)))
            self.assertEqual(about["unused"], 257 - len(set(encoded)))

    def test_they_are_the_same_of_a_large_vocabulary(self):
        found = []
        for size in (1000, 100_000):
            self.write_job(self.tokens_job(vocab_size=size))
            about = self.succeed("prepare", "job.json", "--json").json()[
                "statistics"]["text"]
            about["unused"] -= size
            found.append(about)
        self.assertEqual(*found)


if __name__ == "__main__":
    unittest.main()
