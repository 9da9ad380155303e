"""`penstock prepare` is killed at any time and called again: the store has the
same bytes as one that was made without interruption, and nothing is left."""
import hashlib
import json
import os
import random
import time
import unittest

from penstock_cli import Case

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "12"))
DOCUMENTS = 70_000  # in five parts


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class PrepareIsKilled(Case):
    def setUp(self):
        super().setUp()
        with open(self.folder / "docs.jsonl", "w") as file:
            for d in range(DOCUMENTS):
                ids = [(d * 7 + t) % 997 for t in range(d * 37 % 41)]
                file.write(f'{{"input_ids": {json.dumps(ids)}}}\n')
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "docs.jsonl"},
            fields={"tokens": {"tokens": {"column": "input_ids",
                                          "vocab_size": 1000}}},
            loader={"batch_size": 4, "cache_dir": "stores", "workers": 2}))
        self.stores = self.folder / "stores"

    def left(self):
        """What is in the folder of the stores, below it too."""
        return sorted(path.name for path in self.stores.rglob("*"))

    def test_it_goes_on_where_it_was_with_the_same_bytes(self):
        began = time.monotonic()
        done = self.succeed("prepare", "job.json", "--json").json()
        whole = time.monotonic() - began
        self.assertEqual((done["documents"], done["resumed"]), (DOCUMENTS, 0))
        store = self.folder / done["store"]
        expected, kept = digest(store), self.left()
        chance, killed, resumed = random.Random(11), 0, 0
        while killed < KILLS:
            store.unlink()
            for _ in range(chance.randrange(1, 4)):
                process = self.start("prepare", "job.json", "--json")
                try:
                    process.wait(timeout=chance.random() * whole)
                except Exception:  # it is at work
                    process.kill()
                    killed += 1
                process.communicate()
            again = self.succeed("prepare", "job.json", "--json").json()
            resumed += again["resumed"] > 0
            self.assertEqual(digest(store), expected)
            self.assertEqual(self.left(), kept)
            for key in ("documents", "tokens", "packing", "statistics"):
                self.assertEqual(again[key], done[key], key)
        self.assertGreater(resumed, 0)

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


if __name__ == "__main__":
    unittest.main()
