"""`penstock train JOB --resume latest --or-begin`: one command that begins a run
of a job, continues it, and says when it is finished, however often it is
called: as a scheduler calls a job that it puts back into its queue."""
import json
import signal
import subprocess
import unittest

import train_ranks_test
from penstock_cli import PATIENCE_S, PROGRAM

AGAIN = ("--resume", "latest", "--or-begin")


class NewestRun(train_ranks_test.RanksCase):
    def interrupted(self, *arguments):
        """A run that is asked to end after some steps; its folder."""
        before = set((self.folder / "runs").glob("2*"))
        process = subprocess.Popen(
            [PROGRAM, "train", "job.json", *AGAIN, *arguments],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))

        def new():
            found = [one for one in (self.folder / "runs").glob("2*")
                     if one not in before and (one / "steps.jsonl").exists()]
            return found[0] if found else None
        run = self.wait_for(new, "the first step")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 143, err)
        return run, err

    def steps(self, run):
        return json.loads((run / "state.json").read_text())["steps_taken"]

    def test_command_can_be_repeated_until_the_run_is_finished(self):
        long = ("--set", "train.epochs=100000")
        first, said = self.interrupted(*long)
        self.assertIn("a new one begins", said)
        second, said = self.interrupted(*long)
        self.assertIn(f"the newest run of this job is runs/{first.name}", said)
        taken = self.steps(second)
        self.assertGreater(taken, self.steps(first))
        # The length may change. (The job's own 2 epochs are 12 steps, which
        # both runs together can have taken before they were asked to end.)
        end = (*long, "--set", f"train.max_steps={taken + 3}")
        answer = self.succeed("train", "job.json", *AGAIN, *end, "--json")
        report = answer.json()
        self.assertEqual(report["steps"], 3)
        for _ in range(2):
            answer = self.succeed("train", "job.json", *AGAIN, *end, "--json")
            self.assertIn(report["run"] + " is finished", answer.err)
            self.assertEqual(answer.json(), report)

    def test_ranks_take_the_run_that_rank_0_finds(self):
        long = ("--set", "train.epochs=100000")
        first, _ = self.interrupted("--ranks", "2", *long)
        end = (*long, "--set", f"train.max_steps={self.steps(first) + 2}")
        for ranks in (3, 2):  # to its end; and then there is nothing to do
            answer = self.succeed("train", "job.json", *AGAIN, *end, "--ranks",
                                  ranks, "--json")
            self.assertEqual(answer.json()["ranks"]["world"], 3)
        self.assertIn("is finished", answer.err)

    def test_run_of_another_job_is_not_taken(self):
        other = ("--set", "train.lr=0.02")
        self.succeed("train", "job.json", *other)
        answer = self.succeed("train", "job.json", *AGAIN)
        self.assertIn("a new one begins", answer.err)
        answer = self.succeed("train", "job.json", *AGAIN, *other)
        self.assertIn("is finished", answer.err)

    def test_refusals(self):
        for arguments, code, names in (
                (("job.json", "--resume", "latest"), "resume.no_run",
                 ("runs", "--or-begin")),
                (("job.json", "--or-begin"), "cli.arguments",
                 ("--resume latest",)),
                (("--resume", "latest", "--or-begin"), "cli.arguments",
                 ("a job file",)),
                (("job.json", *AGAIN, "--skip", "2"), "cli.arguments",
                 ("--skip",)),
                (("job.json", "--resume", "runs/latest"), "cli.arguments",
                 ("'latest'",))):
            with self.subTest(arguments):
                answer = self.run_it("train", *arguments, "--json")
                self.refused(answer, "request", code, *names)


if __name__ == "__main__":
    unittest.main()
