"""Signals and limits that machines send, not people: a reader that goes, a
terminal that closes, a batch scheduler's warnings, limits on processor time,
files and memory. What was done is saved, and the exit code says why."""
import itertools
import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import time
import unittest

from penstock_cli import (Answer, Case, PATIENCE_S, PROGRAM, has_part,
                          tree_of)

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Signals(Case):
    def slow_job(self, **sections):
        """16 steps of 10 ms per epoch on the wall clock."""
        self.good_start(loader={"batch_size": 4, "seed": 3}, **{
            "device": {"kind": "sim", "step_ms": 10}, "train": {"epochs": 100},
            **sections})

    def latest(self, name):
        return self.folder / "runs" / "latest" / name

    def started(self, **how):
        """A training that has taken its first steps."""
        process = subprocess.Popen(
            [PROGRAM, "train", "job.json", "--json"], cwd=self.folder,
            text=True, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                          **how})
        self.addCleanup(lambda: (process.kill(), process.wait()))
        self.wait_for(self.latest("steps.jsonl").exists, "the first steps")
        return process

    def steps_saved(self):
        return json.loads(
            self.latest("state.json").read_text())["steps_taken"]

    def check_all_is_saved(self):
        """The state is that of the last step, and there is a report."""
        lines = self.latest("steps.jsonl").read_text().splitlines()
        report = json.loads(self.latest("report.json").read_text())
        self.assertEqual(
            (self.steps_saved(), report["steps"], report["interrupted"]),
            (len(lines), len(lines), True))
        self.assertGreater(len(lines), 0)
        rest = self.succeed("train", "--resume", "runs/latest", "--json",
                            "--set", f"train.max_steps={len(lines) + 3}")
        self.assertEqual(rest.json()["steps"], 3)

    def test_hangup_and_the_limit_on_processor_time_end_in_order(self):
        self.slow_job()
        for number in (signal.SIGHUP, signal.SIGXCPU):
            with self.subTest(number=number):
                answer = self.end_by(self.started(), number)
                self.assertEqual(answer.code, 128 + number, answer.err)
                self.assertTrue(answer.json()["interrupted"])
                self.check_all_is_saved()
                self.latest("").parent.joinpath("latest").unlink()

    def test_they_come_again_and_again_while_the_step_ends(self):
        self.slow_job(device={"kind": "sim", "step_ms": 1500})
        for number in (signal.SIGHUP, signal.SIGXCPU):
            with self.subTest(number=number):
                process = self.started()
                for _ in range(3):
                    process.send_signal(number)
                    time.sleep(0.05)
                answer = self.end_by(process, number)
                self.assertEqual(answer.code, 128 + number, answer.err)
                self.check_all_is_saved()
                self.latest("").parent.joinpath("latest").unlink()

    def test_a_terminal_that_closes_ends_in_order(self):
        self.slow_job()
        ours, its = pty.openpty()

        def own_terminal():
            os.setsid()
            os.close(os.open(os.ttyname(its), os.O_RDWR))  # it controls us

        process = self.started(stdin=its, stdout=its, stderr=its,
                               preexec_fn=own_terminal)
        os.close(its)
        os.close(ours)
        self.assertEqual(process.wait(timeout=PATIENCE_S), 128 + signal.SIGHUP)
        self.check_all_is_saved()

    def test_nohup_holds(self):
        self.slow_job()
        process = self.started(
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        answer = self.end_by(process, signal.SIGTERM)
        self.assertEqual(answer.code, 143, answer.err)

    def test_the_warnings_of_schedulers_save_and_go_on(self):
        """No checkpoint would be due before the end of the run."""
        self.slow_job()
        process = self.started()
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            before = self.steps_saved()
            process.send_signal(number)
            self.wait_for(lambda: self.steps_saved() > before, "a save")
        process.send_signal(signal.SIGUSR1)
        process.kill()  # as a scheduler does in the end
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertIn("saved on request after step", err)
        saved = self.steps_saved()
        self.assertGreater(saved, 0)
        rest = self.succeed("train", "--resume", "runs/latest", "--json",
                            "--set", f"train.max_steps={saved + 3}")
        self.assertEqual(rest.json()["steps"], 3)

    def test_a_warning_before_the_first_step_is_no_end(self):
        self.slow_job(source={"kind": "sqlite", "path": "d.sqlite",
                              "table": "t", "round_trip_ms": 150},
                      train={"max_steps": 5})
        process = self.start("train", "job.json", "--json")
        self.newest_run("state.json")
        answer = self.end_by(process, signal.SIGUSR1)
        self.assertEqual(answer.code, 0, answer.err)
        self.assertEqual(answer.json()["steps"], 5)
        self.assertEqual(self.steps_saved(), 5)

    def test_other_verbs_do_not_end_by_a_warning(self):
        process = self.start("demo", "positions", "--rows", "300000",
                             "--to", "sqlite:demo.sqlite")
        base = self.folder / "demo.sqlite"
        self.wait_for(base.exists, "the first rows")
        process.send_signal(signal.SIGUSR1)
        answer = self.end_by(process, signal.SIGTERM)
        self.assertEqual(answer.code, 143, answer.err)
        self.assertEqual(tree_of(self.folder), {})


class Readers(Case):
    """Pipes whose reader ends first."""

    def test_the_reader_of_the_log_may_go(self):
        self.good_start(device={"kind": "sim", "step_ms": 10},
                        train={"epochs": 3})
        ours, its = os.pipe()
        process = subprocess.Popen(
            [PROGRAM, "--log", "info", "train", "job.json", "--json"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=its, text=True)
        os.close(its)
        os.close(ours)
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, out)
        self.assertEqual(json.loads(out)["steps"], 12)

    def test_the_reader_of_the_result_may_go(self):
        """Quietly and with the exit code of all others in a pipe; what is to
        be saved is saved."""
        self.good_start()
        for arguments in (["train", "job.json", "--json"],
                          ["batch", "job.json", "--steps", "0:4"],
                          ["peek", "sqlite:d.sqlite#t"], ["schema"]):
            with self.subTest(arguments=arguments):
                ours, its = os.pipe()
                os.close(ours)  # before it writes: a pipe holds some text
                process = subprocess.Popen(
                    [PROGRAM, *arguments], cwd=self.folder, stdout=its,
                    stderr=subprocess.PIPE, text=True)
                os.close(its)
                _, err = process.communicate(timeout=PATIENCE_S)
                self.assertEqual(process.returncode, 128 + signal.SIGPIPE)
                self.assertNotIn("penstock: ", err)
        report = self.folder / "runs" / "latest" / "report.json"
        self.assertEqual(json.loads(report.read_text())["steps"], 4)


class Limits(Case):
    def limited(self, limit, value, *arguments, **variables):
        """Runs the program under a limit, with every signal as a shell leaves
        it."""
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
            env={**os.environ, **variables},
            preexec_fn=lambda: resource.setrlimit(limit, (value, value)))
        return Answer(done.returncode, done.stdout, done.stderr)

    def test_a_limit_on_files_is_an_error_of_the_folder(self):
        self.good_start()
        self.train()
        runs = self.folder / "runs"
        before = tree_of(runs)
        answer = self.limited(resource.RLIMIT_FSIZE, 600, "train", "job.json",
                              "--json")
        self.refused(answer, "request", "file.write", "run.json",
                     "File too large", "ulimit -f", "output.dir")
        self.assertEqual(tree_of(runs), before)

    def test_a_limit_on_open_files(self):
        """Three are open anyway; the fourth is a file of the run, or, where
        a worker was there before it, the worker's reader."""
        self.good_start()
        answer = self.limited(resource.RLIMIT_NOFILE, 4, "train", "job.json",
                              "--json", "--set", "loader.cache=none")
        refusal = ("request", "file.too_many_open", "runs/")
        if "sqlite.too_many_files" in answer.out:
            refusal = ("source", "sqlite.too_many_files", "d.sqlite")
        self.refused(answer, *refusal, "Too many open files", "ulimit -n")
        answer = self.limited(resource.RLIMIT_NOFILE, 4, "demo", "positions",
                              "--json", "--to", "sqlite:demo.sqlite")
        self.refused(answer, "source", "sqlite.too_many_files", "demo.sqlite",
                     "Too many open files", "ulimit -n")

    @unittest.skipUnless(has_part("trainer"), "the trainer was not built")
    def test_a_limit_on_addresses_is_named_wherever_libtorch_meets_it(self):
        """Never an end by a signal, in libtorch's own words, or none at all."""
        self.succeed("demo", "positions", "--rows", 400, "--to",
                     "sqlite:d.sqlite")
        job = json.loads((ROOT / "examples/positions/job.json").read_text())
        job["source"]["path"] = "d.sqlite"
        job["device"] = "cpu"
        job["train"] = {"epochs": 1}
        self.write_job(job)
        ends = set()
        for mib, threads in itertools.product(
                (250, 390, 450, 530, 600, 660, 900), (1, 4)):
            with self.subTest(mib=mib, threads=threads):
                answer = self.limited(
                    resource.RLIMIT_AS, mib << 20, "train", "job.json",
                    "--json", "--set", f"train.threads={threads}")
                if answer.code != 0:
                    error = answer.json()["error"]
                    ends.add(error["code"])
                    self.assertIn(
                        error["code"],
                        ("exec.threads", "trainer.out_of_memory",
                         "memory.host", "device.out_of_memory"), error)
        self.assertIn("trainer.out_of_memory", ends)

    def test_a_limit_on_files_is_an_error_of_the_demo(self):
        answer = self.limited(resource.RLIMIT_FSIZE, 65536, "demo",
                              "positions", "--rows", "4000", "--json", "--to",
                              "sqlite:demo.sqlite")
        self.refused(answer, "source", "sqlite.file_limit", "demo.sqlite",
                     "ulimit -f")
        self.assertEqual(tree_of(self.folder), {})


if __name__ == "__main__":
    unittest.main()
