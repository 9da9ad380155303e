"""A user's own module on several ranks: DDP and FSDP2 of torch, over gloo."""
import json
import os
import pathlib
import signal
import sys
import unittest
import unittest.mock

import penstock
from entry import main
from own_model import needs_torch, run_train
from own_ranks import LOADING, NET, RanksCase, floats

HERE = pathlib.Path(__file__).parent


@needs_torch
class Parity(RanksCase):
    """The weights are those of one process, but for the rounding of sums."""

    def setUp(self):
        super().setUp()
        self.write_job(loader=LOADING)

    def assert_alike(self, one, other):
        """But for the rounding of numbers."""
        if isinstance(other, (dict, list)):
            self.assertEqual(len(one), len(other))
            for key in other if isinstance(other, dict) else range(len(other)):
                self.assert_alike(one[key], other[key])
        elif isinstance(other, float):
            self.assertAlmostEqual(one, other, delta=1e-4 * max(1, abs(other)))
        else:
            self.assertEqual(one, other)

    def test_ddp_over_two_and_four_ranks(self):
        report = self.alone("--output", "one")
        expected = floats("one/model.safetensors")
        for world in (2, 4):
            of_ranks = self.trained(world, "--output", f"of-{world}")
            self.assert_near(floats(f"of-{world}/model.safetensors"), expected)
            self.assert_losses_near(of_ranks, report)
            self.assertEqual(of_ranks["ranks"]["world"], world)
            self.assertEqual(of_ranks["ranks"]["backend"], "gloo")
            self.assertGreater(of_ranks["ranks"]["bytes_per_step"], 0)
            for name in ("worst_rows", "baseline", "residuals"):
                self.assert_alike(of_ranks[name], report[name])
            told = json.loads((pathlib.Path(of_ranks["run"]) / "run.json")
                              .read_text())["effective"]["strategy"]
            self.assertEqual(told["got"], "ddp")

    def test_fsdp2_over_two_and_four_ranks(self):
        report = self.alone("--output", "one")
        expected = floats("one/model.safetensors")
        for world in (2, 4):
            of_ranks = self.trained(world, "--output", f"of-{world}",
                                    "--strategy", "fsdp2")
            self.assert_near(floats(f"of-{world}/model.safetensors"), expected)
            self.assert_losses_near(of_ranks, report)

    def test_plain_torch_makes_the_same_steps(self):
        """Of DistributedDataParallel with the same batches."""
        from penstock._training.stepper import Stepper
        made = Stepper.__init__

        def noting(stepper, torch, model, facts, *more):
            made(stepper, torch, model, facts, *more)
            self.write("facts.json", json.dumps(facts))
            self.write("first.json", json.dumps({
                name: tensor.flatten().tolist() for name, tensor
                in stepper._module.state_dict().items()}))

        with unittest.mock.patch.object(Stepper, "__init__", noting):
            self.train("job.json")
        for world in (2, 4):
            ended = self.ended(self.started(
                world, "job.json", 20, "plain.json", command=(
                    sys.executable, str(HERE / "own_ranks_plain.py"))))
            self.assertEqual({code for code, _, _ in ended}, {0}, ended)
            self.trained(world, "--output", f"of-{world}")
            self.assert_near(floats(f"of-{world}/model.safetensors"),
                             json.loads(pathlib.Path("plain.json").read_text()))

    def test_ranks_with_none_to_three_rows(self):
        """Of 150 train rows: batches of 49, 48 or 37 leave a last one of 3, 6
        or 2 rows for four ranks; of 47 held-out rows, batches of 15 leave 2."""
        for size in (49, 48, 37):
            sets = ("--set", f"loader.batch_size={size}",
                    "--set", "loader.val_batch_size=15")
            report = self.alone("--output", f"one-{size}", *sets)
            expected = floats(f"one-{size}/model.safetensors")
            for strategy in ("ddp", "fsdp2"):
                output = f"{strategy}-{size}"
                of_ranks = self.trained(4, "--output", output, "--strategy",
                                        strategy, *sets)
                self.assert_near(floats(f"{output}/model.safetensors"),
                                 expected)
                self.assert_losses_near(of_ranks, report)

    def test_each_rank_has_its_share_of_the_processors(self):
        self.note_threads()
        self.write_job(loader=LOADING, train={"threads": None, "max_steps": 2})
        self.alone("--output", "one")
        self.trained(2, "--output", "two")
        self.assert_threads_are_shared(2)

    def test_accumulation_averages_and_precision(self):
        """With checkpoints between the steps of an accumulation."""
        sets = ("--set", "train.accumulate=3", "--set", "train.ema=0.9",
                "--set", "train.checkpoint_every_steps=4")
        self.alone("--output", "one", *sets)
        expected = floats("one/model.safetensors")
        for strategy in ("ddp", "fsdp2"):
            self.trained(2, "--output", strategy, "--strategy", strategy, *sets)
            self.assert_near(floats(f"{strategy}/model.safetensors"), expected)

    def test_a_module_that_gives_its_loss_weighs_by_its_count(self):
        self.write("net.py", NET.replace(
            "def forward(self, x, kind):", "def forward(self, x, kind, y):")
            .replace("        return self.last(at)", """
        many = (x[:, 0] > 0) + 1.0
        off = (self.last(at)[:, 0] - y) ** 2
        return {"loss": (off * many).sum() / many.sum(), "count": many.sum()}
"""))
        self.write_job(loader=LOADING, model={"target": None})
        report = self.alone("--output", "one")
        self.assertEqual(set(report["metrics"]["val"]), {"loss"})
        of_ranks = self.trained(4, "--output", "four")
        self.assert_near(floats("four/model.safetensors"),
                         floats("one/model.safetensors"))
        self.assertAlmostEqual(of_ranks["metrics"]["val"]["loss"],
                               report["metrics"]["val"]["loss"], places=4)


@needs_torch
class Resuming(RanksCase):
    def test_ddp_goes_on_with_fewer_ranks(self):
        self.resumes("ddp")

    def test_fsdp2_goes_on_with_fewer_ranks(self):
        self.resumes("fsdp2")

    def test_in_an_accumulation(self):
        self.resumes("ddp", "train.accumulate=4", "train.ema=0.9")

    def test_sharded_in_an_accumulation(self):
        self.resumes("fsdp2", "train.accumulate=4", "train.ema=0.9")


@needs_torch
class Ends(RanksCase):
    def test_one_folder_is_written_by_rank_0(self):
        self.write_job()
        report = self.trained(2)
        runs = [one for one in pathlib.Path("runs").iterdir()
                if not one.is_symlink()]
        self.assertEqual([one.resolve() for one in runs],
                         [pathlib.Path(report["run"]).resolve()])
        self.assertEqual(
            sorted(one.name for one in (runs[0] / "ranks").iterdir()),
            ["0.log", "1", "1.log"])
        self.assertFalse(list((runs[0] / "ranks").rglob("*.safetensors")))

    def test_a_rank_that_is_killed_is_named(self):
        self.write_job(train={"max_steps": 1_000_000, "epochs": 100_000})
        for strategy in ("ddp", "fsdp2"):
            for killed in (1, 0):
                with self.subTest(strategy, killed=killed):
                    ranks = self.started(3, "--strategy", strategy)
                    self.running()
                    ranks[killed].kill()
                    ranks[killed].communicate()
                    for ended in self.ended([ranks[1 - killed], ranks[2]]):
                        error = self.error_of(ended, "ranks.lost")
                        self.assertIn(f"rank {killed}", error["where"])
                pathlib.Path("runs/latest").unlink()

    def error_when_rank_1_is_killed(self, how):
        self.write_job(train={"max_steps": 1_000_000, "epochs": 100_000})
        first, second = self.ended(self.started(2, how, 5, "job.json", command=(
            sys.executable, str(HERE / "own_ranks_deaf.py"))))
        self.assertEqual((first[0], second[0]), (5, -signal.SIGKILL), first[2])
        error = self.error_of(first, "ranks.lost")
        self.assertIn("rank 1 on ", error["where"])
        return error

    def test_a_call_that_does_not_notice_is_ended(self):
        self.assertEqual(self.error_when_rank_1_is_killed("deaf")["what"],
                         "lost another rank while waiting for the others")

    def test_connections_that_cannot_be_closed_do_not_keep_a_rank(self):
        self.error_when_rank_1_is_killed("stuck")

    def test_an_error_of_one_rank_is_shown_by_the_others(self):
        for failing in (1, 0):
            self.write("bad.py", NET.replace(
                "        at = self.first", f"""
        import os
        if self.training and os.environ.get("RANK") == "{failing}":
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls == 3:
                raise ValueError("the third call")
        at = self.first"""))
            self.write_job(model={"class": "bad.py:Net"})
            ended = self.ended(self.started(2))
            own = self.error_of(ended[failing], "model.raised")
            self.assertIn("the third call", own["why"])
            other = self.error_of(ended[1 - failing], "ranks.failed")
            self.assertIn(f"rank {failing}", other["where"])
            self.assertIn("the third call", other["why"])

    def test_ranks_whose_weights_differ_do_not_go_on(self):
        self.write("drifts.py", NET.replace(
            "        at = self.first", """
        import os
        if self.training and os.environ.get("RANK") == "1":
            self.last.bias.data += 0.25
        at = self.first"""))
        self.write_job(model={"class": "drifts.py:Net"})
        for ended in self.ended(self.started(2)):
            self.assertIn("rank 1", self.error_of(ended,
                                                  "ranks.differ")["where"])

    def test_weights_that_a_step_does_not_use(self):
        self.write("net.py", NET.replace(
            "        self.last =", "        self.spare = torch.nn.Linear(3, 3)"
            "\n        self.last ="))
        self.write_job(loader=LOADING)
        self.alone("--output", "one")
        self.trained(2, "--output", "two")
        self.assert_near(floats("two/model.safetensors"),
                         floats("one/model.safetensors"))


class Refusals(RanksCase):
    def refused_by(self, code, *arguments, env=None):
        done = run_train("job.json", "--json", *arguments, env=env)
        self.assertEqual(done.returncode, 2, done.stderr)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], code)
        return error

    def test_a_strategy_of_a_built_in_kind(self):
        self.write_job(model={"kind": "tabular", "class": None})
        for strategy in ("fsdp2", "deepspeed"):
            error = self.refused_by("ranks.strategy", "--strategy", strategy)
            self.assertIn("--model FILE.py:NAME", error["next"])
            self.assertIn("tabular", error["why"])

    def test_a_strategy_that_is_unknown(self):
        self.write_job()
        error = self.refused_by("settings.value", "--strategy", "fspd2")
        self.assertIn("fsdp2", error["next"])

    def test_compile_is_of_own_modules(self):
        self.write_job(model={"kind": "tabular", "class": None,
                              "compile": "default"})
        self.assertIn("torch.compile", self.refused_by(
            "settings.value")["why"])

    @needs_torch
    def test_a_world_without_a_rank(self):
        self.write_job()
        self.assertIn("RANK", json.dumps(self.refused_by(
            "ranks.environment", env={"WORLD_SIZE": "4"})))

    @needs_torch
    def test_float16_is_not_sharded(self):
        self.write_job(train={"precision": "float16"})
        for ended in self.ended(self.started(2, "--strategy", "fsdp2")):
            self.assertIn(json.loads(ended[1])["error"]["code"],
                          ("ranks.strategy", "ranks.failed"))

    @needs_torch
    def test_one_process_says_that_there_is_nothing_to_share(self):
        self.write_job()
        report = self.alone("--strategy", "fsdp2")
        told = json.loads((pathlib.Path(report["run"]) / "run.json")
                          .read_text())["effective"]["strategy"]
        self.assertEqual((told["asked"], told["got"]), ("fsdp2", "none"))


if __name__ == "__main__":
    main()
