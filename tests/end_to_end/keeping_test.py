"""Which weights a run keeps: the best by default, when it validates, when it
ends early, and what it measures of the side test."""
import csv
import hashlib
import json
import random
import unittest

from penstock_cli import Case, has_part

EPOCHS = 10


class Noise(Case):
    """A table whose classes are drawn at random: whoever learns them learns
    the train rows by heart, so that the loss of other rows is soon best and
    then gets worse."""

    def setUp(self):
        super().setUp()
        draw = random.Random(2)
        with open(self.folder / "t.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "y"])
            for _ in range(240):
                numbers = [f"{draw.gauss(0, 1):.3f}" for _ in range(3)]
                writer.writerow([*numbers, draw.choice(["no", "yes"])])
        self.write_job({
            "source": {"kind": "csv", "path": "t.csv"},
            "fields": {"x": {"columns": ["a", "b", "c"],
                             "standardize": True},
                       "y": {"category": {"column": "y"}}},
            "split": {"train": 0.5, "val": 0.3, "test": 0.2},
            "loader": {"batch_size": 16, "seed": 1},
            "device": "cpu",
            "model": {"kind": "tabular", "target": "y", "inputs": ["x"],
                      "width": 64, "dropout": 0},
            "train": {"epochs": EPOCHS, "lr": 0.01, "threads": 1}})

    def weights(self, report, name="best"):
        return self.folder / report["run"] / "weights" / f"{name}.safetensors"

    def state(self, report):
        return json.loads(
            (self.folder / report["run"] / "state.json").read_text())

    def resume(self, run, *arguments):
        answer = self.succeed("train", "--resume", run, "--json", *arguments)
        return answer.json(), answer.err

    def steps_of(self, report):
        lines = (self.folder / report["run"] / "steps.jsonl").read_text()
        return [(line["epoch"], line["step"], line["loss"])
                for line in map(json.loads, lines.splitlines())]


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV and the trainer were not built")
class Keeping(Noise):
    def test_the_weights_of_the_best_epoch_are_what_a_run_leaves(self):
        answer = self.succeed("train", "job.json", "--json", "--output", "out")
        report = answer.json()
        losses = [epoch["val_loss"] for epoch in report["epochs"]]
        best = losses.index(min(losses))
        self.assertLess(best, EPOCHS - 1, losses)
        each = report["steps"] // EPOCHS
        self.assertEqual(report["best"], {
            "epoch": best, "step": (best + 1) * each, "metric": "loss",
            "value": losses[best]})
        self.assertIn(f"after epoch {best + 1}, step {(best + 1) * each}",
                      answer.err)
        kept = self.weights(report).read_bytes()
        self.assertEqual(
            (self.folder / "out/model.safetensors").read_bytes(), kept)
        self.assertEqual(self.state(report)["best"]["sha256"],
                         hashlib.sha256(kept).hexdigest())
        self.assertFalse(self.weights(report, "last").exists())
        # They are those of a run that ends there.
        ended = self.train("--set", f"train.max_steps={(best + 1) * each}",
                           "--set", "train.keep=last")
        self.assertEqual(self.weights(ended, "last").stat().st_size, len(kept))

    def test_the_last_weights_or_both_are_kept_where_the_job_says_so(self):
        last = self.train("--set", "train.keep=last", "--output", "last")
        self.assertFalse(self.weights(last).exists())
        self.assertEqual(self.weights(last, "last").read_bytes(),
                         (self.folder / "last/model.safetensors").read_bytes())
        self.assertNotIn("sha256", self.state(last)["best"])
        both = self.train("--set", "train.keep=both", "--output", "both")
        self.assertEqual(both["best"], last["best"])
        self.assertEqual(self.weights(both, "last").read_bytes(),
                         self.weights(last, "last").read_bytes())
        self.assertEqual(self.weights(both).read_bytes(),
                         (self.folder / "both/model.safetensors").read_bytes())
        self.assertNotEqual(self.weights(both).read_bytes(),
                            self.weights(last, "last").read_bytes())
        self.assertNotEqual(both["test"], last["test"])

    def test_without_held_out_rows_the_last_weights_are_kept(self):
        report = self.train("--set", "split=null", "--output", "out")
        self.assertIsNone(report["best"])
        self.assertIsNone(report["test"])
        self.assertEqual(self.weights(report, "last").read_bytes(),
                         (self.folder / "out/model.safetensors").read_bytes())

    def test_averaged_weights_are_kept_where_they_are_validated(self):
        report = self.train("--set", "train.ema=0.9", "--set",
                            "train.keep=both", "--output", "out")
        self.assertEqual(self.weights(report).read_bytes(),
                         (self.folder / "out/model.safetensors").read_bytes())
        checkpoint = sorted((self.folder / report["run"]).glob("*.safetensors"))
        self.assertIn(b"ema.", checkpoint[-1].read_bytes())
        self.assertNotIn(b"ema.", self.weights(report).read_bytes())

    def test_another_metric_decides_by_its_own_direction(self):
        report = self.train("--set", "train.metric=accuracy")
        shares = [epoch["val_accuracy"] for epoch in report["epochs"]]
        self.assertEqual(report["best"]["value"], max(shares))
        self.assertEqual(report["best"]["epoch"], shares.index(max(shares)))

    def test_an_unknown_metric_is_refused_with_those_that_there_are(self):
        for arguments in (["train", "job.json"],
                          ["train", "job.json", "--plan"]):
            self.refuse("request", "settings.value", "train.metric", "rmse",
                        "loss, accuracy, auc, macro_f1, top5_accuracy",
                        arguments=arguments, sets=["train.metric=rmse"])

    def test_a_metric_that_these_rows_do_not_have_is_refused_before_a_step(self):
        for arguments in (["train", "job.json"],
                          ["train", "job.json", "--plan"]):
            self.refuse("request", "train.metric", "top5_accuracy",
                        "more than five classes", arguments=arguments,
                        sets=["train.metric=top5_accuracy"])
        for run in (self.folder / "runs").glob("2*"):
            steps = run / "steps.jsonl"
            self.assertFalse(steps.exists() and steps.read_text())

    def test_what_needs_held_out_rows_is_refused_without_them(self):
        for setting in ("patience=3", "metric=accuracy", "keep=best",
                        "keep=both"):
            for arguments in (["train", "job.json"],
                              ["train", "job.json", "--plan"]):
                self.refuse("request", "train.no_held_out_rows",
                            "train." + setting.split("=")[0], "split.val is 0",
                            arguments=arguments,
                            sets=["split=null", f"train.{setting}"])
        self.refuse("request", "train.no_held_out_rows", "train.patience",
                    "none of the rows", sets=[
                        "split.val=0.000001", "train.patience=3"])
        self.train("--set", "split=null", "--set", "train.keep=last")

    def test_a_run_ends_when_its_patience_does_and_resumes_with_more(self):
        whole = self.train("--output", "whole")
        best = whole["best"]["epoch"]
        patience = 3
        self.assertLess(best + patience, EPOCHS - 1)
        answer = self.succeed("train", "job.json", "--json", "--set",
                              f"train.patience={patience}")
        short = answer.json()
        self.assertFalse(short["interrupted"])
        self.assertIn("out of patience: the run ends after "
                      f"{short['steps']} of {whole['steps']} steps; the last "
                      f"{patience} validations", answer.err)
        self.assertEqual(len(short["epochs"]), best + patience + 1)
        self.assertEqual(short["best"], whole["best"])
        self.assertEqual(self.weights(short).read_bytes(),
                         self.weights(whole).read_bytes())
        # The learning rate was that of the whole job.
        self.assertEqual(self.steps_of(short),
                         self.steps_of(whole)[:short["steps"]])
        runs = sorted((self.folder / "runs").iterdir())
        again, told = self.resume(short["run"])
        self.assertEqual(again, short)
        self.assertIn("out of patience", told)
        self.assertIn("train.patience", told)
        self.assertEqual(sorted((self.folder / "runs").iterdir()), runs)
        rest, _ = self.resume(short["run"], "--set", "train.patience=null")
        self.assertEqual(rest["steps"], whole["steps"] - short["steps"])
        self.assertEqual(rest["best"], whole["best"])
        self.assertEqual(rest["test"], whole["test"])
        more, _ = self.resume(short["run"], "--set",
                              f"train.patience={patience + 1}")
        self.assertEqual(len(more["epochs"]), 1)
        self.assertFalse(more["interrupted"])

    def test_a_resumed_run_has_the_best_of_the_whole_run(self):
        whole = self.train()
        rest = self.train("--set", "train.patience=1")
        for patience in 2, 3, "null":  # the best is before, in and after it
            rest, _ = self.resume(rest["run"], "--set",
                                  f"train.patience={patience}")
        self.assertEqual(rest["best"], whole["best"])
        self.assertEqual(self.weights(rest).read_bytes(),
                         self.weights(whole).read_bytes())
        self.assertEqual(rest["test"], whole["test"])

    def test_best_weights_that_are_gone_or_damaged_are_named(self):
        report = self.train("--set", "train.epochs=3")
        path = self.weights(report)
        good = path.read_bytes()
        again = ["train", "--resume", report["run"]]
        more = ["train.epochs=4"]
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        self.refuse("request", "resume.damaged_checkpoint",
                    "weights/best.safetensors", "SHA-256", arguments=again,
                    sets=more)
        path.unlink()
        self.refuse("request", "resume.damaged_checkpoint",
                    "weights/best.safetensors", arguments=again, sets=more)

    def test_a_newer_file_than_the_state_describes_is_not_believed(self):
        report = self.train("--set", "train.epochs=3")
        path = self.weights(report)
        good = path.read_bytes()
        path.rename(path.with_name("best-before.safetensors"))
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        rest, _ = self.resume(report["run"], "--set", "train.epochs=4", "--set",
                              "train.lr=0")
        self.assertEqual(rest["best"], report["best"])
        self.assertEqual(self.weights(rest).read_bytes(), good)

    def test_a_state_of_an_older_version_is_resumed(self):
        report = self.train("--set", "train.epochs=3")
        path = self.folder / report["run"] / "state.json"
        state = json.loads(path.read_text())
        del state["best"], state["before"]
        path.write_text(json.dumps(state))
        self.weights(report).unlink()
        rest, _ = self.resume(report["run"], "--set", "train.epochs=4")
        self.assertEqual(rest["best"]["epoch"], 3)

    def test_another_metric_in_a_resumed_run_begins_again(self):
        report = self.train("--set", "train.epochs=3")
        rest, told = self.resume(report["run"], "--set", "train.epochs=5",
                                 "--set", "train.metric=accuracy")
        self.assertIn("compared by loss, and now by accuracy", told)
        self.assertEqual(rest["best"]["metric"], "accuracy")
        self.assertGreaterEqual(rest["best"]["epoch"], 3)

    def test_it_validates_after_so_many_steps(self):
        each = self.train("--set", "train.epochs=1")["steps"]
        answer = self.succeed("train", "job.json", "--json", "--set",
                              "train.validate_every_steps=5")
        report, all_steps = answer.json(), EPOCHS * each
        for step in [*range(5, all_steps, 5), all_steps]:
            self.assertIn(f"step {step}/{all_steps}: val loss", answer.err)
        self.assertIn(report["best"]["step"], [*range(5, all_steps, 5),
                                               all_steps])
        # Patience counts validations, not epochs.
        short = self.train("--set", "train.validate_every_steps=5", "--set",
                           "train.patience=2")
        self.assertEqual(short["best"], report["best"])
        self.assertEqual(short["steps"], report["best"]["step"] + 10)
        self.assertEqual(sum(epoch["samples"] for epoch in short["epochs"]),
                         16 * short["steps"])
        self.refuse("request", "settings.value", "validate_every_steps",
                    "validate_every_epochs",
                    sets=["train.validate_every_steps=5",
                          "train.validate_every_epochs=2"])

    def test_a_validation_takes_the_same_few_rows_each_time(self):
        self.train("--output", "out")
        still = ["--set", "train.lr=0", "--set", "train.epochs=3", "--set",
                 "model.path=out/model.safetensors"]
        report = self.train(*still, "--set", "train.validate_rows=20")
        self.assertEqual(len({e["val_loss"] for e in report["epochs"]}), 1)
        whole = self.train(*still)
        self.assertNotEqual(report["epochs"][0]["val_loss"],
                            whole["epochs"][0]["val_loss"])
        # Twenty rows: each is a twentieth of the accuracy.
        share = report["epochs"][0]["val_accuracy"] * 20
        self.assertAlmostEqual(share, round(share))
        all_of_them = self.train(*still, "--set",
                                 "train.validate_rows=100000")
        self.assertEqual(all_of_them["epochs"][0]["val_loss"],
                         whole["epochs"][0]["val_loss"])

    def test_a_short_run_warms_up_for_a_twentieth_of_its_steps(self):
        plain = self.train()
        steps = plain["steps"]
        named = self.train("--set", f"train.warmup_steps={steps // 20}")
        self.assertEqual(self.steps_of(named), self.steps_of(plain))
        other = self.train("--set", "train.warmup_steps=50")
        self.assertNotEqual(self.steps_of(other), self.steps_of(plain))


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV and the trainer were not built")
class TestSide(Noise):
    def test_it_is_evaluated_once_on_the_weights_that_are_kept(self):
        answer = self.succeed("train", "job.json", "--json")
        report = answer.json()
        self.assertEqual(set(report["test"]),
                         {"loss", "accuracy", "auc", "macro_f1"})
        self.assertIn("test, on the weights that are kept: loss", answer.err)
        self.assertEqual(sum(report["dataset"][side] for side in
                             ("train", "val", "test")), 240)
        # So they are measured in a run that begins with these weights and
        # leaves them as they are.
        again = self.train("--set", f"model.path={self.weights(report)}",
                           "--set", "train.lr=0", "--set", "train.epochs=1")
        self.assertEqual(again["test"], report["test"])
        self.assertEqual(again["best"]["value"], report["best"]["value"])

    def test_its_rows_are_on_no_other_side(self):
        ids = {}
        for side in ("train", "val", "test"):
            lines = self.batches("--split", side, "--set", "loader.tail=exact",
                                 "--set", "loader.batch_size=1000")
            ids[side] = {json.dumps(key) for line in lines
                         for key in line["keys"]}
        self.assertEqual(sum(map(len, ids.values())), 240)
        self.assertEqual(len(set.union(*ids.values())), 240)

    def test_a_side_test_leaves_the_other_rows_where_they_were(self):
        two = ["--set", 'split={"train": 0.5, "val": 0.3}']
        with_test = self.train()
        without = self.train(*two)
        self.assertEqual(without["epochs"][0]["val_loss"],
                         with_test["epochs"][0]["val_loss"])
        self.assertEqual(self.steps_of(without), self.steps_of(with_test))
        self.assertIsNone(without["test"])
        self.assertEqual(list(self.state(without)["order"]["split"]),
                         ["train", "val", "seed", "by"])

    def test_shares_that_are_more_than_all_rows_are_refused(self):
        self.refuse("request", "settings.value", "split.val", "test 0.3",
                    sets=["split.test=0.3"])


if __name__ == "__main__":
    unittest.main()
