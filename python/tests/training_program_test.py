"""`penstock train` of a user's own model, and its document."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from entry import main
from own_model import NET, Case, needs_torch, run_train, weights_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Document(unittest.TestCase):
    def test_the_example_stands_in_the_document(self):
        text = (ROOT / "docs/how-to/own_model.md").read_text()
        example = ROOT / "examples/own_model"
        net = (example / "net.py").read_text().partition('"""\n')[2]
        self.assertGreater(len(net), 100)
        self.assertIn(net, text)
        self.assertIn((example / "job.json").read_text(), text)


@needs_torch
class Program(Case):
    """`penstock train`, which becomes this Python."""

    def test_the_same_run_as_from_python(self):
        self.write("job.json", json.dumps(self.job()))
        done = run_train("job.json", "--json", "--output", "left")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertIn("the weights are in", done.stderr)
        self.assertEqual(weights_of(report["run"]),
                         weights_of(self.train(self.job()).folder))

    def test_model_names_it_in_place_of_the_jobs(self):
        job = self.job()
        job["model"] = "none"
        self.write("job.json", json.dumps(job))
        self.write("net.py", NET.replace("def forward(self, x, kind):",
                                         "def forward(self, x, kind, y):")
                   .replace("        return self.layers(",
                            "        return ((y - self.layers(")
                   .replace("], 1)))", "], 1)))[:, 0]) ** 2).mean()"))
        done = run_train("job.json", "--model", "net.py:Net")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("steps, ", done.stdout)
        part = run_train("--resume", "runs/latest", "--set",
                         "train.max_steps=20", "--set", "train.epochs=3",
                         "--json")
        self.assertEqual(json.loads(part.stdout)["steps"], 2)

    def test_a_plan_ends_with_what_would_end_the_run(self):
        job = self.job("gone.py:Net")
        self.write("job.json", json.dumps(job))
        self.write("taken", "a file")
        for arguments, code, words in (
                ([], "model.class", "there is no file 'gone.py'"),
                (["--model", "net.py:Nett"], "model.class", "'Net'"),
                (["--model", "net.py:Net", "--set",
                  'model.arguments={"widht": 3}'], "model.arguments",
                 "did you mean 'width'?"),
                (["--model", "net.py:Net", "--output", "taken"], "", "taken")):
            with self.subTest(arguments):
                told = run_train("job.json", "--plan", "--json", *arguments)
                self.assertEqual(told.returncode, 2, told.stderr)
                error = json.loads(told.stdout)["error"]
                self.assertIn(code, error["code"])
                self.assertIn(words, json.dumps(error))
        told = run_train("job.json", "--plan", "--model", "net.py:Net")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertFalse(pathlib.Path("runs").exists())

    def test_a_signal_ends_it_with_its_state_saved(self):
        self.write("slow.py", NET.replace(
            "    def forward(self, x, kind):", """
    def forward(self, x, kind):
        import os, signal, time
        if self.training and not os.path.exists("sent"):
            open("sent", "w").close()
            os.kill(os.getpid(), signal.SIGTERM)
"""))
        self.write("job.json", json.dumps(self.job("slow.py:Net")))
        done = run_train("job.json", "--json")
        self.assertEqual(done.returncode, 128 + signal.SIGTERM, done.stderr)
        report = json.loads(done.stdout)
        self.assertTrue(report["interrupted"])
        self.assertEqual(report["steps"], 1)
        again = run_train("--resume", report["run"], "--json")
        self.assertEqual(json.loads(again.stdout)["steps"], 17)

    def test_what_the_module_raises_is_told_with_its_traceback(self):
        self.write("bad.py", NET.replace("return self.layers(",
                                         "return self.layer("))
        self.write("job.json", json.dumps(self.job("bad.py:Net")))
        done = run_train("job.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Traceback", done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("penstock: the model failed"), last)
        self.assertIn("'Net' object has no attribute 'layer'", last)

    def test_a_reader_that_has_read_enough_is_no_error(self):
        # A report that is longer than what Python buffers.
        self.write("job.json", json.dumps(self.job(train={"epochs": 40})))
        ends, begins = os.pipe()
        os.close(ends)
        done = run_train("job.json", "--json", stdout=begins)
        os.close(begins)
        self.assertEqual(done.returncode, 141, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_the_example_of_the_document_runs(self):
        subprocess.run([sys.executable,
                        ROOT / "examples/own_table/make_penguins.py"],
                       check=True, capture_output=True)
        for name in ("net.py", "job.json"):
            (self.folder / name).write_text(
                (ROOT / "examples/own_model" / name).read_text())
        done = run_train("job.json", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(
            json.loads(done.stdout)["metrics"]["val"]["accuracy"], 0.7)


if __name__ == "__main__":
    main()
