"""`penstock train --manifest`: settings of another program, translated and said."""
import json
import unittest

from penstock_cli import Case

YAML = """\
# of the team
training:
  epochs: 2
  batch_size: 8
  pin_memory: true
  num_workers: 2
  prefetch_factor: 3
config:
  device: cpu
  optim: adafactor
  warmpu_steps: 10
"""


class Manifests(Case):
    def setUp(self):
        super().setUp()
        self.database(self.rows())

    def test_a_team_s_yaml_beside_a_job(self):
        self.write_job(self.job())
        (self.folder / "run.yaml").write_text(YAML)
        done = self.succeed("train", "job.json", "--manifest", "run.yaml",
                            "--json")
        report = done.json()
        keys = {entry["key"]: entry for entry in report["manifest"]}
        self.assertEqual(len(keys), 8)
        self.assertEqual(keys["training.batch_size"]["settings"],
                         ["loader.batch_size = 8"])
        self.assertEqual(keys["training.prefetch_factor"]["settings"],
                         ["loader.prefetch = 6"])
        self.assertFalse(keys["config.optim"]["understood"])
        self.assertFalse(keys["config.warmpu_steps"]["understood"])
        self.assertTrue(keys["training.pin_memory"]["understood"])
        self.assertEqual(report["steps"], 2 * 64 // 8)
        for told in ("training.batch_size = 8 -> loader.batch_size = 8",
                     "config.warmpu_steps = 10 IS NOT USED: the key is unknown: did "
                     "you mean 'warmup_steps'?",
                     "training.pin_memory = true: no setting is needed"):
            self.assertIn(told, done.err)

    def test_a_manifest_with_the_sections_of_a_job_needs_none(self):
        (self.folder / "run.json").write_text(json.dumps(
            {**self.job(), "batch_size": 16, "epochs": 1}))
        report = self.succeed("train", "--manifest", "run.json", "--json",
                              "--set", "train.max_steps=3").json()
        self.assertEqual(report["steps"], 3)

    def test_what_is_wrong_is_named(self):
        self.write_job(self.job())
        path = self.folder / "run.yaml"
        for text, code, *names in (
                ("a: *x", "manifest.yaml", "run.yaml:1"),
                ("bf16: true\nfp16: true", "manifest.value", "fp16"),
                ("batch_size: many", "settings.value", "loader.batch_size"),
                ("- 1", "manifest.value", "run.yaml")):
            path.write_text(text)
            self.refuse("request", code, *names, arguments=[
                "train", "job.json", "--manifest", "run.yaml"])
        self.refuse("request", "cli.arguments", "--manifest", arguments=[
            "train", "--resume", "runs/latest", "--manifest", "run.yaml"])
        self.refuse("request", "file.read", "none.yaml", arguments=[
            "train", "job.json", "--manifest", "none.yaml"])


if __name__ == "__main__":
    unittest.main()
