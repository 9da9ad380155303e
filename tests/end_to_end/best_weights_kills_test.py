"""A run is killed at any call that makes, names or writes a file: the best
weights that its last state claims are there, and the run that resumes it
ends with the same ones, bit for bit, as one that was never killed.

PENSTOCK_TEST_WEIGHT_KILLS: at how many calls.
"""
import hashlib
import json
import os
import pathlib
import signal
import unittest

from keeping_test import Noise
from penstock_cli import has_part

KILLS = int(os.environ.get("PENSTOCK_TEST_WEIGHT_KILLS", "20"))
LIBRARY = os.environ.get("PENSTOCK_FAILING_CALLS",
                         "build/lib/libfailing_calls.so")
KINDS = ("rename", "fsync", "write", "open")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV and the trainer were not built")
@unittest.skipUnless(pathlib.Path(LIBRARY).exists(),
                     "the library that makes calls fail was not built")
class Kills(Noise):
    JOB = ("train", "job.json", "--json", "--set", "train.keep=both", "--set",
           "train.epochs=6", "--set", "train.validate_every_steps=3")

    def call(self, *arguments, **variables):
        return self.run_it(*arguments, LD_PRELOAD=os.path.abspath(LIBRARY),
                           **variables)

    def runs(self):
        return sorted((self.folder / "runs").glob("2*"))

    def check_claims(self, run):
        """What the state of a run says of its best weights is true."""
        state = json.loads((run / "state.json").read_text())
        best = state.get("best")
        if best is None:
            return False
        there = [digest(path) for path in
                 (run / "weights").glob("best*.safetensors")]
        self.assertIn(best["sha256"], there, f"{run}: {best}")
        return True

    def counts(self):
        count = self.folder / "counts"
        answer = self.call(*self.JOB, FAIL_COUNT=str(count))
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        calls = dict(line.split() for line in count.read_text().splitlines())
        return answer.json(), {kind: int(calls[kind]) for kind in KINDS}

    def points(self, calls):
        """So many of all calls of these kinds, evenly."""
        every = [(kind, number) for kind in KINDS
                 for number in range(1, calls[kind] + 1)]
        step = max(1, len(every) / KILLS)
        chosen = [every[int(at * step)] for at in range(KILLS)
                  if int(at * step) < len(every)]
        # The renames are where one file takes the place of another.
        return sorted({*chosen, *(("rename", calls["rename"] * n // 5 + 1)
                                  for n in range(5))})

    def test_the_best_weights_are_those_of_a_run_that_was_never_killed(self):
        whole, calls = self.counts()
        of_whole = {name: digest(self.weights(whole, name))
                    for name in ("best", "last")}
        killed = claimed = 0
        for kind, number in self.points(calls):
            with self.subTest(kind=kind, number=number):
                before = self.runs()
                answer = self.call(*self.JOB, FAIL_CALL=kind,
                                   FAIL_AT=str(number), FAIL_KILL="1")
                if answer.code == 0:  # a thread made fewer calls this time
                    continue
                self.assertEqual(answer.code, -signal.SIGKILL, answer.err)
                killed += 1
                new = [run for run in self.runs() if run not in before]
                if not new or not (new[-1] / "state.json").exists():
                    continue
                claimed += self.check_claims(new[-1])
                rest = self.succeed("train", "--resume", new[-1],
                                    "--json").json()
                self.assertEqual(rest["best"], whole["best"])
                self.assertEqual(rest["test"], whole["test"])
                for name, expected in of_whole.items():
                    self.assertEqual(digest(self.weights(rest, name)), expected)
        self.assertGreater(killed, KILLS // 2)
        self.assertGreater(claimed, 0, "none was killed after a validation")


if __name__ == "__main__":
    unittest.main()
