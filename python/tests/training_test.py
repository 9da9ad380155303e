"""penstock.train: a user's own torch module in the program's run."""
import json
import math
import os
import pathlib
import signal
import sys

import penstock
import penstock.program
from entry import main
from own_model import NET, Case, needs_torch, quietly, steps_of, weights_of


def trainers():
    """The releases of torch that trainers of built-in models are there for."""
    parts = pathlib.Path(penstock.program.path()).resolve().parents[1] / \
        "lib/penstock"
    return [part.stem.rpartition("_")[2]
            for part in parts.glob("libpenstock_trainer_*.so")]


@needs_torch
class Runs(Case):
    def test_a_module_learns_and_is_measured_on_held_out_rows(self):
        run = self.train(self.job(train={"epochs": 20, "lr": 0.05}))
        epochs = run.report["epochs"]
        self.assertLess(epochs[-1]["val_loss"], epochs[0]["val_loss"] / 2)
        self.assertEqual(set(run.report["metrics"]["val"]),
                         {"loss", "rmse", "mae"})
        self.assertFalse(run.module.training)
        self.assertEqual(type(run.module).__name__, "Net")

    def test_metrics_of_numbers_are_in_the_targets_own_units(self):
        job = self.job(fields={"y": {"column": "y", "standardize": True}})
        metrics = self.train(job).report["metrics"]["val"]
        with penstock.open(job) as loader:
            divisor = loader.statistics["y"]["y"]["divisor"]
        self.assertAlmostEqual(metrics["rmse"],
                               divisor * math.sqrt(metrics["loss"]), places=4)

    def test_a_category_is_learned_by_cross_entropy(self):
        text = NET.replace("def __init__(self, kind,",
                           "def __init__(self, kind, big,").replace(
            "Linear(width, 1)", "Linear(width, len(big.classes))")
        self.write("net.py", text)
        run = self.train(self.job(model={"target": "big"},
                                  train={"epochs": 20, "lr": 0.03}))
        metrics = run.report["metrics"]["val"]
        self.assertGreater(metrics["accuracy"], 0.8)
        self.assertGreater(metrics["auc"], 0.8)
        self.assertIn("macro_f1", metrics)

    def test_the_report_shows_rows_of_a_category_and_of_a_number(self):
        text = NET.replace("def __init__(self, kind,",
                           "def __init__(self, kind, big,").replace(
            "Linear(width, 1)", "Linear(width, len(big.classes))")
        self.write("net.py", text)
        report = self.train(self.job(model={"target": "big"})).report
        held_out = report["dataset"]["val"]
        counts = report["confusion"]["counts"]
        self.assertEqual(sum(map(sum, counts)), held_out)
        right = sum(counts[at][at] for at in range(len(counts)))
        self.assertAlmostEqual(report["metrics"]["val"]["accuracy"],
                               right / held_out)
        self.assertEqual(sum(one["rows"] for one in report["by_class"]),
                         held_out)
        self.assertEqual(report["baseline"]["of"], "train")
        self.assertIn(report["baseline"]["class"],
                      report["confusion"]["classes"])
        self.check_worst(report)
        self.write("net.py", NET)
        report = self.train(self.job(fields={
            "y": {"column": "y", "standardize": True}})).report
        self.assertEqual(sum(report["residuals"]["histogram"]["counts"]),
                         held_out)
        errors = [guess - truth for truth, guess
                  in report["residuals"]["points"]]
        self.assertAlmostEqual(
            report["metrics"]["val"]["rmse"],
            math.sqrt(sum(one ** 2 for one in errors) / len(errors)), places=4)
        self.check_worst(report)

    def check_worst(self, report):
        worst = report["worst_rows"]
        losses = [row["loss"] for row in worst]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual(len({row["key"] for row in worst}), len(worst))
        self.assertLessEqual(len(worst), 20)

    def test_without_a_truth_a_row_there_is_nothing_to_show(self):
        self.write("net.py", """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
    def forward(self, x):
        return self.layer(x)
""")
        report = self.train(self.job(model={"target": "x"})).report
        self.assertIn("rmse", report["metrics"]["val"])
        for part in ("residuals", "worst_rows", "confusion"):
            self.assertNotIn(part, report)

    def test_a_module_may_give_its_loss_and_other_numbers(self):
        self.write("net.py", """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, batch):
        off = self.layer(batch["x"])[:, 0] - batch["y"]
        return {"loss": (off ** 2).mean(), "bias": off.mean()}
""")
        run = self.train(self.job(model={"target": None}))
        self.assertEqual(set(run.report["metrics"]["val"]), {"loss", "bias"})

    def test_a_class_a_function_and_a_module_do_as_well_as_a_name(self):
        import torch

        class Line(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 1)

            def forward(self, x):
                return self.layer(x)

        class Few(Line):
            def forward(self, x):
                return super().forward(x)[:, 0]

        def made(fields):
            self.assertEqual(fields["x"].size, 2)
            return torch.nn.Sequential(torch.nn.Linear(2, 1))

        job = self.job(fields={"kind": None, "big": None})
        losses = [self.train(job, model).report["epochs"][0]["train_loss"]
                  for model in (Line, Few, made)]
        self.assertEqual(losses, losses[:1] * 3)
        self.train(job, torch.nn.Linear(2, 1))

    def test_a_compiled_module_is_the_module_in_all_that_is_said_and_kept(self):
        import torch

        class Line(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 1)

            def forward(self, x):
                return self.layer(x)

        job = self.job(fields={"kind": None, "big": None})
        torch.manual_seed(3)
        plain = self.train(job, Line())
        torch.manual_seed(3)
        run = self.train(job, torch.compile(Line(), backend="eager"))
        self.assertEqual(type(run.module).__name__, "OptimizedModule")
        self.assertEqual(steps_of(run.folder), steps_of(plain.folder))
        self.assertEqual(weights_of(run.folder), weights_of(plain.folder))

    def test_numbers_do_not_depend_on_workers(self):
        runs = [self.train(self.job(loader={"workers": workers}))
                for workers in (0, 1, 2, 8)]
        for run in runs[1:]:
            self.assertEqual(steps_of(run.folder), steps_of(runs[0].folder))
            self.assertEqual(weights_of(run.folder),
                             weights_of(runs[0].folder))

    def test_constructors_take_arguments_of_the_job_by_name(self):
        run = self.train(self.job(model={"arguments": {"width": 32}}))
        self.assertEqual(run.module.layers[0].out_features, 32)

    def test_no_random_number_of_the_process_is_used_or_moved(self):
        import torch
        torch.manual_seed(1)
        expected = torch.rand(3)
        torch.manual_seed(1)
        first = self.train(self.job())
        self.assertTrue(torch.equal(torch.rand(3), expected))
        self.assertEqual(steps_of(self.train(self.job()).folder),
                         steps_of(first.folder))

    def test_padding_and_masked_numbers_weigh_nothing(self):
        job = self.job(
            fields={"y": {"column": "y", "missing": "mask"}},
            source={"where": "id < 100"}, loader={"tail": "pad"})
        plain = self.job(source={"where": "id < 100"},
                         loader={"tail": "exact"})
        for section in (job, plain):
            section["split"] = {"train": 0.5, "val": 0.5, "seed": 1}
            section["train"] = {"max_steps": 1, "threads": 1, "lr": 0}
        found = [self.train(each).report["metrics"]["val"]["loss"]
                 for each in (job, plain)]
        self.assertAlmostEqual(found[0], found[1], places=4)

    def test_an_optimiser_of_ones_own_follows_the_jobs_schedule(self):
        self.write("net.py", NET + """
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
""")
        whole = self.train(self.job())
        part = self.stopped_after(5, self.job())
        self.assertEqual(weights_of(self.resume(part).folder),
                         weights_of(whole.folder))

    def test_a_run_is_of_one_job_or_of_a_run(self):
        with self.refused("request", "model.job", "neither"):
            penstock.train()
        with self.refused("request", "model.job", "both"):
            penstock.train("job.json", resume="runs/latest")

    def test_a_built_in_model_is_trained_as_by_the_program(self):
        job = self.job()
        job["model"] = {"kind": "tabular", "target": "y"}
        import torch

        if not trainers():
            self.skipTest("no trainer was built")
        if ".".join(torch.__version__.split(".")[:2]) not in trainers():
            with self.refused("request", "trainer.torch", "expected one of"):
                penstock.train(job)
        else:
            run = self.train(job)
            self.assertIsNone(run.module)
            self.assertIn("rmse", run.report["metrics"]["val"])
        run = self.train(job, "net.py:Net")  # whose target is the same
        self.assertIn("rmse", run.report["metrics"]["val"])


@needs_torch
class Resuming(Case):
    def test_resumed_anywhere_it_ends_with_the_same_bytes(self):
        job = self.job(train={"ema": 0.9, "accumulate": 4})
        whole = self.train(job).folder
        self.assertEqual(len(steps_of(whole)), 18)
        for steps in (1, 4, 9, 17):
            with self.subTest(steps=steps):
                part = self.stopped_after(steps, job)
                again = self.resume(part).folder
                self.assertEqual(weights_of(again), weights_of(whole))
                self.assertEqual(steps_of(part) + steps_of(again),
                                 steps_of(whole))

    def test_ctrl_c_in_a_step_lets_it_end(self):
        self.write("stops.py", NET.replace(
            "    def forward(self, x, kind):", """
    def forward(self, x, kind):
        import os, signal
        os.kill(os.getpid(), signal.SIGINT)
"""))
        with self.assertRaises(KeyboardInterrupt):
            self.train(self.job("stops.py:Net"))
        self.assertEqual(len(steps_of(os.path.realpath("runs/latest"))), 1)

    def test_a_closed_terminal_ends_it_with_its_state_saved(self):
        self.write("hangs_up.py", NET.replace(
            "    def forward(self, x, kind):", """
    def forward(self, x, kind):
        import os, signal
        os.kill(os.getpid(), signal.SIGHUP)
"""))
        seen = []
        before = signal.signal(signal.SIGHUP, lambda *_: seen.append("seen"))
        try:
            part = self.train(self.job("hangs_up.py:Net"))
            self.assertEqual(seen, ["seen"])  # what it would have done
            self.assertTrue(part.report["interrupted"])
            self.assertEqual(len(steps_of(part.folder)), 1)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            whole = self.train(self.job("hangs_up.py:Net"))
            self.assertFalse(whole.report["interrupted"])
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_held_out_rows_that_a_run_still_owes_are_seen_when_it_goes_on(self):
        whole = self.train(self.job())
        part = self.stopped_after(9, self.job())  # the end of an epoch
        again = self.resume(part)
        self.assertEqual(
            *([epoch["val_loss"] for epoch in run.report["epochs"]]
              for run in (again, whole)))

    def test_a_step_that_fails_leaves_the_state_before_it(self):
        self.write("fails.py", NET.replace(
            "    def forward(self, x, kind):", """
    steps = 0
    def forward(self, x, kind):
        Net.steps += 1
        if Net.steps == 6:
            self.norm(torch.ones(4, 5))
            raise ZeroDivisionError("no more")
"""))
        with self.refused("request", "model.raised", "no more", "fails.py"):
            self.train(self.job("fails.py:Net"))
        part = os.path.realpath("runs/latest")
        self.assertEqual(len(steps_of(part)), 5)
        self.write("fails.py", NET)
        sys.modules.pop("fails", None)
        again = self.resume(part)
        self.assertEqual(weights_of(again.folder),
                         weights_of(self.train(self.job()).folder))

    def test_a_loss_that_is_no_number_ends_it_before_the_weights_move(self):
        self.write("nan.py", NET.replace(
            "    def forward(self, x, kind):", """
    steps = 0
    def forward(self, x, kind):
        Net.steps += 1
        if Net.steps == 6:
            return self.layers[0](torch.ones(16, 5))[:, :1] * float("nan")
"""))
        with self.refused("transform", "train.not_finite", "NaN", "step 5"):
            self.train(self.job("nan.py:Net"))
        part = os.path.realpath("runs/latest")
        again = self.resume(part, skip=1)
        self.assertTrue(math.isfinite(again.report["epochs"][-1]["val_loss"]))

    def test_out_of_memory_is_an_error_of_that_kind(self):
        self.write("big.py", NET.replace(
            "        return self.layers(", """
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to")
        return self.layers("""))
        with self.refused("out_of_memory", "model.out_of_memory", "Tried to"):
            self.train(self.job("big.py:Net").copy())

    def test_another_module_does_not_go_on_from_a_checkpoint(self):
        run = self.train(self.job(train={"max_steps": 2}))
        with self.refused("request", "resume.other_model", "layers.0.weight",
                          "expected float32 [9, 5]"):
            self.resume(run.folder, train__max_steps=4,
                        model__arguments={"width": 9})
        self.write("net.py", NET.replace("self.norm", "self.normal"))
        sys.modules.pop("net", None)
        with self.refused("request", "resume.other_model", "model.normal"):
            self.resume(run.folder, train__max_steps=4)

    def test_weights_are_left_and_a_run_begins_with_them(self):
        import torch
        first = self.train(self.job(), output="left")
        found = (self.folder / "left/model.safetensors").read_bytes()
        self.assertIn(b"layers.0.weight", found)
        self.assertTrue((self.folder / "left/statistics.json").exists())
        second = self.train(self.job(model={"path": "left/model.safetensors"},
                                     train={"max_steps": 1, "lr": 0}))
        for one, other in zip(first.module.parameters(),
                              second.module.parameters()):
            self.assertTrue(torch.equal(one, other))
        with self.refused("request", "model.weights", "layers.0."):
            self.train(self.job(model={"path": "left/model.safetensors",
                                       "arguments": {"width": 3}}))


@needs_torch
class Switches(Case):
    def effective(self, run):
        return json.loads((pathlib.Path(run.folder) / "run.json").read_text())[
            "effective"]

    def test_what_is_in_force_is_said_and_kept(self):
        told, run = quietly(lambda: penstock.train(self.job(train={
            "precision": "bfloat16", "tf32": True, "label_smoothing": 0.1,
            "graphs": "auto", "max_steps": 3})))
        self.assertIn("precision: bfloat16\n", told)
        self.assertIn("tf32: false (asked: true): the cpu does not support it", told)
        found = self.effective(run)
        self.assertEqual(found["precision"],
                         {"asked": "bfloat16", "got": "bfloat16"})
        self.assertEqual(found["tf32"]["why"], "the cpu does not support it")
        self.assertEqual(found["label_smoothing"]["got"], 0)
        self.assertEqual(found["graphs"]["got"], "off")
        self.assertIn("model.compile", found["graphs"]["why"])
        self.assertEqual(set(found), {"precision", "tf32", "graphs", "accumulate",
                                      "ema", "label_smoothing"})

    def test_every_precision_learns_and_resumes(self):
        exact = self.train(self.job()).report["epochs"][-1]["val_loss"]
        for precision in ("bfloat16", "float16"):
            with self.subTest(precision):
                whole = self.train(self.job(train={"precision": precision}))
                found = whole.report["epochs"][-1]["val_loss"]
                self.assertNotEqual(found, exact)
                self.assertLess(abs(found - exact), 0.05 * exact)
                part = self.stopped_after(
                    7, self.job(train={"precision": precision}))
                self.assertEqual(weights_of(self.resume(part).folder),
                                 weights_of(whole.folder))

    def test_two_steps_together_are_one_of_twice_the_rows(self):
        text = NET.replace("torch.nn.Dropout(0.1)", "torch.nn.Identity()"
                           ).replace("self.norm(torch.cat", "(torch.cat")
        self.write("net.py", text.replace(
            "        self.norm = torch.nn.BatchNorm1d(5)\n", ""))
        job = {"clip_norm": 0, "warmup_steps": 0, "max_steps": 2}
        two = self.train(self.job(train={**job, "accumulate": 2}))
        one = self.train(self.job(train={**job, "max_steps": 1},
                                  loader={"batch_size": 32}))
        self.assertAlmostEqual(two.report["metrics"]["val"]["loss"],
                               one.report["metrics"]["val"]["loss"], delta=0.05)

    def test_the_average_of_the_weights_is_validated_and_left(self):
        import torch
        job = {"ema": 0.5, "lr": 0.05}
        run = self.train(self.job(train=job), output="left")
        plain = self.train(self.job(train={**job, "ema": 0}))
        self.assertEqual(run.report["epochs"][0]["train_loss"],
                         plain.report["epochs"][0]["train_loss"])
        self.assertNotEqual(run.report["metrics"]["val"]["loss"],
                            plain.report["metrics"]["val"]["loss"])
        whole = self.train(self.job(
            model={"path": "left/model.safetensors"},
            train={"max_steps": 1, "lr": 0}))
        for one, other in zip(run.module.parameters(),
                              whole.module.parameters()):
            self.assertTrue(torch.equal(one, other))

    def test_smoothing_changes_what_is_learned_and_not_what_is_measured(self):
        text = NET.replace("Linear(width, 1)", "Linear(width, 2)")
        self.write("net.py", text)
        job = {"model": {"target": "big"}}
        rest = {"lr": 0, "max_steps": 2}
        plain = self.train(self.job(**job, train=rest)).report
        smooth = self.train(self.job(**job, train={
            **rest, "label_smoothing": 0.2})).report
        self.assertNotEqual(smooth["epochs"][0]["train_loss"],
                            plain["epochs"][0]["train_loss"])
        self.assertEqual(smooth["metrics"]["val"], plain["metrics"]["val"])

    def test_held_out_rows_have_a_batch_size_of_their_own(self):
        self.write("sizes.py", NET.replace(
            "    def forward(self, x, kind):", """
    def forward(self, x, kind):
        # The last batch of the held-out rows has what is left of them.
        assert len(x) == 16 if self.training else len(x) <= 25, len(x)
"""))
        run = self.train(self.job("sizes.py:Net",
                                  source={"where": "id < 200"},
                                  split={"train": 0.5, "val": 0.5},
                                  loader={"val_batch_size": 25, "tail": "drop"}))
        self.assertIn("rmse", run.report["metrics"]["val"])


if __name__ == "__main__":
    main()
