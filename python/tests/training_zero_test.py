"""A user's own module on several ranks by DeepSpeed, over gloo."""
import json
import pathlib
import unittest

from entry import main
from own_model import needs_torch, run_train
from own_ranks import LOADING, NET, RanksCase, floats
from penstock import program
from positions import has

needs_deepspeed = unittest.skipUnless(
    has("torch") and has("deepspeed"), "DeepSpeed is not installed")
BY_ZERO = ("--strategy", "deepspeed")


def sets(*settings):
    return tuple(part for one in settings for part in ("--set", one))


@needs_deepspeed
class Parity(RanksCase):
    """The weights are those of one process, but for the rounding of sums."""

    def assert_parity(self, worlds, *settings):
        report = self.alone("--output", "one", *sets(*settings))
        expected = floats("one/model.safetensors")
        for world in worlds:
            of_ranks = self.trained(world, "--output", f"of-{world}", *BY_ZERO,
                                    *sets(*settings))
            self.assert_near(floats(f"of-{world}/model.safetensors"), expected)
            self.assert_losses_near(of_ranks, report)
        return of_ranks

    def test_two_and_four_ranks(self):
        self.write_job(loader=LOADING)
        of_ranks = self.assert_parity((2, 4))
        told = json.loads((pathlib.Path(of_ranks["run"]) / "run.json")
                          .read_text())["effective"]["strategy"]
        self.assertEqual(told["got"], "deepspeed")
        self.assertGreater(of_ranks["ranks"]["bytes_per_step"], 0)

    def test_ranks_without_rows(self):
        """Of 150 train rows, batches of 37 leave a last one of 2 rows."""
        self.write_job(loader=LOADING)
        self.assert_parity((4,), "loader.batch_size=37",
                           "loader.val_batch_size=15")

    def test_accumulation_and_averages(self):
        """With checkpoints between the steps of an accumulation."""
        self.write_job(loader=LOADING)
        self.assert_parity((2,), "train.accumulate=3", "train.ema=0.9",
                           "train.checkpoint_every_steps=4")

    def test_bfloat16(self):
        """Products are rounded, so that weights differ a little; gradients
        and weights are float32 as ever."""
        self.write_job(loader=LOADING, train={"precision": "bfloat16"})
        report = self.alone()
        of_ranks = self.trained(2, *BY_ZERO)
        for one, other in zip(of_ranks["epochs"], report["epochs"],
                              strict=True):
            self.assertAlmostEqual(one["val_loss"], other["val_loss"],
                                   delta=0.05 * other["val_loss"])

    def test_buffers_are_those_of_rank_0(self):
        self.write("net.py", NET.replace("        self.last =", """
        import os
        self.register_buffer("rank", torch.full(
            (1,), float(os.environ.get("RANK", "0"))))
        self.last =""").replace("return self.last(at)",
                                "return self.last(at) + self.rank"))
        self.write_job(loader=LOADING)
        self.assert_parity((2,))

    def test_a_launcher_that_gives_no_local_rank(self):
        self.write_job(loader=LOADING)
        ended = self.ended(self.started(2, *BY_ZERO, command=(
            "env", "-u", "LOCAL_RANK", str(program.path()), "train",
            "job.json", "--json")))
        self.assertEqual([code for code, _, _ in ended], [0, 0], ended)

    def test_weights_that_some_ranks_do_not_use(self):
        self.write("net.py", NET.replace(
            "        self.last =", "        self.spare = torch.nn.Linear(2, 1)"
            "\n        self.last =").replace("        return self.last(at)", """
        import os
        out = self.last(at)
        if os.environ.get("RANK", "0") == "0":
            out = out + 0 * self.spare(x)
        return out"""))
        self.write_job(loader=LOADING)
        self.assert_parity((2,))


@needs_deepspeed
class Resuming(RanksCase):
    def test_with_fewer_ranks(self):
        self.resumes("deepspeed")

    def test_in_an_accumulation(self):
        self.resumes("deepspeed", "train.accumulate=4", "train.ema=0.9")

    def test_what_ddp_has_begun(self):
        """A checkpoint has the optimizer's state of each weight by its name,
        whatever wrote it."""
        self.write_job(loader=LOADING)
        self.alone("--output", "one")
        for first, then in (("ddp", "deepspeed"), ("deepspeed", "ddp")):
            run, _ = self.stopped_at(13, first, ())
            self.trained(2, "--resume", run, "--output", then, *sets(
                f"train.strategy={then}"), job=None)
            self.assert_near(floats(f"{then}/model.safetensors"),
                             floats("one/model.safetensors"))


@needs_torch
class Ends(RanksCase):
    def error_of_both(self, code):
        """The error of the rank that failed first."""
        errors = [json.loads(out)["error"] for exit_code, out, _
                  in self.ended(self.started(2, *BY_ZERO)) if exit_code]
        self.assertEqual(len(errors), 2)
        self.assertLessEqual({error["code"] for error in errors},
                             {code, "ranks.failed"})
        return next(error for error in errors if error["code"] == code)

    @needs_deepspeed
    def test_a_rank_that_is_killed_is_named(self):
        self.write_job(train={"max_steps": 1_000_000, "epochs": 100_000})
        ranks = self.started(3, *BY_ZERO)
        self.running()
        ranks[1].kill()
        ranks[1].communicate()
        for ended in self.ended([ranks[0], ranks[2]]):
            self.assertIn("rank 1",
                          self.error_of(ended, "ranks.lost")["where"])

    @needs_deepspeed
    def test_gradients_that_are_not_finite(self):
        self.write("net.py", NET.replace("        return self.last(at)", """
        out = self.last(at)
        self.calls = getattr(self, "calls", 0) + self.training
        if self.calls == 4:
            out.register_hook(lambda gradient: gradient * float("inf"))
        return out"""))
        self.write_job()
        self.assertIn("gradient",
                      self.error_of_both("train.not_finite")["why"])

    @needs_deepspeed
    def test_weights_that_deepspeed_does_not_train(self):
        for found, changed in (
                ("'last.weight', torch.float16", NET.replace(
                    "torch.nn.Linear(width, 1)",
                    "torch.nn.Linear(width, 1).half()")),
                ("'slope', shape []", NET.replace(
                    "        self.last =", "        self.slope = torch.nn."
                    "Parameter(torch.tensor(0.5))\n        self.last ="))):
            self.write("net.py", changed)
            self.write_job()
            error = self.error_of_both("ranks.strategy")
            self.assertIn(found, error["where"])

    @needs_deepspeed
    def test_other_optimizers_are_refused(self):
        for name in ("Adagrad", "Adafactor"):
            self.write("net.py", NET + f"""
    def configure_optimizers(self):
        return torch.optim.{name}(self.parameters(), lr=0.01)
""")
            self.write_job()
            error = self.error_of_both("ranks.strategy")
            self.assertIn(name, error["where"])
            self.assertIn("AdamW", error["next"])

    def test_float16(self):
        self.write_job(train={"precision": "float16"})
        self.assertIn("scaler", self.error_of_both("ranks.strategy")["why"])

    def test_deepspeed_cannot_be_imported(self):
        self.write("deepspeed.py", "raise ImportError('no such package')")
        self.write_job()
        error = self.error_of_both("ranks.strategy")
        self.assertIn("no such package", error["why"])
        self.assertIn("pip install deepspeed", error["next"])


class Alone(RanksCase):
    @needs_torch
    def test_one_process_says_that_there_is_nothing_to_share(self):
        self.write_job()
        done = run_train("job.json", "--json", *BY_ZERO)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads((pathlib.Path(json.loads(done.stdout)["run"]) /
                           "run.json").read_text())["effective"]["strategy"]
        self.assertEqual((told["asked"], told["got"]), ("deepspeed", "none"))


if __name__ == "__main__":
    main()
