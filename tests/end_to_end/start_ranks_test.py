"""`penstock train JOB --ranks N`: one command that starts the ranks of a job on
this machine, and ends as they do."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest

import train_ranks_test
from penstock_cli import PATIENCE_S, PROGRAM, Answer, read_safetensors

ENDLESS = ("--set", "train.epochs=100000")


def children_of(process):
    text = pathlib.Path(
        f"/proc/{process}/task/{process}/children").read_text()
    return [int(one) for one in text.split()]


def is_running(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


class StartRanks(train_ranks_test.RanksCase):
    def started(self, ranks, *arguments, **variables):
        process = subprocess.Popen(
            [PROGRAM, "train", "job.json", "--ranks", str(ranks), "--json",
             *map(str, arguments)],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
            env={**os.environ, **variables})
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def answer(self, process):
        out, err = process.communicate(timeout=PATIENCE_S)
        return Answer(process.returncode, out, err)

    def under_way(self, ranks, *arguments):
        """A run of many steps that has taken some, and its ranks."""
        before = set((self.folder / "runs").glob("2*"))
        process = self.started(ranks, *ENDLESS, *arguments)
        self.wait_for(
            lambda: any((run / "ranks/1/steps.jsonl").exists()
                        and (run / "steps.jsonl").exists()
                        for run in set((self.folder / "runs").glob("2*"))
                        - before), "the first steps")
        return process, children_of(process.pid)

    def steps_saved(self):
        run = self.newest_run("report.json")
        return json.loads((run / "state.json").read_text())["steps_taken"]

    def test_ranks_train_the_model_of_one(self):
        self.succeed("train", "job.json", "--output", "alone")
        answer = self.answer(self.started(2, "--output", "both"))
        self.assertEqual(answer.code, 0, answer.err)
        report = answer.json()  # one document
        self.assertEqual(report["ranks"]["world"], 2)
        self.assertEqual(report["ranks"]["launcher"], "penstock")
        self.assertEqual(answer.err.count("the weights are in"), 1, answer.err)
        self.assert_same_but_for_rounding(
            *(read_safetensors(self.folder / name / "model.safetensors")
              for name in ("both", "alone")))

    def test_one_rank_is_a_run_of_one_process(self):
        answer = self.answer(self.started(1))
        self.assertEqual(answer.code, 0, answer.err)
        self.assertNotIn("ranks", answer.json())

    def test_signal_ends_all_ranks_after_the_same_step(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process, ranks = self.under_way(2)
            process.send_signal(number)
            self.assertEqual(self.answer(process).code, code)
            self.assertGreater(self.steps_saved(), 0)
            self.assertFalse(any(map(is_running, ranks)))

    def test_signal_to_the_group_of_the_terminal_reaches_a_rank_once(self):
        """Twice would end it at once, without a state."""
        process, _ = self.under_way(2)
        os.killpg(process.pid, signal.SIGINT)
        answer = self.answer(process)
        self.assertEqual(answer.code, 130, answer.err)
        self.assertTrue(answer.json()["interrupted"])
        self.assertGreater(self.steps_saved(), 0)

    def test_request_to_save_saves_once_and_continues(self):
        process, ranks = self.under_way(2)
        process.send_signal(signal.SIGUSR1)
        log = self.newest_run("ranks/0.log") / "ranks" / "0.log"
        self.wait_for(lambda: "saved on request" in log.read_text(),
                      "a checkpoint")
        time.sleep(0.5)
        self.assertTrue(all(map(is_running, ranks)))
        process.send_signal(signal.SIGTERM)
        answer = self.answer(process)
        self.assertEqual(answer.err.count("saved on request"), 1, answer.err)

    def test_exit_code_is_that_of_the_rank_that_was_killed(self):
        for killed in (1, 0):
            process, ranks = self.under_way(2)
            os.kill(ranks[killed], signal.SIGKILL)
            answer = self.answer(process)
            self.assertEqual(answer.code, 137, answer.err)
            error = answer.json()["error"]  # one document, of either
            self.assertEqual(error["code"], "ranks.lost")
            self.assertIn(f"rank {killed}", error["where"])
            self.assertFalse(any(map(is_running, ranks)))
            if killed:
                self.assertIn("rank 1 was ended by signal 9", answer.err)

    def test_ranks_end_with_the_process_that_has_started_them(self):
        process, ranks = self.under_way(2)
        process.kill()
        process.communicate()
        self.wait_for(lambda: not any(map(is_running, ranks)),
                      "the end of the ranks")
        self.assertGreater(self.steps_saved(), 0)

    def test_error_of_the_job_is_one_document(self):
        answer = self.answer(self.started(2, "--set", "source.path=gone.csv"))
        self.assertEqual(answer.code, 3, answer.err)
        self.assertIn("gone.csv", json.dumps(answer.json()["error"]))
        answer = self.answer(self.started(2, "--set", "train.epoch=1"))
        self.refused(answer, "request", "settings.unknown_key", "epoch")

    def test_port_that_is_taken_is_named(self):
        with contextlib.closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            answer = self.answer(self.started(2, MASTER_PORT=port))
        self.refused(answer, "request", "ranks.port", "127.0.0.1:" + port)

    def test_refusals(self):
        for arguments, variables, code, names in (
                (("--ranks", "0"), {}, "cli.arguments", ("--ranks",)),
                (("--ranks", "x"), {}, "cli.arguments", ("--ranks",)),
                (("--ranks", "2"), {"WORLD_SIZE": "2"}, "cli.arguments",
                 ("WORLD_SIZE=2", "torchrun")),
                (("--ranks", "1"), {"RANK": "0"}, "cli.arguments", ("RANK=0",)),
                (("--ranks", "2"), {"SLURM_PROCID": "0", "SLURM_LOCALID": "0",
                                    "SLURM_STEP_NUM_TASKS": "2",
                                    "SLURM_STEP_TASKS_PER_NODE": "2",
                                    "SLURM_JOB_ID": "7"},
                 "cli.arguments", ("rank 0 of 2", "srun")),
                (("--ranks", "2", "--plan"), {}, "cli.arguments",
                 ("--plan is done by one process",))):
            with self.subTest(arguments, **variables):
                answer = self.run_it("train", "job.json", "--json", *arguments,
                                     **variables)
                self.refused(answer, "request", code, *names)
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main()
