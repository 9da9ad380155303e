"""What a run leaves for other programs: events for TensorBoard, CSV, the text
of Prometheus, a trace, and the times of its stages in the log."""
import csv
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import unittest

from penstock_cli import Case

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/exports"
METRIC = re.compile(
    r'^penstock_[a-zA-Z0-9_]+\{run="[^"\n]*"\} -?[0-9.e+-]+$')


class Exports(Case):
    def run_with(self, *sets):
        self.good_start(train={"epochs": 2})
        settings = [part for one in sets for part in ("--set", one)]
        report = self.train(*settings)
        return report, pathlib.Path(self.folder) / report["run"]

    @unittest.skipIf(event_accumulator is None, "there is no TensorBoard")
    def test_tensorboard_reads_the_events(self):
        report, run = self.run_with("output.tensorboard=true")
        events = event_accumulator.EventAccumulator(str(run))
        events.Reload()
        tags = events.Tags()["scalars"]
        self.assertLessEqual({"samples_per_s", "wait_data", "cpus", "epoch",
                              "resident_bytes", "epoch/samples",
                              "epoch/cpus_mean", "epoch/cpus_max",
                              "epoch/resident_bytes_max"}, set(tags))
        epochs = events.Scalars("epoch/samples")
        self.assertEqual([event.value for event in epochs],
                         [epoch["samples"] for epoch in report["epochs"]])
        self.assertEqual(epochs[-1].step, report["steps"])
        self.assertGreater(epochs[-1].wall_time, 1.7e9)
        rates = events.Scalars("samples_per_s")
        self.assertTrue(all(event.value > 0 for event in rates))

    def test_events_are_there_only_where_they_are_asked_for(self):
        _, run = self.run_with()
        left = {file.name for file in run.iterdir()}
        self.assertFalse([name for name in left if name.startswith("events")])
        self.assertFalse({"metrics.csv", "epochs.csv", "metrics.prom",
                          "trace.json"} & left)

    def test_csv_has_a_line_for_each_epoch(self):
        report, run = self.run_with("output.csv=true")
        with open(run / "epochs.csv", newline="", encoding="utf-8") as file:
            epochs = list(csv.DictReader(file))
        self.assertEqual([int(float(e["samples"])) for e in epochs],
                         [e["samples"] for e in report["epochs"]])
        with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
            moments = list(csv.DictReader(file))
        self.assertTrue(moments)
        for moment in moments:
            self.assertGreater(float(moment["time"]), 1.7e9)
            parts = [float(moment[key] or "nan") for key in
                     ("wait_data", "wait_copy", "host", "sync")]
            if not any(map(math.isnan, parts)):
                self.assertLessEqual(sum(parts), 1.000001)

    def test_prometheus_text_is_well_formed(self):
        report, run = self.run_with("output.prometheus=true")
        text = (run / "metrics.prom").read_text()
        for line in text.splitlines():
            self.assertTrue(line.startswith("# TYPE ") or METRIC.match(line),
                            line)
        self.assertIn(f'penstock_steps{{run="{run.name}"}} '
                      f'{float(report["steps"])}', text)
        if text_string_to_metric_families is not None:
            families = list(text_string_to_metric_families(text))
            self.assertIn("penstock_epoch_samples",
                          [family.name for family in families])

    def test_a_trace_has_the_pipeline_and_the_device(self):
        self.good_start()
        report = self.train("--trace", "--set", "device=sim", "--set",
                            "device.step_ms=2", "--set", "loader.cache=none")
        trace = json.loads((pathlib.Path(self.folder) / report["run"] /
                            "trace.json").read_text())
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertLessEqual({"plan", "read", "step"},
                             {span["name"] for span in spans})
        steps = sorted((e for e in spans if e["name"] == "step"),
                       key=lambda e: e["ts"])
        self.assertEqual(len(steps), report["steps"] - 1)
        for before, after in zip(steps, steps[1:]):
            self.assertGreaterEqual(after["ts"] + 0.01,
                                    before["ts"] + before["dur"])
        # One clock: batches are read before the step that uses them ends.
        first_read = min(e["ts"] for e in spans if e["name"] == "read")
        self.assertLess(first_read, steps[-1]["ts"])

    def test_the_debug_log_says_what_each_stage_took(self):
        self.good_start()
        answer = self.run_it("--log", "debug", "train", "job.json", "--set",
                          "loader.cache=none")
        self.assertEqual(answer.code, 0, answer.err)
        self.assertRegex(answer.err,
                         r"read > avg [0-9.e+-]+ ms, max [0-9.e+-]+ ms")

    def example(self, name):
        """Runs an example over a run, and gives the folder that runs are in."""
        _, run = self.run_with()
        done = subprocess.run(
            [sys.executable, EXAMPLES / name, run], cwd=self.folder,
            capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return run.parent

    @unittest.skipIf(importlib.util.find_spec("mlflow") is None,
                     "there is no MLflow")
    def test_mlflow_has_the_run(self):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        import mlflow

        runs = self.example("mlflow_run.py")
        mlflow.set_tracking_uri((runs / "mlruns").as_uri())
        [run] = mlflow.MlflowClient().search_runs(["0"])
        self.assertIn("au", run.data.metrics)
        self.assertIn("samples", run.data.metrics)
        self.assertTrue(run.data.tags["verdict"])

    @unittest.skipIf(importlib.util.find_spec("wandb") is None,
                     "there is no Weights & Biases")
    def test_weights_and_biases_has_the_run_offline(self):
        runs = self.example("wandb_run.py")
        [kept] = runs.glob("wandb/offline-run-*/run-*.wandb")
        self.assertGreater(kept.stat().st_size, 200)


if __name__ == "__main__":
    unittest.main()
