"""The examples of the frames: each says itself whether a run that was resumed
is the run that was not."""
import os
import pathlib
import py_compile
import subprocess
import sys
import tempfile
import time
import unittest

from entry import main
from frames import needs, versions

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "frames"
EPOCH = 15  # steps of an epoch of the examples
STEPS = 3 * EPOCH + 2
LONGEST_S = 120
# Prints the rows that a rank got in an epoch.
TWO_RANKS = """
import sys
sys.path.insert(0, {examples!r})
import lightning_trainer, penstock, lightning
from positions import make_job

class Module(lightning_trainer.Module):
    def train_dataloader(self):
        return penstock.Loader(self.job["source"], self.job["fields"], 16,
                               shuffle=True)

module = Module(make_job(100))
lightning.Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy="ddp",
                  logger=False, enable_checkpointing=False,
                  enable_progress_bar=False).fit(module)
print("\\nrows:", *sum(module.rows, []), flush=True)
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", "2")


class Frames(unittest.TestCase):
    def run_example(self, name, *options, launcher=()):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-B", *launcher, str(EXAMPLES / name), *options],
            capture_output=True, text=True, timeout=LONGEST_S, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, time.monotonic() - began

    def resumes(self, frame, name, *options, stops=(EPOCH, 2 * EPOCH + 7),
                **named):
        """The example, with its checkpoint within an epoch and at the end of
        one."""
        slowest = 0
        for stop in stops:
            with self.subTest(stop=stop):
                told, seconds = self.run_example(
                    name, "--steps", str(STEPS), "--stop", str(stop),
                    *options, **named)
                self.assertIn(f"resumed after step {stop} of {STEPS}", told)
                slowest = max(slowest, seconds)
        print(f"\n{name}: {versions(frame)}; at most {slowest:.0f} s")

    @needs("torch")
    def test_pytorch(self):
        self.resumes("torch", "pytorch_loop.py")

    @needs("lightning")
    def test_lightning(self):
        self.resumes("lightning", "lightning_trainer.py")

    @needs("lightning")
    def test_lightnings_own_launcher_gives_ranks_their_shares(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "ranks.py"
            script.write_text(TWO_RANKS.format(examples=str(EXAMPLES)))
            told, _ = self.run_example(script)  # no RANK in the environment
        shares = [[int(row) for row in line.split()[1:]]
                  for line in told.splitlines() if line.startswith("rows:")]
        self.assertEqual(len(shares), 2, told)
        self.assertEqual(sorted(shares[0] + shares[1]), list(range(1, 101)))

    @needs("transformers")
    def test_transformers(self):
        self.resumes("transformers", "huggingface_trainer.py")

    @needs("transformers")
    def test_packed_rows_in_transformers(self):
        told, seconds = self.run_example("packed_trainer.py")
        self.assertIn("its documents one by one", told)
        self.assertIn("learnt: ", told)
        print(f"\npacked_trainer.py: {versions('transformers')}; "
              f"{seconds:.0f} s")

    @needs("accelerate")
    def test_accelerate(self):
        self.resumes("accelerate", "accelerate_loop.py")

    @needs("jax")
    def test_jax(self):
        self.resumes("jax", "jax_loop.py")

    @needs("torch")
    def test_ddp_on_two_ranks(self):
        # Of 609 rows, 1 is left for the 20th batch of both ranks.
        self.resumes("torch", "ddp_loop.py", "--rows", "609", stops=(20, 25),
                     launcher=TORCHRUN)

    @needs("torch")
    def test_fsdp2_on_two_ranks(self):
        self.resumes("torch", "fsdp2_loop.py", "--cpu",
                     stops=(EPOCH + 4,), launcher=TORCHRUN)

    @needs("deepspeed")
    def test_deepspeed(self):
        self.resumes("deepspeed", "deepspeed_loop.py", "--cpu",
                     stops=(EPOCH + 4,), launcher=(*TORCHRUN[:-1], "1"))

    @needs("torch")
    def test_what_needs_a_gpu_says_so_without_one(self):
        import torch

        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        for name in ("fsdp2_loop.py", "deepspeed_loop.py"):
            self.assertIn("skipped: ", self.run_example(name)[0])

    def test_all_examples_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            found = sorted(EXAMPLES.glob("*.py"))
            self.assertEqual(len(found), 12)
            for file in found:
                py_compile.compile(str(file), f"{folder}/{file.name}c",
                                   doraise=True)


if __name__ == "__main__":
    main()
