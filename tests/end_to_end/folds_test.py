"""Cross-validation: train.folds."""
import json
import math
import random
import signal
import subprocess
import time
import unittest

from penstock_cli import PATIENCE_S, PROGRAM, Case, has_part

ROWS = 120


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class FoldsTest(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        lines = ["key,x,y,kind"]
        for i in range(ROWS):
            kind = draw.choice(["a", "b", "c"])
            place = "abc".index(kind)
            lines.append(f"k{i},{place + draw.gauss(0, 0.6):.4f},"
                         f"{draw.gauss(0, 1):.4f},{kind}")
        (self.folder / "t.csv").write_text("\n".join(lines) + "\n")
        self.write({})

    def write(self, train):
        job = {"source": {"kind": "csv", "path": "t.csv"},
               "fields": {"x": {"columns": ["x", "y"]},
                          "kind": {"category": {"column": "kind"}}},
               "split": {"train": 0.7, "val": 0.1, "test": 0.2},
               "loader": {"batch_size": 8}, "device": "cpu",
               "model": {"kind": "tabular", "target": "kind"},
               "train": {"epochs": 3, "folds": 4, **train}}
        (self.folder / "job.json").write_text(json.dumps(job))

    def train(self, *arguments):
        return self.run_it("train", *(arguments or ["job.json"]), "--json")

    def test_each_fold_is_a_run_and_the_report_has_their_mean(self):
        answer = self.train()
        self.assertEqual(answer.code, 0, answer.err)
        report = answer.json()
        self.assertEqual([one["fold"] for one in report["folds"]], [0, 1, 2, 3])
        rows, held_out = set(), 0
        for one in report["folds"]:
            of_fold = json.loads(
                (self.folder / one["run"] / "report.json").read_text())
            self.assertEqual(of_fold["best"]["value"], one["val"]["loss"])
            sides = of_fold["dataset"]
            rows.add(sides["train"] + sides["val"])
            held_out += sides["val"]
            self.assertTrue(of_fold["test"])
        self.assertEqual(rows, {held_out})  # each row once
        losses = [one["val"]["loss"] for one in report["folds"]]
        mean = sum(losses) / 4
        self.assertAlmostEqual(report["mean"]["loss"], mean, 12)
        self.assertAlmostEqual(
            report["spread"]["loss"],
            math.sqrt(sum((one - mean) ** 2 for one in losses) / 3), 12)
        self.assertIn("accuracy", report["mean"])
        run = self.folder / report["run"]
        self.assertTrue((run / "report.html").exists())
        self.assertEqual((self.folder / "runs" / "latest").resolve(), run)
        text = self.run_it("explain", "runs/latest")
        self.assertEqual(text.code, 0, text.err)
        self.assertIn("spread", text.out)
        fold = self.run_it("explain", "runs/latest/folds/2")
        self.assertEqual(fold.code, 0, fold.err)
        predicted = self.run_it("predict", "runs/latest/folds/2", "t.csv",
                                "--out", "p.csv")
        self.assertEqual(predicted.code, 0, predicted.err)

    def test_is_the_same_again(self):
        first, second = self.train().json(), self.train().json()
        self.assertEqual(first["mean"], second["mean"])
        self.assertEqual(first["spread"], second["spread"])

    def test_interrupted_goes_on_where_it_was(self):
        slow = subprocess.Popen(
            [PROGRAM, "train", "job.json", "--json", "--set",
             "train.epochs=30000"], cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(slow.kill)
        runs = self.folder / "runs"
        deadline = time.monotonic() + PATIENCE_S
        while not list(runs.glob("*/folds/0/weights/best.safetensors")):
            self.assertIsNone(slow.poll(), "it has ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        slow.send_signal(signal.SIGTERM)
        out, err = slow.communicate(timeout=PATIENCE_S)
        self.assertEqual(slow.returncode, 143, err)
        stopped = json.loads(out)
        self.assertTrue(stopped["interrupted"])
        self.assertEqual(stopped["folds"], [])
        answer = self.train("--resume", stopped["run"], "--set",
                            "train.epochs=60")
        self.assertEqual(answer.code, 0, answer.err)
        report = answer.json()
        self.assertFalse(report["interrupted"])
        self.assertEqual(len(report["folds"]), 4)
        again = self.train("--resume", report["run"])
        self.assertEqual(again.json(), report)
        self.assertIn("finished", again.err)
        newest = self.train("job.json", "--resume", "latest", "--set",
                            "train.epochs=60")
        self.assertEqual(newest.json(), report, newest.err)

    def test_what_cannot_be_cross_validated_is_refused(self):
        def refused(code, *names, sets=()):
            answer = self.run_it(
                "train", "job.json", "--json",
                *[part for one in sets for part in ("--set", one)])
            self.refused(answer, "request", code, *names)
        refused("settings.value", "split.folds",
                sets=["split.folds=3"])
        refused("settings.value", "model", sets=['model="none"'])
        refused("settings.value", sets=["train.folds=1"])
        answer = self.run_it("train", "job.json", "--output", "o", "--json")
        self.refused(answer, "request", "train.folds", "--output")
        refused("train.no_held_out_rows", "fewer folds",
                sets=["train.folds=100"])
        self.assertFalse((self.folder / "o").exists())
        answer = self.run_it("explain", "runs/latest", "runs/latest", "--json")
        self.assertNotEqual(answer.code, 0)


if __name__ == "__main__":
    unittest.main()
