"""`penstock prepare` is killed at any time and called again: the store has the
same bytes as one that was made without interruption, and nothing is left."""
import hashlib
import json
import math
import os
import random
import time
import unittest

from penstock_cli import Case
from text_test import byte_tokenizer

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "12"))
DOCUMENTS = 70_000


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Killed:
    """Of a class that says what a document and its field are like."""
    kills = KILLS

    def setUp(self):
        super().setUp()
        tokens = self.tokens()
        with open(self.folder / "docs.jsonl", "w") as file:
            for d in range(DOCUMENTS):
                document = {tokens["column"]: self.document(d)}
                file.write(json.dumps(document) + "\n")
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "docs.jsonl"},
            fields={"tokens": {"tokens": tokens}},
            loader={"batch_size": 4, "cache_dir": "stores", "workers": 2}))
        self.stores = self.folder / "stores"

    def left(self):
        """What is in the folder of the stores, below it too."""
        return sorted(path.name for path in self.stores.rglob("*"))

    def parts(self):
        try:
            return list(self.stores.glob("*.parts/*.part"))
        except FileNotFoundError:  # the folder went while it was listed
            return []

    def let_work(self, process, chance, whole):
        """For a time, or until some more parts are there."""
        most = math.inf
        if chance.random() < 0.5:
            most = len(self.parts()) + chance.randrange(1, 5)
        end = time.monotonic() + chance.random() * whole
        while (process.poll() is None and len(self.parts()) < most
               and (most < math.inf or time.monotonic() < end)):
            time.sleep(0.001)

    def test_it_goes_on_where_it_was_with_the_same_bytes(self):
        began = time.monotonic()
        done = self.succeed("prepare", "job.json", "--json").json()
        whole = time.monotonic() - began
        self.assertEqual((done["documents"], done["resumed"]), (DOCUMENTS, 0))
        store = self.folder / done["store"]
        expected, kept = digest(store), self.left()
        chance, killed, resumed, between = random.Random(11), 0, 0, 0
        while killed < self.kills:
            store.unlink()
            for _ in range(chance.randrange(1, 4)):
                process = self.start("prepare", "job.json", "--json")
                self.let_work(process, chance, whole)
                if process.poll() is None:  # it is at work
                    process.kill()
                    killed += 1
                process.communicate()
            again = self.succeed("prepare", "job.json", "--json").json()
            resumed += again["resumed"] > 0
            between += 0 < again["resumed"] < DOCUMENTS
            self.assertEqual(digest(store), expected)
            self.assertEqual(self.left(), kept)
            for key in ("documents", "tokens", "packing", "statistics"):
                self.assertEqual(again[key], done[key], key)
        self.assertGreater(resumed, 0)
        self.assertGreater(between, 0, "none was killed while it parsed rows")

    def test_its_bytes_are_those_of_a_store_that_is_written_after_a_scan(self):
        """As a run writes it, whose rows are all there before the first."""
        self.succeed("batch", "job.json", "--steps", "0:1", "--json",
                     "--set", "loader.cache=disk")
        [store] = self.stores.glob("*.store")
        expected, kept = digest(store), self.left()
        for workers in (0, 1, 2, 8):
            store.unlink()
            self.succeed("prepare", "job.json", "--json", "--set",
                         f"loader.workers={workers}")
            self.assertEqual(digest(store), expected, workers)
            self.assertEqual(self.left(), kept)

    def test_a_part_that_is_damaged_is_made_again(self):
        done = self.succeed("prepare", "job.json", "--json").json()
        store = self.folder / done["store"]
        expected = digest(store)
        for damage in (lambda old: old[:len(old) // 2],
                       lambda old: old[:9000] + b"\0" * 64 + old[9064:],
                       lambda old: b""):
            store.unlink()
            parts = []
            while len(parts) < 2:
                process = self.start("prepare", "job.json", "--json")
                end = time.monotonic() + 60
                while process.poll() is None and time.monotonic() < end:
                    parts = list(self.stores.glob("*.parts/*.part"))
                    if len(parts) >= 2:
                        break
                process.kill()
                process.communicate()
                if store.exists():  # it was faster
                    store.unlink()
                    parts = []
            parts[0].write_bytes(damage(parts[0].read_bytes()))
            again = self.succeed("prepare", "job.json", "--json").json()
            self.assertEqual(digest(store), expected)
            self.assertGreater(again["resumed"], 0)
            self.assertLess(again["resumed"], DOCUMENTS)


class TokenIdsAreKilled(Killed, Case):
    kills = max(KILLS // 5, 6)

    def tokens(self):
        return {"column": "input_ids", "vocab_size": 1000}

    def document(self, number):
        return [(number * 7 + t) % 997 for t in range(number * 37 % 41)]


class TokenisingIsKilled(Killed, Case):
    """The parts are those of a scan that tokenises: whoever is killed between
    them is so while it does that."""

    def tokens(self):
        return {"column": "text", "tokenizer": byte_tokenizer(self.folder)}

    def document(self, number):
        return f"document {number}: " + "ab é " * (number * 37 % 97)


if __name__ == "__main__":
    unittest.main()
