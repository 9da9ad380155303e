"""A model that runs out of memory trains to its end; what it takes is known
before, and a batch that fits is found."""
import json
import unittest

from model_test import Positions
from penstock_cli import Case, has_part

KEYS = {"parameters", "gradients", "optimizer", "activations", "cache",
        "total", "per_row"}
GIB = 1 << 30
HEADROOM = 0.08  # of what rows may take

PIXELS = 3 * 16 * 16


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class BatchNormalization(Case):
    """A model that cannot learn from a single row."""

    def setUp(self):
        super().setUp()
        with open(self.folder / "rows.csv", "w", encoding="utf-8") as file:
            print("class,pixels", file=file)
            for row in range(48):
                pixels = [(row * 37 + at * 11) % 250 for at in range(PIXELS)]
                print(f'{"pq"[row % 2]},"{pixels}"', file=file)
        self.write_job({
            "source": {"kind": "csv", "path": "rows.csv"},
            "fields": {"x": {"array": {"column": "pixels", "dtype": "uint8",
                                       "shape": [3, 16, 16]}},
                       "y": {"category": {"column": "class"}}},
            "loader": {"batch_size": 16},
            "model": {"kind": "image_classifier", "image": "x", "target": "y"},
            "train": {"epochs": 1}, "device": "cpu"})

    def test_a_size_that_fits_is_found(self):
        found = self.succeed("bench", "job.json", "--batch-size", "auto",
                             "--json").json()["batch_size"]
        tried = {one["rows"]: one["fits"] for one in found["tried"]}
        self.assertTrue(tried[found["rows"]])
        for setting in ("loader.batch_size", "train.micro_batch"):
            with self.subTest(setting):
                answer = self.succeed("train", "job.json", "--json", "--set",
                                      f"{setting}=auto")
                self.assertIn(f"{setting}: ", answer.err)
                self.assertEqual(answer.json()["oom"], [])

    def found(self, **device):
        return self.succeed(
            "bench", "job.json", "--batch-size", "auto", "--json", "--set",
            "device=" + json.dumps({"kind": "cpu", **device})
        ).json()["batch_size"]

    def test_memory_limits_what_is_found(self):
        """To four rows: from there on rates are compared, too, and those of a
        machine that does other work may stop growing anywhere."""
        memory = self.succeed("train", "job.json", "--estimate",
                              "--json").json()["memory"]
        fixed = memory["parameters"] + memory["gradients"] + memory["optimizer"]
        of_four = next(one["peak_bytes"] for one in self.found()["tried"]
                       if one["rows"] == 4)
        limit = fixed + 1.01 * (of_four - fixed) / (1 - HEADROOM)
        found = self.found(memory_gib=limit / GIB)
        self.assertEqual((found["rows"], found["by"]), (4, "memory"))


@unittest.skipUnless(has_part("trainer"), "the trainer was not built")
class Shortage(Positions):
    def setUp(self):
        super().setUp()
        self.positions(rows=600, epochs=2)
        job = json.loads((self.folder / "job.json").read_text())
        job["model"]["width"] = 64
        job["loader"]["batch_size"] = 256
        self.write_job(job)

    def estimate(self, *more):
        return self.succeed("train", "job.json", "--estimate", "--json",
                            *more).json()["memory"]

    def limited(self, share, *more):
        """Trains with that share of what a step takes."""
        gib = share * self.estimate()["total"] / GIB
        return self.run_it("train", "job.json", "--json", "--set",
                           f'device={{"kind": "cpu", "memory_gib": {gib}}}',
                           *more)

    def test_a_job_larger_than_the_limit_trains_to_its_end(self):
        free = self.train()
        self.assertEqual(free["oom"], [])
        answer = self.limited(0.4)
        self.assertEqual(answer.code, 0, answer.err)
        report = answer.json()
        self.assertEqual(report["oom"][:2], [
            {"step": 0, "from": 256, "to": 256, "action": "look_ahead",
             "exact": True},
            {"step": 0, "from": 256, "to": 128, "action": "micro_batch",
             "exact": True}])
        self.assertEqual(report["steps"], free["steps"])
        for one, other in zip(report["epochs"], free["epochs"]):
            self.assertAlmostEqual(one["train_loss"], other["train_loss"], 4)
        peak = report["memory"]["peak_by_owner"]
        self.assertLess(sum(peak.values()),
                        sum(free["memory"]["peak_by_owner"].values()))
        over = report["memory"]["over_time"]
        self.assertEqual(max(over["activations"]), peak["activations"])
        self.assertEqual(set(over), {"seconds", *peak})
        page = (self.folder / report["run"] / "report.html").read_text()
        self.assertIn("all of the device", page)
        self.assertIn("<td>micro batch</td>", page)

    def test_the_size_in_force_goes_on_in_a_resumed_run(self):
        report = self.limited(0.4).json()
        size = report["oom"][-1]["to"]
        again = self.succeed("train", "--resume", report["run"], "--json",
                             "--set", "train.epochs=3").json()
        self.assertLess(size, 256)
        self.assertNotIn("micro_batch", [one["action"] for one in again["oom"]])

    def test_stop_ends_the_run_at_the_first_shortage(self):
        self.refused(self.limited(0.4, "--set", "train.oom=stop"),
                     "out_of_memory", "trainer.out_of_memory", "libtorch")

    def test_the_end_says_what_would_fit(self):
        job = json.loads((self.folder / "job.json").read_text())
        job["model"]["width"] = 256
        job["loader"]["prefetch"] = 1
        self.write_job(job)
        memory = self.estimate()
        kept = sum(memory[owner] for owner in (
            "parameters", "gradients", "optimizer", "look_ahead"))
        device = {"kind": "cpu", "memory_gib": (kept + 1000) / GIB}
        answer = self.run_it("train", "job.json", "--json", "--set",
                             "device=" + json.dumps(device))
        self.refused(answer, "out_of_memory", "trainer.out_of_memory",
                     "micro-batches of 1 row take", "parameters ",
                     "activations ")

    def test_a_limit_below_the_model_is_refused(self):
        job = json.loads((self.folder / "job.json").read_text())
        job["model"]["width"] = 512
        job["device"] = {"kind": "cpu", "memory_gib": 0.001}
        self.write_job(job)
        self.refused(self.run_it("train", "job.json", "--json"), "out_of_memory",
                     "trainer.limit_too_low", "device.memory_gib")

    def test_the_estimate_is_the_peak_of_the_run(self):
        memory = self.estimate()
        self.assertLessEqual(KEYS, set(memory))
        peak = self.train()["memory"]["peak_by_owner"]
        self.assertAlmostEqual(memory["total"] / sum(peak.values()), 1,
                               delta=0.1)
        text = self.succeed("train", "job.json", "--estimate").out
        self.assertIn("activations of 256 rows about", text)
        self.assertIn("activations of 256 rows about",
                      self.succeed("train", "job.json", "--plan").err)

    def test_a_batch_that_fits_is_found_and_stored_as_a_number(self):
        limit = 'device={"kind": "cpu", "memory_gib": 0.02}'
        found = self.succeed("bench", "job.json", "--batch-size", "auto",
                             "--json", "--set", limit).json()["batch_size"]
        tried = {one["rows"]: one["fits"] for one in found["tried"]}
        self.assertTrue(tried[found["rows"]])
        report = self.succeed("train", "job.json", "--json", "--set", limit,
                              "--set", "loader.batch_size=auto").json()
        run = json.loads((self.folder / report["run"] / "run.json")
                         .read_text())
        rows = run["job"]["loader"]["batch_size"]
        self.assertIsInstance(rows, int)
        self.assertEqual(report["oom"], [])

    def test_only_training_finds_a_batch_size(self):
        self.refused(self.run_it("batch", "job.json", "--json", "--set",
                                 "loader.batch_size=auto"), "request",
                     "loader.batch_auto", "loader.batch_size")
        self.refused(self.run_it("train", "job.json", "--json", "--set",
                                 "loader.batch_size=most"), "request",
                     "settings.value", "loader.batch_size")

    def test_a_micro_batch_that_fits_is_found(self):
        answer = self.limited(0.5, "--set", "train.micro_batch=auto")
        self.assertEqual(answer.code, 0, answer.err)
        self.assertEqual([one for one in answer.json()["oom"]
                          if one["action"] != "validation_rows"], [])
        self.assertIn("train.micro_batch: ", answer.err)

    def test_predictions_that_run_out_of_memory_are_the_same(self):
        report = self.train()
        predict = ("predict", report["run"], "sqlite:d.sqlite#" +
                   json.loads((self.folder / "job.json").read_text())
                   ["source"]["table"], "--out")
        self.succeed(*predict, "free.csv")
        path = self.folder / report["run"] / "run.json"
        run = json.loads(path.read_text())
        peak = report["memory"]["peak_by_owner"]
        limit = peak["parameters"] + peak["activations"] // 8
        run["job"]["device"] = {"kind": "cpu", "memory_gib":
                                max(limit / GIB, 0.001)}
        path.write_text(json.dumps(run))
        answer = self.succeed(*predict, "short.csv")
        self.assertIn("rows at once", answer.err)
        free, short = ((self.folder / name).read_text().splitlines()
                       for name in ("free.csv", "short.csv"))
        self.assertEqual(free[0], short[0])
        for one, other in zip(free[1:], short[1:], strict=True):
            for a, b in zip(one.split(","), other.split(","), strict=True):
                self.assertAlmostEqual(float(a), float(b), 3)

    def test_a_job_without_a_model_has_no_memory_to_fit(self):
        for arguments in (("train", "job.json", "--estimate"),
                          ("bench", "job.json", "--batch-size", "auto")):
            self.refused(self.run_it(*arguments, "--json", "--set", "model=none"),
                         "request", "model.no_memory", "model")


if __name__ == "__main__":
    unittest.main()
