"""penstock monitor: a machine and a process over time."""
import json
import signal
import subprocess
import threading
import time
import unittest

from penstock_cli import PROGRAM, Case


class Monitor(Case):
    def test_sums_up_the_machine(self):
        seen = self.succeed("monitor", "--duration=0.6", "--interval=0.1",
                            "--gpus=none", "--json").json()
        self.assertEqual(seen["samples"], 6)
        self.assertAlmostEqual(seen["seconds"], 0.6, delta=0.4)
        cpu = seen["metrics"]["cpu_percent"]
        self.assertEqual(set(cpu), {"mean", "min", "max", "p95"})
        self.assertLessEqual(cpu["min"], cpu["mean"])
        self.assertLessEqual(cpu["mean"], cpu["max"])
        self.assertIsNone(seen["process"])
        self.assertTrue(seen["assessment"])

    def test_shows_people_lines_and_a_table(self):
        text = self.succeed("monitor", "--duration=0.3", "--interval=0.1",
                            "--gpus=synthetic").out
        self.assertEqual(text.count("gpu0.utilisation "), 3)
        self.assertIn("the GPU is simulated", text)
        self.assertRegex(text, r"cpu_percent +\d+\.\d %")

    def test_a_file_that_cannot_be_written_is_refused_at_once(self):
        told = self.run_it("monitor", "--duration=60", "--gpus=none",
                           "--output=no/such/folder/x.json")
        self.assertEqual(told.code, 2)
        self.assertIn("is not a folder", told.err)
        self.assertEqual(told.out, "")  # nothing was measured

    def test_looks_at_a_process_with_its_workers(self):
        workers = subprocess.Popen(
            ["python3", "-c", "import subprocess\nsubprocess.run(['python3', "
             "'-c', 'import time\\nend = time.time() + 2\\n"
             "while time.time() < end: pass'])"])
        seen = self.succeed("monitor", "--pid", str(workers.pid),
                            "--interval=0.1", "--gpus=none", "--json").json()
        workers.wait()
        metrics = seen["metrics"]
        self.assertEqual(metrics["process.children"]["max"], 1)
        self.assertGreater(metrics["process.tree_cpu_percent"]["mean"],
                           2 * metrics["process.cpu_percent"]["mean"])

    def test_looks_at_a_process_until_it_ends(self):
        busy = subprocess.Popen(
            ["python3", "-c", "import time\nend = time.time() + 1\n"
             "while time.time() < end: pass"])
        seen = self.succeed("monitor", "--pid", str(busy.pid),
                            "--interval=0.1", "--gpus=none", "--json").json()
        busy.wait()
        self.assertTrue(seen["process"]["ended"])
        self.assertIn("python3", seen["process"]["name"])
        self.assertGreater(
            seen["metrics"]["process.cpu_percent"]["max"], 10)

    def starved_run(self, epochs):
        """A run whose reader waits 20 ms for each batch, left running."""
        self.database(self.rows())
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite", "table": "t",
                    "round_trip_ms": 20},
            loader={"batch_size": 16, "seed": 3, "cache": "none",
                    "workers": 1, "readers": 1},
            device={"kind": "sim", "step_ms": 2}, train={"epochs": epochs}))
        running = self.start("train", "job.json", "--json")
        self.wait_for(lambda: list(self.folder.glob("runs/*/progress.json")),
                      "the first numbers of the run")
        return running

    def test_watches_a_run_that_goes_on(self):
        running = self.starved_run(epochs=100_000)
        text = self.succeed("monitor", "runs/latest", "--duration=2.2",
                            "--gpus=none").out
        self.assertRegex(text, r"epoch \d+/100000 step \d/4 \d+ samples/s AU "
                         r"\d+ % <- data \d+ %")
        self.assertIn("'read'", text)
        seen = self.succeed("monitor", "runs/latest", "--duration=2.2",
                            "--interval=0.5", "--gpus=none", "--json",
                            "--output=seen.json").json()
        self.assertEqual(seen["run"]["verdict"]["stage"], "read")
        self.assertEqual(seen["run"]["epochs"], 100_000)
        self.assertFalse(seen["run"]["ended"])
        self.assertEqual(seen["process"]["pid"], running.pid)
        self.assertLess(seen["metrics"]["run.au_percent"]["mean"], 50)
        text = self.succeed("monitor", "runs/latest", "--duration=0.4",
                            "--interval=0.2", "--gpus=none",
                            "--compare=seen.json").out
        self.assertRegex(text, r"run\.au_percent +\d")
        running.kill()
        running.wait()
        text = self.succeed("explain", "runs/latest").out
        self.assertIn("'read'", text)
        self.assertNotIn("is not known", text)

    def test_ends_with_the_run_and_says_what_limited_it(self):
        running = self.starved_run(epochs=40)
        text = self.succeed("monitor", "runs/latest", "--interval=0.2",
                            "--gpus=none").out
        running.communicate()
        self.assertIn("the run has ended. Input-bound", text)
        self.assertEqual(
            list(self.folder.glob("runs/*/progress.json")), [])
        self.refused(self.run_it("monitor", "runs/latest", "--json"),
                     "request", "monitor.run_ended", "penstock explain")

    def test_compares_with_an_earlier_summary(self):
        self.succeed("monitor", "--duration=0.2", "--interval=0.1",
                     "--gpus=none", "--output=before.json")
        before = json.loads((self.folder / "before.json").read_text())
        text = self.succeed("monitor", "--duration=0.2", "--interval=0.1",
                            "--gpus=none", "--compare=before.json").out
        self.assertRegex(text, r"before +after")
        seen = self.succeed("monitor", "--duration=0.2", "--interval=0.1",
                            "--gpus=none", "--compare=before.json",
                            "--json").json()
        self.assertEqual(seen["compared"]["cpu_percent"]["before"],
                         before["metrics"]["cpu_percent"]["mean"])

    def test_says_that_a_process_has_ended_and_speaks_of_no_lock_of_python(self):
        sleeping = subprocess.Popen(["sleep", "0.5"])
        reaper = threading.Thread(target=sleeping.wait)
        reaper.start()
        text = self.succeed("monitor", "--interval=0.1", "--gpus=none",
                            f"--pid={sleeping.pid}").out
        reaper.join()
        self.assertIn("the process has ended", text)
        self.assertNotIn("interpreter", text)

    def test_ends_with_its_summary_when_it_is_stopped(self):
        running = subprocess.Popen(
            [PROGRAM, "monitor", "--interval=0.1", "--gpus=none", "--json"],
            stdout=subprocess.PIPE)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=20)
        self.assertGreater(json.loads(out)["samples"], 0)

    def test_names_what_is_wrong(self):
        self.refused(self.run_it("monitor", "no-run", "--json"), "request",
                     "explain.no_run", "no-run")
        self.refused(self.run_it("monitor", "--pid=2147483632", "--json"),
                     "request", "monitor.process", "2147483632")
        self.assertIn("cannot watch the run",
                      self.run_it("monitor", "no-run").err)
        for other in ({}, {"metrics": [1]}, {"metrics": {"rmse": 2.5}},
                      {"metrics": {"cpu_percent": {}}},
                      {"metrics": {"cpu_percent": {"mean": None}}}):
            (self.folder / "other.json").write_text(json.dumps(other))
            self.refused(
                self.run_it("monitor", "--compare=other.json", "--json"),
                "request", "monitor.compare", "other.json")
        self.assertEqual(self.run_it("monitor", "--compare=none.json",
                                     "--json").code, 2)
        self.assertEqual(self.run_it("monitor", "--interval=0").code, 2)


if __name__ == "__main__":
    unittest.main()
