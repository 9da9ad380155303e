"""A rank is killed at any moment of a run: the others end within seconds, and
the run that continues has the weights of one that was never killed, bit for bit.

PENSTOCK_TEST_RANK_KILLS: how many times.
"""
import os
import random
import signal
import time
import unittest

import train_ranks_test

KILLS = int(os.environ.get("PENSTOCK_TEST_RANK_KILLS", "20"))
MOST_S = 5  # until the other ranks have ended
JOB = ("--set", "train.epochs=1000", "--set", "train.max_steps=150", "--set",
       "train.checkpoint_every_steps=10", "--set", "train.validate_every_steps=25",
       "--set", "train.threads=1")


class RankKills(train_ranks_test.RanksCase):
    def whole(self, world):
        """The weights of a run without a kill, and its seconds."""
        begun = time.monotonic()
        _, weights = self.trained(world, *JOB)
        return weights, time.monotonic() - begun

    def killed(self, world, moment, victim):
        """Seconds until all others have ended; None where the run was over."""
        runs = set((self.folder / "runs").glob("2*"))
        ranks = self.ranks(world, *JOB, "--resume", "latest", "--or-begin")
        self.wait_for(lambda: any(
            (run / "steps.jsonl").exists()
            for run in set((self.folder / "runs").glob("2*")) - runs),
            "the first step")
        time.sleep(moment)
        ranks[victim].kill()
        begun = time.monotonic()
        answers = self.answers(ranks)
        seconds = time.monotonic() - begun
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
        longest, lost = 0, 0
        for number in range(KILLS):
            world = draw.choice((2, 3, 4))
            if world not in wholes:
                wholes[world] = self.whole(world)
            expected, lasts = wholes[world]
            victim = draw.randrange(world)
            moment = draw.uniform(0, lasts)
            with self.subTest(number, world=world, victim=victim,
                              moment=round(moment, 3)):
                for old in (self.folder / "runs").glob("2*"):
                    old.rename(self.folder / f"whole-{number}-{old.name}")
                seconds = self.killed(world, moment, victim)
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
