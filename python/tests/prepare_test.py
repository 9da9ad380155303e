"""`penstock.prepare()` and `penstock.clear_device_cache()`."""
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import penstock
from entry import main


class Prepare(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-prepare-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.documents = [[(d * 3 + t) % 90 for t in range(d % 17)]
                          for d in range(60)]
        (self.folder / "docs.jsonl").write_text("\n".join(
            json.dumps({"input_ids": ids}) for ids in self.documents))

    def job(self, **tokens):
        return {"source": {"kind": "jsonl",
                           "path": self.folder / "docs.jsonl"},
                "fields": {"tokens": {"tokens": {
                    "column": "input_ids", "vocab_size": 90,
                    "max_length": 32, **tokens}}},
                "loader": {"batch_size": 2,
                           "cache_dir": self.folder / "stores"},
                "device": "cpu"}

    def test_fills_the_store_that_a_loader_reads(self):
        found = penstock.prepare(self.job(), progress=False)
        self.assertEqual((found["documents"], found["tokens"]),
                         (60, sum(map(len, self.documents))))
        self.assertFalse(found["already"])
        again = penstock.prepare(self.job(), progress=False)
        self.assertTrue(again["already"])
        with penstock.open(self.job(), loader__tail="exact") as loader:
            seen = {}
            for batch in loader:
                tensors = batch.numpy()
                ids = tensors["input_ids"].ravel()
                numbers = tensors["document_ids"].ravel()
                for document in np.unique(numbers[numbers >= 0]):
                    seen[int(document)] = ids[numbers == document].tolist()
        self.assertEqual(seen, {d: ids for d, ids in enumerate(self.documents)
                                if ids})

    def test_takes_files_settings_and_several_jobs(self):
        path = self.folder / "job.json"
        path.write_text(json.dumps(self.job(), default=str))
        one, other = penstock.prepare(
            path, self.job(pack="none"), progress=False,
            loader__cache_dir=str(self.folder / "others"))
        self.assertIn("packing", one)
        self.assertNotIn("packing", other)
        self.assertTrue((self.folder / "others").is_dir())

    def test_writes_the_tokens_for_others_too(self):
        found = penstock.prepare(self.job(), progress=False,
                                 export=("raw", self.folder / "raw"))
        tokens = np.fromfile(self.folder / "raw/tokens.bin", np.uint16)
        self.assertEqual(tokens.tolist(), sum(self.documents, []))
        self.assertEqual(found["export"]["documents"], 60)

    def test_says_what_is_wrong(self):
        with self.assertRaises(penstock.RequestError):
            penstock.prepare(self.job(), export=("none", "x"), progress=False)
        with self.assertRaises(penstock.RequestError):
            penstock.prepare(self.job(), self.job(), export=("raw", "x"))
        with self.assertRaises(TypeError):
            penstock.prepare(self.job(), cache_dir="x")
        with self.assertRaises(penstock.Error):
            penstock.prepare(self.folder / "none.json", progress=False)

    def test_clearing_the_device_cache_leaves_batches_as_they_are(self):
        (self.folder / "rows.jsonl").write_text("\n".join(
            json.dumps({"x": n, "y": n / 2}) for n in range(64)))
        job = {"source": {"kind": "jsonl", "path": self.folder / "rows.jsonl"},
               "fields": {"x": {"columns": ["x", "y"]}},
               "loader": {"batch_size": 8, "cache": "device"},
               "device": {"kind": "sim", "step_ms": 0.1}}

        def rows_of(batches):
            return [batch["x"].numpy().copy() for batch in batches]

        with penstock.open(job) as loader:
            expected = rows_of(loader)
        with penstock.open(job) as loader:
            batches = iter(loader)
            found = rows_of([next(batches)])
            self.assertGreater(penstock.clear_device_cache(), 0)
            found += rows_of(batches)
        self.assertEqual(len(found), 8)
        for one, other in zip(found, expected):
            self.assertTrue((one == other).all())
        self.assertEqual(penstock.clear_device_cache(), 0)


if __name__ == "__main__":
    main()
