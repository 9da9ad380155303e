"""Token ids that another program made, with labels that say what is learned."""
import json
import unittest

from text_test import SIZE, TokensCase, integers, tokens_of


def labels_of(document):
    """A third of it is a prompt."""
    tokens = tokens_of(document)
    return [-100 if n < len(tokens) // 3 else token
            for n, token in enumerate(tokens)]


class Labelled(TokensCase):
    def setUp(self):
        super().setUp()
        self.write_documents(labels_of)

    def write_documents(self, labels, number=150, name="docs/0.jsonl"):
        for file in (self.folder / "docs").iterdir():
            file.unlink()
        (self.folder / name).write_text("\n".join(
            json.dumps({"input_ids": tokens_of(d), "labels": labels(d)})
            for d in range(number)))

    def found(self, **changes):
        """Of each document its pieces: (ids, labels)."""
        found = {}
        self.write_job(self.tokens_job({"tail": "exact"}, **changes))
        for batch in self.tensors("--steps", "0:1000"):
            ids, labels, documents, ends = (integers(batch[name]) for name in (
                "input_ids", "labels", "document_ids", "cu_seqlens"))
            for begin, end in zip(ends, ends[1:]):
                if documents[begin] >= 0:
                    found.setdefault(documents[begin], []).append(
                        (ids[begin:end], labels[begin:end]))
        return found

    def check(self, **changes):
        found = self.found(labels="labels", **changes)
        self.assertEqual(sorted(found), [d for d in range(150) if tokens_of(d)])
        for document, pieces in found.items():
            tokens, wanted = tokens_of(document), labels_of(document)
            for ids, labels in pieces:
                at = tokens.index(ids[0])
                self.assertEqual(ids, tokens[at:at + len(ids)])
                self.assertEqual(labels,
                                 [-100, *wanted[at + 1:at + len(ids)]])

    def test_mask_what_is_packed(self):
        self.check()

    def test_mask_ids_of_every_width(self):
        for size in (0, 60_000):
            self.check(vocab_size=size)

    def test_are_read_from_lists_as_from_json(self):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            self.skipTest("needs pyarrow")
        parquet.write_table(pyarrow.table({
            "input_ids": [tokens_of(d) for d in range(150)],
            "labels": [labels_of(d) for d in range(150)]}),
            self.folder / "docs.parquet")
        self.check()  # of JSON lines
        job = self.tokens_job(source={"kind": "parquet",
                                      "path": "docs.parquet"}, labels="labels")
        self.write_job(job, "parquet.json")
        steps = ("--steps", "0:1000")
        self.write_job(self.tokens_job(labels="labels"))
        self.assertEqual(
            [line["bytes_digest"] for line in self.batches(
                *steps, job="parquet.json")],
            [line["bytes_digest"] for line in self.batches(*steps)])

    def test_are_another_store_counted_and_not_exported(self):
        self.write_job(self.tokens_job())
        plain = self.succeed("prepare", "job.json", "--json").json()
        self.write_job(self.tokens_job(labels="labels"))
        found = self.succeed("prepare", "job.json", "--json").json()
        self.assertNotEqual(found["store"], plain["store"])
        self.assertEqual(found["statistics"]["text"]["targets"],
                         sum(label >= 0 for d in range(150)
                             for label in labels_of(d)))
        self.refuse("request", "export.masked", "targets", arguments=[
            "prepare", "job.json", "--export", "raw", "out"])

    def test_that_are_there_and_not_used_are_told(self):
        self.write_job(self.tokens_job())
        for arguments in (("prepare", "job.json"), ("train", "job.json")):
            said = self.run_it(*arguments).err
            self.assertIn("column 'labels' next to 'input_ids' is not used",
                          said)
            self.assertIn('"labels": "labels"', said)
        self.write_job(self.tokens_job(labels="labels"))
        self.assertNotIn("is not used",
                         self.succeed("prepare", "job.json").err)

    def test_that_do_not_fit_make_their_row_bad(self):
        for labels, says in (
                (lambda d: labels_of(d)[1:], "expected one for each of"),
                (lambda d: [label + 1 for label in tokens_of(d)],
                 "expected -100 or the token itself"),
                (lambda d: [-5] * len(tokens_of(d)), "label 0 is -5"),
                (lambda d: labels_of(d) if d else None,
                 "'labels' is NULL")):
            self.write_documents(labels, 3)
            self.write_job(self.tokens_job(labels="labels"))
            with self.subTest(says):
                self.refuse("transform", "data.bad_rows", says)

    def test_are_of_token_ids(self):
        self.write_job(self.tokens_job(labels="labels", tokenizer="t.json"))
        self.refuse("request", "settings.value", "labels", "completion")
        self.write_job(self.tokens_job(labels="others"))
        self.refuse("request", "source.unknown_column", "others")


if __name__ == "__main__":
    unittest.main()
