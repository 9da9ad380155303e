"""Training begins on raw text at once: documents are tokenised while batches are
made, and their store is filled beside them."""
import json
import random
import unittest

from text_test import SIZE, TokensCase, byte_tokenizer, integers

DOCUMENTS = 2000
WAYS = ({"pack": "none"}, {"pack": "stream", "pack_window": 300})


def text_of(document):
    words = ["the", "größer", "file", "<end>", "日本", "a"]
    return " ".join(words[(document * n) % 6]
                    for n in range(1, document * 37 % 23))


class AtOnce(TokensCase):
    def setUp(self):
        super().setUp()
        byte_tokenizer(self.folder)
        self.write_texts()

    def write_texts(self, bad=()):
        for part in range(2):
            half = DOCUMENTS // 2
            with open(self.folder / f"texts-{part}.jsonl", "w") as file:
                for d in range(part * half, (part + 1) * half):
                    text = None if d in bad else text_of(d)
                    file.write(json.dumps({"n": d, "text": text}) + "\n")

    def write(self, way, train=None, loader=None, **sections):
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "texts-*.jsonl"},
            fields={"tokens": {"tokens": {
                "column": "text", "tokenizer": "tokenizer.json",
                "max_length": SIZE, **way}}},
            loader={"batch_size": 8, "seed": 3, "prepare": "meanwhile",
                    "cache_dir": str(self.folder / "stores"),
                    **(loader or {})},
            train=train or {"max_steps": 60}, **sections))

    def seen(self, *arguments):
        return [(line["keys"], line["bytes_digest"]) for line in self.batches(
            "--steps", "0:60", *arguments)]

    def stores(self):
        return [path.name for path in self.folder.glob("stores/*.store")]

    def hit(self):
        return self.succeed("cache", "why", "job.json",
                            "--json").json()["hit"]

    def test_batches_are_those_of_a_store_on_any_number_of_workers(self):
        for way in WAYS:
            self.write(way)
            found = [self.seen("--set", f"loader.workers={workers}",
                               "--set", "loader.cache=none")
                     for workers in (0, 1, 2, 8)]
            self.assertFalse(self.hit())
            self.succeed("prepare", "job.json")
            self.assertTrue(self.hit())
            for other in (*found[1:], self.seen(),
                          self.seen("--set", "loader.cache=ram")):
                self.assertEqual(other, found[0])
            if way["pack"] == "none":  # whose order is that of all rows
                self.assertEqual(
                    self.seen("--set", "loader.prepare=before"), found[0])

    def test_the_store_is_complete_after_an_epoch_and_is_read(self):
        self.write(WAYS[0], train={"epochs": 1})
        self.assertFalse(self.hit())
        first = self.train()
        self.assertTrue(self.hit())
        self.assertEqual(len(self.stores()), 1)
        again = self.train()
        self.assertEqual(again["dataset"]["fingerprint"],
                         first["dataset"]["fingerprint"])
        self.assertIn("gather", [stage["name"] for stage in again["stages"]])

    def test_a_document_that_is_bad_is_named_with_its_file(self):
        self.write_texts(bad={1234})
        self.write(WAYS[0], train={"epochs": 1})
        self.refuse("transform", "data.bad_sample", "row 235 of",
                    "texts-1.jsonl", "is NULL, expected a text")
        self.assertFalse(self.hit())
        self.write(WAYS[1], train={"max_steps": 3000},
                   loader={"on_bad": "mask"})
        self.assertGreater(self.train()["bad_samples"], 0)

    def test_a_stream_needs_a_number_of_steps_and_knows_what_it_packed(self):
        self.write(WAYS[1], train={"epochs": 2})
        self.refuse("request", "packing.endless", "max_steps")
        self.write(WAYS[1])
        told = self.succeed("prepare", "job.json", "--json").json()["packing"]
        self.assertEqual((told["window"], told["efficiency"], told["cut"]),
                         (300, None, None))
        packing = self.train()["dataset"]["packing"]
        self.assertEqual(packing["window"], 300)
        self.assertGreater(packing["efficiency"], 0.9)
        self.assertLess(packing["documents"], DOCUMENTS)

    def test_what_needs_all_documents_is_refused(self):
        self.write({"pack": "best_fit"})
        self.refuse("request", "data.not_meanwhile", "\"stream\"")
        self.write(WAYS[0], loader={"group_by_length": True})
        self.refuse("request", "settings.value", "group_by_length")

    def test_a_plan_says_what_will_be_done(self):
        self.write(WAYS[0])
        answer = self.succeed("train", "job.json", "--plan")
        self.assertIn("while batches are produced", answer.out + answer.err)
        self.assertEqual(self.stores(), [])

    def test_verify_resume_holds_in_the_first_epoch(self):
        for way in WAYS:
            self.write(way)
            self.succeed("verify-resume", "job.json")

    def test_held_out_documents_are_packed_beside_a_stream(self):
        self.write(WAYS[1], split={"val": 0.2})
        val = self.tensors("--split", "val", "--steps", "0:1000")
        documents = {number for batch in val
                     for number in integers(batch["document_ids"])} - {-1}
        self.assertGreater(len(documents), DOCUMENTS / 10)

    def test_a_run_that_is_killed_leaves_no_wrong_store(self):
        chance = random.Random(5)
        for way in WAYS:
            self.write(way)
            expected = self.seen("--set", "loader.cache=none")
            self.write(way, train={"max_steps": 100_000, "epochs": 1000},
                       device={"kind": "sim", "step_ms": 1, "clock": "wall"})
            for _ in range(4):
                process = self.start("train", "job.json")
                try:
                    process.wait(timeout=0.1 + chance.random() * 0.4)
                except Exception:  # it is at work
                    process.kill()
                process.communicate()
                self.assertEqual(self.seen(), expected)
            for path in self.folder.glob("stores/*.tmp.*"):
                self.assertNotIn(path.name, self.stores())
            self.succeed("prepare", "job.json")
            self.assertEqual(self.seen(), expected)
            self.assertTrue(self.hit())


if __name__ == "__main__":
    unittest.main()
