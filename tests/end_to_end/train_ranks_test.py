"""One job on several ranks: processes that share each batch, add their
gradients, and end together. Started as torchrun, srun and mpirun start them, by
variables of the environment."""
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

from penstock_cli import (PATIENCE_S, PROGRAM, Answer, Case, floats, has_part,
                          read_safetensors)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python" / "tests"))
from free_port import free_port  # noqa: E402

TRAINS = has_part("trainer")


def table(rows=203):
    draw = random.Random(5)
    lines = ["a,b,kind"]
    for _ in range(rows):
        kind = draw.choice("xyz")
        lines.append(f"{draw.gauss('xyz'.index(kind), 1):.4f},"
                     f"{draw.gauss(0, 1):.4f},{kind}")
    return "\n".join(lines) + "\n"


@unittest.skipUnless(TRAINS and has_part("csv"), "the trainer was not built")
class RanksCase(Case):
    """A job whose model learns a table, and its ranks."""

    def setUp(self):
        super().setUp()
        (self.folder / "t.csv").write_text(table())
        self.write_job({
            "source": {"kind": "csv", "path": "t.csv"},
            "fields": {"x": {"columns": ["a", "b"]},
                       "kind": {"category": {"column": "kind"}}},
            "model": {"kind": "tabular", "target": "kind", "width": 16,
                      "depth": 2, "dropout": 0.2, "seed": 3},
            "loader": {"batch_size": 32, "seed": 7, "tail": "exact"},
            "split": {"val": 0.2, "seed": 1},
            "train": {"epochs": 2, "lr": 0.01, "threads": 1},
            "device": "cpu"})

    def ranks(self, world, *arguments, job="job.json", of_last=()):
        """Starts the training once for each rank."""
        return self.started_ranks(world, lambda rank: [
            "train", *([job] if job else []), *arguments,
            *(of_last if rank == world - 1 else ()), "--json"])

    def started_ranks(self, world, arguments_of, folder_of=None):
        """Starts the program once for each rank."""
        port = free_port()
        processes = []
        for rank in range(world):
            process = subprocess.Popen(
                [PROGRAM, *map(str, arguments_of(rank))],
                cwd=self.folder if folder_of is None else folder_of(rank),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world),
                     "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(world),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
            self.addCleanup(lambda one=process: (one.kill(), one.communicate()))
            processes.append(process)
        return processes

    def answers(self, processes):
        answers = []
        for process in processes:
            out, err = process.communicate(timeout=PATIENCE_S)
            answers.append(Answer(process.returncode, out, err))
        return answers

    def trained(self, world, *arguments):
        """Rank 0's report, and the weights that were left."""
        weights = f"weights-{world}"
        answers = self.answers(self.ranks(world, "--output", weights,
                                          *arguments))
        for answer in answers:
            self.assertEqual(answer.code, 0, answer.out + answer.err)
        for answer in answers[1:]:
            self.assertEqual(answer.out, "")
        tensors = read_safetensors(self.folder / weights / "model.safetensors")
        return answers[0].json(), tensors

    def assert_same_but_for_rounding(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, tensor in expected.items():
            for one, other in zip(floats(found[name]), floats(tensor),
                                  strict=True):
                self.assertTrue(math.isclose(one, other, rel_tol=1e-4,
                                             abs_tol=1e-5), (name, one, other))


class TrainRanks(RanksCase):
    def test_two_and_three_ranks_give_the_model_of_one(self):
        """Three do not share the last batch of an epoch evenly."""
        alone = self.succeed("train", "job.json", "--json", "--output",
                             "alone").json()
        expected = read_safetensors(self.folder / "alone" / "model.safetensors")
        for world in (2, 3):
            report, weights = self.trained(world)
            self.assert_same_but_for_rounding(weights, expected)
            self.assertEqual(report["ranks"]["world"], world)
            self.assertEqual(report["ranks"]["backend"], "gloo")
            self.assertEqual(len(report["ranks"]["hosts"]), world)
            self.assertGreater(report["ranks"]["bytes_per_step"], 0)
            for one, other in zip(report["epochs"], alone["epochs"],
                                  strict=True):
                self.assertAlmostEqual(one["train_loss"], other["train_loss"],
                                       places=4)
                self.assertAlmostEqual(one["val_loss"], other["val_loss"],
                                       places=4)

    def test_ranks_without_rows_take_part(self):
        """The last batch has 3 rows: two of five ranks have none."""
        sets = ("--set", "loader.batch_size=20", "--set", "train.epochs=1",
                "--set", "split.val=0", "--set", "train.accumulate=3")
        self.succeed("train", "job.json", "--output", "alone", *sets)
        expected = read_safetensors(self.folder / "alone" / "model.safetensors")
        _, weights = self.trained(5, *sets)
        self.assert_same_but_for_rounding(weights, expected)

    def test_one_run_folder_is_written_by_rank_0(self):
        self.trained(2)
        runs = [one for one in (self.folder / "runs").iterdir()
                if not one.is_symlink()]
        self.assertEqual(len(runs), 1)
        self.assertTrue((runs[0] / "report.json").exists())
        self.assertEqual(
            sorted(one.name for one in (runs[0] / "ranks").iterdir()),
            ["0.log", "1", "1.log"])
        for rank in (0, 1):
            log = (runs[0] / "ranks" / f"{rank}.log").read_text()
            self.assertIn("train + ", log)
            self.assertIn("info: run folder", log)
        self.assertFalse(list((runs[0] / "ranks").rglob("*.safetensors")))

    def stopped(self, sign, world=2):
        """A run of which one rank, not the first, got a signal."""
        ranks = self.ranks(world, "--set", "train.epochs=100000")
        self.newest_run("steps.jsonl", "state.json")
        ranks[-1].send_signal(sign)
        return self.answers(ranks)

    def test_signal_at_one_rank_ends_all_after_the_same_step(self):
        for answer in self.stopped(signal.SIGTERM):
            self.assertEqual(answer.code, 143, answer.err)
        run = self.newest_run("report.json")
        taken = json.loads((run / "state.json").read_text())["steps_taken"]
        self.assertGreater(taken, 0)
        # Goes on with another number of ranks, and alone.
        for world in (3, 1):
            more = taken + world
            answers = self.answers(self.ranks(
                world, "--resume", run, "--set", f"train.max_steps={more}",
                job=None))
            self.assertEqual({one.code for one in answers}, {0},
                             answers[0].err)
        # Nothing is left to do, which rank 0 alone reports.
        first, other = self.answers(self.ranks(
            2, "--resume", self.newest_run("report.json"), job=None))
        self.assertEqual((first.code, other.code, other.out), (0, 0, ""))
        self.assertIn("is finished", first.err)

    def test_error_of_one_rank_is_shown_by_the_others(self):
        first, last = self.answers(self.ranks(
            2, of_last=("--set", "source.path=gone.csv")))
        own = self.refused(last, "source", "files.missing", "gone.csv")
        other = self.refused(first, "source", "ranks.failed", "rank 1")
        self.assertIn(own["what"], other["why"])

    def test_ranks_with_other_settings_do_not_begin(self):
        for answer in self.answers(self.ranks(
                2, of_last=("--set", "loader.batch_size=16"))):
            self.refused(answer, "request", "ranks.settings", "batch_size")
        self.assertFalse(list((self.folder / "runs").rglob("*.safetensors")))

    def test_ranks_that_run_out_of_memory_halve_together(self):
        """One of them has no memory for its share; or all of them."""
        sets = ("--set", "model.width=32", "--set", "model.depth=48", "--set",
                "loader.batch_size=128", "--set", "train.epochs=2")
        whole, expected = self.trained(2, *sets)
        self.assertEqual(whole["oom"], [])
        of_share = self.succeed(
            "train", "job.json", "--estimate", "--json", *sets, "--set",
            "loader.batch_size=64").json()["memory"]
        limit = of_share["total"] - of_share["activations"] / 4
        device = "device=" + json.dumps(
            {"kind": "cpu", "memory_gib": limit / 2**30})
        for name, of_all, of_last in (("one", (), ("--set", device)),
                                      ("all", ("--set", device), ())):
            with self.subTest(name):
                answers = self.answers(self.ranks(
                    2, "--output", name, *sets, *of_all, of_last=of_last))
                for answer in answers:
                    self.assertEqual(answer.code, 0, answer.out + answer.err)
                events = answers[0].json()["oom"]
                self.assertIn("micro_batch", [one["action"] for one in events])
                self.assertLess(events[-1]["to"], 64)
                self.assert_same_but_for_rounding(read_safetensors(
                    self.folder / name / "model.safetensors"), expected)
                other, = (self.folder / "runs" / "latest").glob(
                    "ranks/1/report.json")
                other = json.loads(other.read_text())["oom"]
                self.assertEqual([one["to"] for one in other
                                  if one["action"] == "micro_batch"],
                                 [one["to"] for one in events
                                  if one["action"] == "micro_batch"])

    def test_rank_that_is_killed_is_named(self):
        # Of four, one has no connection in use to the one that is killed.
        ranks = self.ranks(4, "--set", "train.epochs=100000")
        self.newest_run("steps.jsonl", "state.json")
        ranks[1].kill()
        ranks[1].communicate()
        for answer in self.answers([ranks[0], ranks[2], ranks[3]]):
            error = self.refused(answer, "device", "ranks.lost", "rank 1 on ")
            self.assertNotIn(",", error["where"])

    def test_page_and_explain_name_what_the_ranks_wait_for(self):
        self.trained(2)
        run = self.newest_run("report.json")
        ranks = json.loads((run / "report.json").read_text())["ranks"]
        self.assertIn("slowest", ranks)
        said = " ".join(self.succeed("explain", run).out.split())
        self.assertIn("2 ranks on " + ranks["hosts"][0], said)
        self.assertIn("2 ranks on " + ranks["hosts"][0],
                      (run / "report.html").read_text())

    def test_validation_is_shared(self):
        """Two classes, so that the metrics need all rows: AUC, macro F1. The
        share of a rank is not even: 41 rows."""
        lines = (self.folder / "t.csv").read_text().replace(",z\n", ",x\n")
        (self.folder / "t.csv").write_text(lines)
        sets = ("--set", "train.max_steps=6", "--set", "train.epochs=1",
                "--set", "split.test=0.1")
        alone = self.succeed("train", "job.json", "--json", *sets).json()
        for world in (2, 3):
            report, _ = self.trained(world, *sets)
            for key in ("val_loss", "val_accuracy", "val_auc", "val_macro_f1"):
                self.assertAlmostEqual(report["epochs"][0][key],
                                       alone["epochs"][0][key], places=5)
            self.assertEqual(report["dataset"]["val"], alone["dataset"]["val"])
            for key, value in alone["test"].items():
                self.assertAlmostEqual(report["test"][key], value, places=5)
            self.assertIn("auc", alone["test"])
            self.assertEqual(report["confusion"], alone["confusion"])
            self.assertEqual([row["key"] for row in report["worst_rows"]],
                             [row["key"] for row in alone["worst_rows"]])

    def test_refusals(self):
        for sets, kind, code, where in (
                (("device=sim", "model=none"), "request", "ranks.on_sim",
                 "device"),
                (("device=sim",), "request", "model.on_sim", "model"),
                (("train.strategy=fsdp2",), "request", "ranks.strategy",
                 "strategy")):
            arguments = [word for one in sets for word in ("--set", one)]
            answers = self.answers(self.ranks(2, *arguments))
            codes = [answer.json()["error"]["code"] for answer in answers]
            self.assertIn(code, codes)
            self.assertTrue(set(codes) <= {code, "ranks.failed"}, codes)

    def test_world_without_a_rank_is_refused(self):
        answer = self.run_it("train", "job.json", "--json", WORLD_SIZE="4")
        self.refused(answer, "request", "ranks.environment", "RANK")


if __name__ == "__main__":
    unittest.main()
