"""`penstock datasets` and `penstock cache prune --hub | --datasets`."""
import json
import os
import unittest

from penstock_cli import Case


class Datasets(Case):
    def setUp(self):
        super().setUp()
        self.write("hf/hub/datasets--org--set/blobs/aa", "x" * 3000)
        self.write("hf/hub/datasets--org--set/refs/main", "c1")
        link = self.folder / "hf/hub/datasets--org--set/snapshots/c1/a.jsonl"
        link.parent.mkdir(parents=True)
        link.symlink_to("../../blobs/aa")
        info = {"splits": {"train": {"num_examples": 12}}}
        made = "hf/datasets/org___set/default/0.0.0/hash/"
        self.write(made + "set-train.arrow", "x" * 500)
        self.write(made + "dataset_info.json", json.dumps(info))
        self.variables = {"HF_HOME": str(self.folder / "hf"),
                          "HF_HUB_CACHE": "", "HF_DATASETS_CACHE": ""}

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def found(self, *arguments):
        return self.succeed("datasets", "--json", *arguments,
                            **self.variables).json()

    def test_what_is_there_and_who_reads_it(self):
        self.write_job(self.job(source={
            "kind": "hf",
            "path": "hf/datasets/org___set/default/0.0.0/hash"}))
        self.write("no_job.json", "[]")
        found = self.found("--no-measure")
        hub, cache = found["datasets"]
        self.assertEqual((hub["name"], hub["origin"], hub["bytes"]),
                         ("org/set", "hub", 3002))
        self.assertEqual((cache["rows"], cache["splits"], cache["config"]),
                         (12, ["train"], "default"))
        self.assertEqual((hub["jobs"], cache["jobs"]), ([], ["job.json"]))
        self.assertEqual([drive["mount"] for drive in found["drives"]],
                         [hub["drive"]])
        self.assertIsNone(found["drives"][0]["bytes_per_s"])
        shown = self.succeed("datasets", **self.variables).out
        self.assertIn("org/set", shown)
        self.assertIn("data sets: 2", shown)

    def test_a_folder_that_was_saved_has_its_rows_counted(self):
        with open(self.folder / "docs.jsonl", "w") as file:
            for d in range(30):
                file.write(json.dumps({"input_ids": [d, 1, 2]}) + "\n")
        self.write_job(self.job(
            source={"kind": "jsonl", "path": "docs.jsonl"},
            fields={"tokens": {"tokens": {"column": "input_ids",
                                          "vocab_size": 99}}},
            loader={"batch_size": 1, "cache_dir": "stores"}))
        self.succeed("prepare", "job.json", "--export", "hf", "more/saved")
        saved = self.found("more", "--no-measure")["datasets"][2]
        self.assertEqual((saved["name"], saved["origin"], saved["complete"]),
                         ("saved", "folder", True))
        if saved["rows"] is not None:  # the part that reads it is there
            self.assertEqual(saved["rows"], 30)
        (self.folder / "more/saved/state.json").unlink()
        self.write("more/saved/dataset_dict.json", '{"splits": ["train"]}')
        saved = self.found("more", "--no-measure")["datasets"][2]
        self.assertFalse(saved["complete"])
        self.refuse("request", "datasets.no_folder", "gone",
                    arguments=["datasets", "gone"])

    def test_the_folder_of_a_run_is_no_data_set(self):
        self.write("runs/1/run.json", "{}")
        self.write("runs/1/state.json", '{"epoch": 1}')
        found = self.found("--no-measure", ".")
        self.assertNotIn("runs", str(found["datasets"]))
        self.assertEqual(len(found["datasets"]), 2)

    def test_pruning_lists_first(self):
        for path in self.folder.rglob("*"):
            os.utime(path, (1, 1), follow_symlinks=False)
        hub = self.folder / "hf/hub/datasets--org--set"
        listed = self.succeed("cache", "prune", "--hub", **self.variables).out
        self.assertIn("org/set", listed)
        self.assertIn("add --yes", listed)
        self.assertTrue(hub.exists())
        done = self.succeed("cache", "prune", "--hub", "--yes", "--json",
                            **self.variables).json()
        self.assertEqual((done["bytes"], done["kept"], done["removes"]),
                         (3002, 0, True))
        self.assertFalse(hub.exists())
        self.succeed("cache", "prune", "--datasets", "--yes", **self.variables)
        self.assertEqual(self.found("--no-measure")["datasets"], [])
        self.refuse("request", "cli.arguments", "--hub", arguments=[
            "cache", "prune", "--hub", "--datasets"])


if __name__ == "__main__":
    unittest.main()
