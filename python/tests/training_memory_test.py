"""Memory of steps of a user's own model: a shortage, an estimate, a search."""
import json
import pathlib
import sys
import unittest

from entry import main
from own_model import Case, needs_torch, run_train

# Layers that see each row by itself, so that micro-batches change nothing.
ROWS = """
import torch

class Rows(torch.nn.Module):
    most = 1 << 30  # rows that fit
    most_seen = 1 << 30  # without learning
    calls = []

    def __init__(self, kind, width=32):
        super().__init__()
        self.kind = torch.nn.Embedding(len(kind.classes), 3)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(5, width), torch.nn.ReLU(),
            torch.nn.Linear(width, 1))

    def forward(self, x, kind):
        Rows.calls.append(len(x))
        if len(x) > (Rows.most if self.training else Rows.most_seen):
            raise torch.OutOfMemoryError("made for a test")
        return self.layers(torch.cat([x, self.kind(kind)], 1))

class Normed(Rows):
    def __init__(self, kind, width=32):
        super().__init__(kind, width)
        self.layers.insert(1, torch.nn.BatchNorm1d(width))

class Loss(Rows):
    def forward(self, x, kind, y):
        losses = (y - super().forward(x, kind)[:, 0]) ** 2
        return losses.sum() if self.summed else losses.mean()

class MeanLoss(Loss):
    summed = False

class SumLoss(Loss):
    summed = True

class Pairs(Rows):
    def forward(self, x, kind, y):
        given = super().forward(x, kind)[:, 0]
        return ((y[:, None] - given[None, :]) ** 2).sum() ** 1.5
"""
LIMITED = ROWS.replace("1 << 30  # rows that fit", "4")


@needs_torch
class Shortage(Case):
    def setUp(self):
        super().setUp()
        sys.modules.pop("net", None)
        self.write("net.py", ROWS)
        self.write("limited.py", LIMITED)

    def rows(self, name="Rows", **train):
        return self.job(f"net.py:{name}", train=train)

    def limited(self, name="Rows", **train):
        return self.job(f"limited.py:{name}", train=train)

    def actions(self, report):
        return [(one["action"], one["from"], one["to"]) for one in report["oom"]
                if one["action"] != "look_ahead"]

    def assert_alike(self, run, other, within=1e-5):
        for one, two in zip(run.module.parameters(), other.module.parameters()):
            self.assertLess((one - two).abs().max().item(), within)

    def test_a_batch_that_does_not_fit_is_trained_in_micro_batches(self):
        whole = self.train(self.rows())
        short = self.train(self.limited())
        self.assertEqual(whole.report["oom"], [])
        self.assertEqual(self.actions(short.report),
                         [("micro_batch", 16, 8), ("micro_batch", 8, 4)])
        self.assertEqual({one["step"] for one in short.report["oom"]}, {0})
        self.assertTrue(all(one["exact"] for one in short.report["oom"]))
        self.assertEqual(short.report["steps"], whole.report["steps"])
        self.assert_alike(short, whole)
        asked = self.train(self.rows(micro_batch=4))
        self.assertEqual(asked.report["oom"], [])
        self.assert_alike(short, asked, within=1e-12)

    def test_groups_of_batches_are_divided_too(self):
        whole = self.train(self.rows(accumulate=3, ema=0.9))
        self.assert_alike(self.train(self.limited(accumulate=3, ema=0.9)),
                          whole)

    def test_the_job_may_ask_for_an_end_instead(self):
        with self.refused("out_of_memory", "model.out_of_memory", "made for"):
            self.train(self.limited(oom="stop"))
        with self.refused("out_of_memory", "model.out_of_memory", "step 0",
                          "train.micro_batch_min", "parameters"):
            self.train(self.limited(micro_batch_min=8))

    def test_batch_normalization_is_not_divided_where_that_is_not_exact(self):
        with self.refused("out_of_memory", "model.out_of_memory", "step 0"):
            self.train(self.limited("Normed", oom="exact"))
        report = self.train(self.limited("Normed")).report
        self.assertEqual([one["exact"] for one in report["oom"]
                          if one["action"] == "micro_batch"], [False, False])

    def test_a_row_that_does_not_fit_alone_is_named(self):
        self.write("none.py", ROWS.replace("1 << 30  # rows that fit", "0"))
        with self.refused("out_of_memory", "model.out_of_memory", "row 0",
                          "key", "does not fit by itself"):
            self.train(self.job("none.py:Rows"))

    def test_validation_is_divided_with_the_same_result(self):
        self.write("seen.py", ROWS.replace("1 << 30  # without", "3  # without"))
        run = self.train(self.job("seen.py:Rows"))
        self.assertEqual(self.actions(run.report),
                         [("validation_rows", 16, 8), ("validation_rows", 8, 4),
                          ("validation_rows", 4, 2)])
        expected = self.train(self.rows()).report["metrics"]["val"]
        for name in ("loss", "rmse", "mae"):
            self.assertAlmostEqual(run.report["metrics"]["val"][name],
                                   expected[name], 5)
        with self.refused("out_of_memory", "model.out_of_memory"):
            self.train(self.job("seen.py:Rows", train={"oom": "stop"}))

    def test_the_size_in_force_goes_on_in_a_resumed_run(self):
        folder = self.stopped_after(3, self.limited(epochs=2))
        again = self.resume(folder)
        self.assertEqual(self.actions(again.report), [])
        self.assert_alike(again, self.train(self.rows(micro_batch=4)), 1e-12)

    def test_a_module_that_gives_its_loss(self):
        for name in ("MeanLoss", "SumLoss"):
            with self.subTest(name):
                job = self.job(f"net.py:{name}", model={"target": ""},
                               train={"clip_norm": 0})
                short = self.job(f"limited.py:{name}", model={"target": ""},
                                 train={"clip_norm": 0})
                whole, divided = self.train(job), self.train(short)
                self.assert_alike(divided, whole)
                if name == "MeanLoss":
                    self.assertAlmostEqual(
                        divided.report["epochs"][0]["train_loss"],
                        whole.report["epochs"][0]["train_loss"], 4)

    def test_a_loss_of_rows_together_is_not_divided_in_silence(self):
        with self.assertLogs("penstock", "WARNING") as logged:
            self.train(self.job("limited.py:Pairs", model={"target": ""}))
        self.assertIn("neither a sum nor a mean", "\n".join(logged.output))

    def test_memory_is_told_by_owner_and_over_time(self):
        memory = self.train(self.rows()).report["memory"]
        peak = memory["peak_by_owner"]
        parameters = 4 * (12 + 5 * 32 + 32 + 32 + 1)
        self.assertEqual(peak["parameters"], parameters)
        self.assertEqual(peak["gradients"], parameters)
        self.assertGreaterEqual(peak["optimizer"], 2 * parameters)
        self.assertGreater(peak["activations"], 16 * 32 * 4)
        over = memory["over_time"]
        self.assertEqual({len(column) for column in over.values()},
                         {len(over["seconds"])})
        self.assertEqual(max(over["activations"]), peak["activations"])


@needs_torch
class Estimate(Case):
    def setUp(self):
        super().setUp()
        self.write("net.py", ROWS.replace("width=32", "width=4096"))
        self.write("job.json", json.dumps(self.job(
            "net.py:Rows", loader={"batch_size": 128}, train={"epochs": 1})))

    def estimate(self, *more):
        done = run_train("job.json", "--estimate", "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["memory"]

    def test_the_program_tells_what_a_step_takes(self):
        memory = self.estimate()
        self.assertEqual(
            memory["total"],
            sum(memory[owner] for owner in (
                "parameters", "gradients", "optimizer", "activations", "cache",
                "look_ahead")))
        job = json.loads(pathlib.Path("job.json").read_text())
        peak = self.train(job).report["memory"]["peak_by_owner"]
        self.assertAlmostEqual(memory["total"] / sum(peak.values()), 1,
                               delta=0.1)
        done = run_train("job.json", "--estimate", "--model", "net.py:Rows")
        self.assertIn("activations of 128 rows about", done.stdout)
        self.assertFalse(pathlib.Path("runs").exists() and
                         len(list(pathlib.Path("runs").iterdir())) > 2)

    def test_a_micro_batch_that_fits_is_found(self):
        memory = self.estimate()
        limit = memory["total"] - memory["activations"] / 2
        device = {"kind": "cpu", "memory_gib": limit / (1 << 30)}
        done = run_train("job.json", "--json", "--set",
                         "train.micro_batch=auto", "--set",
                         "device=" + json.dumps(device))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("train.micro_batch: ", done.stderr)
        self.assertEqual(json.loads(done.stdout)["oom"], [])

    def test_a_batch_size_is_not_searched_for(self):
        done = run_train("job.json", "--set", "loader.batch_size=auto")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("penstock.max_batch_size()", done.stderr)


@needs_torch
class RealShortage(Case):
    def test_a_limit_of_the_system_is_survived(self):
        """Each row takes 16 MiB, and the process may have 600 MiB more."""
        self.write("net.py", """
import resource
import torch

class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1 << 21)

    def forward(self, x):
        if self.training:
            limit()
        return self.layer(x).relu().mean(1)

done = []

def limit():
    if done:
        return
    done.append(True)
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + (600 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
""")
        self.write("job.json", json.dumps(self.job(
            "net.py:Wide", loader={"batch_size": 64},
            train={"max_steps": 2})))
        done = run_train("job.json", "--json")
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        report = json.loads(done.stdout)
        self.assertEqual(report["steps"], 2)
        sizes = [one["to"] for one in report["oom"]
                 if one["action"] == "micro_batch"]
        self.assertEqual(sizes[0], 32)
        self.assertLessEqual(sizes[-1], 16)


if __name__ == "__main__":
    main()
