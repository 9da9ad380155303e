"""penstock bench: a job, and a source unchanged, under other settings."""
import json
import unittest

from penstock_cli import Case

QUICK = ("--seconds", "0.03", "--repeats", "1", "--json")


class Bench(Case):
    def check(self, found):
        settings = found["settings"]
        self.assertGreater(len(settings), 1)
        self.assertEqual(found["present"], 0)
        self.assertIn(found["best"], range(len(settings)))
        for setting in settings:
            rate = setting["rate"]
            self.assertGreater(rate["median"], 0)
            self.assertLessEqual(rate["min"], rate["max"])
        rates = [step["rate"] for step in found["cumulative"]]
        self.assertEqual(rates, sorted(rates))

    def test_a_job_with_another_batch_size(self):
        self.good_start(device={"kind": "sim", "step_ms": 1})
        found = self.succeed("bench", "job.json", "--batch-size", "8",
                             *QUICK).json()
        self.check(found)
        self.assertGreater(found["ceiling"], 0)
        self.assertLess(found["ceiling"], 8 / 0.0009)

    def test_steps_that_take_no_time_have_no_ceiling(self):
        self.good_start()
        text = self.succeed("bench", "job.json", "--ceiling", "--seconds",
                            "0.03", "--set", "device=cpu").out
        self.assertIn("no upper limit to compare", text)

    def test_a_source_as_it_is(self):
        self.database([(i, "text", i / 2) for i in range(64)])
        self.check(self.succeed("bench", "sqlite:d.sqlite#t", "--batch-size",
                                "16", *QUICK).json())

    def test_the_best_of_a_job_is_written_and_of_a_source_not(self):
        self.good_start()
        answer = self.succeed("bench", "job.json", "--apply", *QUICK).json()
        tuned = json.loads((self.folder / "job.tuned.json").read_text())
        best = answer["settings"][answer["best"]]
        self.assertEqual(tuned["loader"]["workers"], best["loader.workers"])
        self.refused(self.run_it("bench", "sqlite:d.sqlite#t", "--apply",
                                 *QUICK), "request", "cli.arguments",
                     "--apply")

    def test_a_source_without_numbers_and_texts(self):
        self.database([(None,)] * 8, declared="a REAL")
        self.refused(self.run_it("bench", "sqlite:d.sqlite#t", *QUICK),
                     "request", "bench.no_columns", "d.sqlite")


if __name__ == "__main__":
    unittest.main()
