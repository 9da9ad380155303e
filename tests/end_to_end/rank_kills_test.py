"""A rank is killed at any moment of a run: the others end within seconds, and
the run that continues has the weights of one that was never killed, bit for bit.

PENSTOCK_TEST_RANK_KILLS: how many times. PENSTOCK_TEST_LAUNCHERS: by what the ranks
are started, in turns: "environment" (as each launcher sets it; the default),
"torchrun" and "srun", which must be there.
"""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

import train_ranks_test  # before what lies beside the package's tests
from free_port import free_port
from penstock_cli import PROGRAM
from slurm_cluster import Slurm

LAUNCHERS = os.environ.get("PENSTOCK_TEST_LAUNCHERS", "environment").split(",")
KILLS = int(os.environ.get("PENSTOCK_TEST_RANK_KILLS", "20"))
MOST_S = 5  # until the other ranks have ended
JOB = ("--set", "train.epochs=1000", "--set", "train.max_steps=150", "--set",
       "train.checkpoint_every_steps=10", "--set", "train.validate_every_steps=25",
       "--set", "train.threads=1")


def ranks_in(folder):
    """The processes of the program that run there, by rank."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (os.readlink(process / "cwd") != str(folder)
                    or os.readlink(process / "exe") != os.path.realpath(PROGRAM)):
                continue
            variables = dict(
                one.split("=", 1) for one in
                (process / "environ").read_text().split("\0") if "=" in one)
        except OSError:
            continue  # it has ended
        rank = variables.get("RANK") or variables.get("SLURM_PROCID")
        if rank is not None:
            found[int(rank)] = int(process.name)
    return found


class RankKills(train_ranks_test.RanksCase):
    def started_by(self, launcher, world, *arguments):
        """The processes that end with the ranks."""
        if launcher == "environment":
            return self.ranks(world, *arguments)
        by = {"torchrun": ["torchrun", f"--nproc-per-node={world}", "--no-python",
                           "--master-addr=127.0.0.1",
                           f"--master-port={free_port()}"],
              "srun": ["srun", "--quiet", "--overcommit", f"--ntasks={world}"]}
        process = subprocess.Popen(
            [*by[launcher], PROGRAM, "train", "job.json", *arguments, "--json"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return [process]

    def whole(self, world):
        """The weights of a run without a kill, and its seconds."""
        begun = time.monotonic()
        _, weights = self.trained(world, *JOB)
        return weights, time.monotonic() - begun

    def killed(self, launcher, world, moment, victim):
        """Seconds until all others have ended; None where the run was over."""
        runs = set((self.folder / "runs").glob("2*"))
        started = self.started_by(launcher, world, *JOB, "--resume", "latest",
                                  "--or-begin")
        self.wait_for(lambda: any(
            (run / "steps.jsonl").exists()
            for run in set((self.folder / "runs").glob("2*")) - runs),
            "the first step")
        time.sleep(moment)
        killed = ranks_in(self.folder).get(victim)
        if killed is None:
            self.answers(started)
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(killed, signal.SIGKILL)
        begun = time.monotonic()
        self.wait_for(lambda: not ranks_in(self.folder), "the end of the ranks")
        seconds = time.monotonic() - begun
        answers = self.answers(started)
        if launcher != "environment":
            return seconds if answers[0].code else None
        if answers[victim].code != -signal.SIGKILL:
            return None
        for rank, answer in enumerate(answers):
            if rank == victim or answer.code == 0:  # it had ended by then
                continue
            error = self.refused(answer, "device", "ranks.lost")
            self.assertIn(f"rank {victim} on ", error["where"])
        return seconds

    def test_others_end_and_the_run_continues(self):
        draw = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "1")))
        wholes = {}
        if "srun" in LAUNCHERS:
            try:
                self.addCleanup(Slurm().close)
            except unittest.SkipTest as why:
                self.fail(str(why))
        longest, lost = 0, 0
        for number in range(KILLS):
            world = draw.choice((2, 3, 4))
            if world not in wholes:
                wholes[world] = self.whole(world)
            expected, lasts = wholes[world]
            victim = draw.randrange(world)
            launcher = LAUNCHERS[number % len(LAUNCHERS)]
            moment = draw.uniform(0, lasts)
            with self.subTest(number, launcher=launcher, world=world, victim=victim,
                              moment=round(moment, 3)):
                for old in (self.folder / "runs").glob("2*"):
                    old.rename(self.folder / f"whole-{number}-{old.name}")
                seconds = self.killed(launcher, world, moment, victim)
                if seconds is not None:
                    lost += 1
                    longest = max(longest, seconds)
                    self.assertLess(seconds, MOST_S)
                name = f"again-{number}"
                answers = self.answers(self.ranks(
                    world, *JOB, "--resume", "latest", "--or-begin",
                    "--output", name))
                for answer in answers:
                    self.assertEqual(answer.code, 0, answer.out + answer.err)
                self.assertEqual(train_ranks_test.read_safetensors(
                    self.folder / name / "model.safetensors"), expected)
        print(f"{KILLS} kills, {lost} of them in the middle of a run; the "
              f"others ended within {longest:.2f} s")
        self.assertGreater(lost, 0)


if __name__ == "__main__":
    unittest.main()
