"""A model trained from a table: losses, checkpoints, and a resumed run that is
bit for bit the run that was never interrupted."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from penstock_cli import Case, has_library, has_part, read_safetensors

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Positions(Case):
    def positions(self, rows=400, **train):
        self.succeed("demo", "positions", "--rows", rows, "--seed", 5, "--to",
                     "sqlite:d.sqlite")
        job = json.loads((ROOT / "examples/positions/job.json").read_text())
        job["source"]["path"] = "d.sqlite"
        job["loader"] = {"batch_size": 32, "seed": 1}
        job["device"] = "cpu"
        job["model"]["width"] = 16
        job["train"] = {"epochs": 6, "threads": 1, **train}
        self.write_job(job)


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class Model(Positions):
    def checkpoints(self, run_folder):
        return sorted((self.folder / run_folder).glob("*.safetensors"))

    def test_learns_and_reports_both_losses_of_every_epoch(self):
        self.positions()
        report = self.train()
        self.assertEqual(len(report["epochs"]), 6)
        for epoch in report["epochs"]:
            self.assertGreater(epoch["val_median_km"], 0)
        first, last = report["epochs"][0], report["epochs"][-1]
        self.assertLess(last["train_loss"], first["train_loss"])
        self.assertLess(last["val_loss"], first["val_loss"])
        self.assertGreater(report["validation_s"], 0)
        self.assertGreater(report["checkpoint_s"], 0)
        self.assertAlmostEqual(sum(report["parts"].values()), 1)
        self.assertEqual(len(self.checkpoints(report["run"])), 2)

    def test_a_resumed_run_is_the_run_that_was_never_interrupted(self):
        self.positions(epochs=40, checkpoint_every_steps=7)
        whole = self.train()
        process = self.start("train", "job.json", "--json")
        runs = self.folder / "runs"
        self.wait_for(lambda: (runs / "latest").resolve().name not in
                      whole["run"] and self.checkpoints(runs / "latest"),
                      "a checkpoint")
        first = self.end_by(process)
        self.assertEqual(first.code, 130, first.err)
        report = first.json()
        while report["interrupted"]:
            process = self.start("train", "--resume", report["run"], "--json")
            rest = process.communicate()[0]
            report = json.loads(rest)
        ends = [self.checkpoints(r["run"])[-1] for r in (whole, report)]
        self.assertEqual(ends[0].name, ends[1].name)
        self.assertEqual(ends[0].read_bytes(), ends[1].read_bytes())

    def test_killed_hard_it_goes_on_from_the_last_checkpoint(self):
        self.positions(epochs=400, checkpoint_every_steps=5)
        process = self.start("train", "job.json", "--json")
        latest = self.folder / "runs" / "latest"
        self.wait_for(lambda: len(self.checkpoints(latest)) == 2,
                      "two checkpoints")
        self.end_by(process, signal.SIGKILL)
        state = json.loads((latest / "state.json").read_text())
        killed = str(latest.resolve())
        process = self.start("train", "--resume", killed, "--json")
        steps = latest / "steps.jsonl"
        self.wait_for(lambda: str(latest.resolve()) != killed
                      and steps.exists() and steps.read_text(), "a step")
        self.end_by(process)
        line = json.loads(steps.read_text().splitlines()[0])
        self.assertEqual((line["epoch"], line["step"]),
                         (state["epoch"], state["step"]))

    def test_interrupted_in_a_validation_the_resumed_run_makes_up_for_it(self):
        self.positions(rows=2000, epochs=2)
        job = json.loads((self.folder / "job.json").read_text())
        job["source"]["round_trip_ms"] = 150
        job["split"].update(train=0.2, val=0.8)
        job["loader"].update(cache="none", batch_size=256, workers=1,
                             prefetch=1)
        self.write_job(job)
        whole = self.train("--set", "source.round_trip_ms=0")
        self.assertEqual(whole["steps"], 2)
        (self.folder / "runs" / "latest").unlink()
        process = self.start("train", "job.json", "--json")
        # Of an epoch of one step, the first is the last.
        steps = self.folder / "runs" / "latest" / "steps.jsonl"
        self.wait_for(steps.exists, "the only step of epoch 0")
        time.sleep(0.1)
        answer = self.end_by(process)
        self.assertEqual(answer.code, 130, answer.out + answer.err)
        first = answer.json()
        self.assertTrue(first["interrupted"])
        [epoch] = first["epochs"]
        self.assertEqual(epoch["epoch"], 0)
        self.assertIsNone(epoch["val_loss"])
        saved = self.folder / first["run"] / "report.json"
        self.assertEqual(json.loads(saved.read_text()), first)
        rest = self.succeed("train", "--resume", first["run"], "--json",
                            "--set", "source.round_trip_ms=0").json()
        for name in ("epoch", "val_loss", "val_median_km"):
            self.assertEqual([e[name] for e in rest["epochs"]],
                             [e[name] for e in whole["epochs"]])
        self.assertEqual(rest["steps"], 1)
        ends = [self.checkpoints(r["run"])[-1] for r in (whole, rest)]
        self.assertEqual(ends[0].read_bytes(), ends[1].read_bytes())

    def test_a_run_that_ends_inside_an_epoch_has_all_its_losses(self):
        self.positions(epochs=2)
        whole = self.train()
        steps = whole["steps"] // 2 + 2
        first = self.train("--set", f"train.max_steps={steps}")
        self.assertEqual([e["epoch"] for e in first["epochs"]], [0, 1])
        for epoch in first["epochs"]:
            self.assertIsInstance(epoch["train_loss"], float)
            self.assertIsInstance(epoch["val_loss"], float)
        rest = self.succeed("train", "--resume", first["run"], "--json",
                            "--set", "train.max_steps=null").json()
        self.assertEqual(rest["steps"], whole["steps"] - steps)
        self.assertIsInstance(rest["epochs"][-1]["val_loss"], float)

    def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(self):
        self.positions()
        report = self.train("--set", "train.max_steps=20")
        older, newest = self.checkpoints(report["run"])
        newest.write_bytes(newest.read_bytes()[:-1])
        answer = self.succeed("train", "--resume", report["run"], "--json")
        self.assertIn(newest.name, answer.err)
        older.write_bytes(b"")
        self.refused(self.run_it("train", "--resume", report["run"], "--json"),
                     "request", "resume.damaged_checkpoint", ".safetensors")

    def test_the_checkpoint_of_another_model_is_refused(self):
        self.positions(epochs=1)
        report = self.train()
        answer = self.run_it("train", "--resume", report["run"], "--json",
                             "--set", "model.width=8", "--set",
                             "train.epochs=2")
        self.assertEqual(answer.code, 2, answer.out)
        self.assertIn("width", answer.out)

    def test_a_checkpoint_is_a_safetensors_file(self):
        self.positions(epochs=1)
        newest = self.checkpoints(self.train()["run"])[-1]
        tensors = read_safetensors(newest)
        self.assertGreater(len(tensors), 10)

    def test_output_leaves_weights_that_another_run_begins_with(self):
        self.positions(epochs=2, ema=0.9)
        report = self.train("--output", "left")
        left = read_safetensors(self.folder / "left/model.safetensors")
        newest = read_safetensors(self.checkpoints(report["run"])[-1])
        self.assertEqual(left, {name.removeprefix("ema."): tensor
                                for name, tensor in newest.items()
                                if name.startswith("ema.")})
        self.assertTrue((self.folder / "left/statistics.json").exists())
        again = self.train("--set", "model.path=left/model.safetensors",
                           "--set", "train.lr=0", "--set", "train.ema=0",
                           "--set", "train.epochs=1")
        begun = read_safetensors(self.checkpoints(again["run"])[-1])
        for name, tensor in left.items():
            self.assertEqual(begun["model." + name], tensor)
        self.refuse("request", "model.weights", "expected float32", sets=[
                        "model.path=left/model.safetensors", "model.width=8"])

    def test_output_that_cannot_be_written_is_heard_before_the_first_step(self):
        self.positions(epochs=1)
        (self.folder / "left").write_text("")
        answer = self.run_it("train", "job.json", "--json", "--output", "left")
        error = self.refused(answer, "request", "file.write", "left")
        self.assertIn("--output", error["next"] + error["where"] + error["what"])
        self.assertFalse((self.folder / "runs").exists())

    def test_what_is_in_force_is_said_and_stands_in_run_json(self):
        self.positions(epochs=1)
        answer = self.succeed("train", "job.json", "--json", "--set",
                              "train.tf32=true", "--set",
                              "train.graphs=auto", "--set",
                              "train.precision=bfloat16", "--set",
                              "train.accumulate=2")
        self.assertIn("precision: bfloat16\n", answer.err)
        self.assertIn("tf32: false (asked: true): the cpu does not support it",
                      answer.err)
        run = self.folder / answer.json()["run"] / "run.json"
        found = json.loads(run.read_text())["effective"]
        self.assertEqual(found, {
            "precision": {"asked": "bfloat16", "got": "bfloat16"},
            "tf32": {"asked": True, "got": False, "why": "the cpu does not support it"},
            "graphs": {"asked": "auto", "got": "off",
                       "why": "the cpu does not support it"},
            "accumulate": {"asked": 2, "got": 2},
            "ema": {"asked": 0, "got": 0}})

    def test_a_switch_that_the_model_has_not_is_refused(self):
        self.positions(epochs=1)
        self.refuse("request", "settings.value", "train.label_smoothing",
                    "set_position", "train.precision, train.tf32",
                    sets=["train.label_smoothing=0.1"])

    def test_training_that_fails_loses_nothing_of_the_quick_start(self):
        self.positions()
        job = json.loads((self.folder / "job.json").read_text())
        self.write_job({**job, "device": "cuda"})
        options = ("--job", "job.json", "--rows", "200", "--step-ms", "1",
                   "--round-trip-ms", "0", "--epochs", "1")
        answer = self.run_it("quickstart", *options, "--json")
        if answer.code == 0:
            self.skipTest("there is a GPU")
        self.assertEqual(answer.code, 5, answer.err)
        result = answer.json()
        self.assertEqual(len(result["runs"]), 4)
        self.assertEqual(result["error"]["kind"], "device")
        answer = self.run_it("quickstart", *options)
        self.assertEqual(answer.code, 5, answer.err)
        for text in ("a query per sample", "the network was not trained",
                     "4 runs"):
            self.assertIn(text, answer.out)

    def test_a_model_on_sim_is_refused_before_anything_is_read(self):
        self.positions()
        self.refused(self.run_it("train", "job.json", "--json", "--set",
                                 "device=sim"), "request", "model.on_sim",
                     "sim")
        self.assertFalse((self.folder / "runs").exists())


@unittest.skipUnless(has_part("trainer") and has_library("penstock_images"),
                     "the trainer, or what reads pictures, was not built")
class Pictures(Case):
    def shapes(self, of_each=12, **train):
        """The example, with so many pictures of each class."""
        example = ROOT / "examples/images"
        subprocess.run([sys.executable, "-B", example / "make_shapes.py",
                        "shapes", str(of_each)], cwd=self.folder, check=True,
                       capture_output=True)
        job = json.loads(re.sub(r"^ *//.*$", "",
                                (example / "job.json").read_text(), flags=re.M))
        job["device"] = "cpu"
        job["loader"]["batch_size"] = 16 if of_each > 12 else 8
        job["train"].update({"epochs": 1, "threads": 1, **train})
        return job

    def test_the_example_learns_without_a_scan_of_the_pictures(self):
        job = self.shapes(of_each=100, epochs=4)
        self.assertNotIn("cache", job["loader"])
        self.write_job(job)
        report = self.train("--output", "left")
        found = report["metrics"]["val"]
        self.assertEqual(found.keys(), {"loss", "accuracy", "macro_f1"})
        self.assertGreater(found["accuracy"], 0.95)  # as promised
        statistics = json.loads(
            (self.folder / "left/statistics.json").read_text())
        self.assertEqual(statistics["class"]["classes"],
                         ["circle", "cross", "square", "triangle"])

    def test_what_must_be_counted_needs_a_scan(self):
        self.write_job(self.shapes(class_weights="balanced"))
        answer = self.run_it("train", "job.json", "--json")
        self.refused(answer, "request", "model.needs_table", '"cache": "ram"')
        job = self.shapes(class_weights="balanced")
        job["loader"]["cache"] = "ram"
        self.write_job(job)
        report = self.train()
        run = json.loads((self.folder / report["run"] / "run.json").read_text())
        self.assertEqual(run["effective"]["class_weights"]["got"], "balanced")


@unittest.skipIf(has_part("trainer"), "the trainer was built")
class NoModel(Positions):
    def test_a_job_with_a_model_says_what_is_missing(self):
        self.positions()
        self.refused(self.run_it("train", "job.json", "--json"), "request",
                     "trainer.part_missing", "libpenstock_trainer_*.so")


class OwnModel(Case):
    def test_output_without_a_model_is_refused(self):
        self.good_start()
        answer = self.run_it("train", "job.json", "--json", "--output", "left")
        self.refused(answer, "request", "output.no_model", "--output")

    def test_a_model_of_ones_own_needs_a_python_with_this_package(self):
        self.good_start(device="cpu")
        for python, words in (("/nowhere/python", "No such file"),
                              ("true", "importing penstock fails")):
            answer = self.run_it("train", "job.json", "--json", "--model",
                                 "net.py:Net", PENSTOCK_PYTHON=python)
            error = self.refused(answer, "request", "cli.python", words)
            self.assertIn("PENSTOCK_PYTHON", error["next"])
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main()
