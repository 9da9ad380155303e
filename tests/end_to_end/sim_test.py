"""penstock sim: described pipelines, and how often their verdict is right."""
import json
import pathlib
import subprocess
import sys
import unittest

from penstock_cli import PROGRAM, Case

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = {"step_ms": 20, "step_cv": 0, "delivery": "completion",
            "batches": 2000, "seed": 1,
            "stages": [{"name": "read", "service_ms": 60, "cv": 0.3,
                        "workers": 2, "queue": 4},
                       {"name": "decode", "service_ms": 5}],
            "copy": {"ms": 1}}


class Sim(Case):
    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document))
        return name

    def test_tunes_a_described_pipeline_within_its_processors(self):
        described = {**PIPELINE, "cpus": 5}
        self.write("five.json", described)
        seen = self.succeed("sim", "five.json", "--tune", "--json").json()
        tuned = seen["tuned"]
        workers = {stage["name"]: stage["workers"]
                   for stage in tuned["stages"]}
        self.assertEqual(workers, {"read": 4, "decode": 1})
        self.assertGreater(tuned["rate"], 49)  # of the 50 of the steps
        first = tuned["decisions"][0]
        self.assertEqual((first["knob"], first["from"], first["to"]),
                         ("read.workers", 2, 4))
        self.assertAlmostEqual(first["predicted_gain"], 0.5, delta=0.05)
        self.assertAlmostEqual(first["measured_gain"], 0.5, delta=0.05)
        text = self.succeed("sim", "five.json", "--tune").out
        self.assertIn("'read' gives 33", text)
        described["cpus"] = 3
        self.write("three.json", described)
        none = self.succeed("sim", "three.json", "--tune", "--json").json()
        self.assertEqual(none["tuned"]["decisions"], [])
        self.assertIn("all 3.0 processors of the budget are used",
                      none["tuned"]["rests"])

    def test_a_list_without_a_pipeline_is_refused(self):
        self.write("none.json", [])
        for arguments in ((), ("none.json",)):
            told = self.run_it("sim", *arguments)
            self.assertEqual(told.code, 2)
            self.assertIn("nothing to simulate", told.err)

    def test_moves_threads_from_stage_to_stage_as_one_change(self):
        self.write("full.json", {
            "step_ms": 10, "cpus": 4, "batches": 1000, "stages": [
                {"name": "read", "service_ms": 30},
                {"name": "decode", "service_ms": 10, "workers": 3}]})
        seen = self.succeed("sim", "full.json", "--tune", "--json").json()
        first = seen["tuned"]["decisions"][0]
        self.assertEqual((first["knob"], first["from"], first["to"]),
                         ("read.workers", 1, 2))
        self.assertEqual(first["also"], {"knob": "decode.workers", "from": 3,
                                         "to": 1})
        text = self.succeed("sim", "full.json", "--tune").out
        self.assertRegex(text, r"decode.workers +3 +1 +with that")

    def test_says_what_limits_a_described_pipeline(self):
        seen = self.succeed("sim", self.write("one.json", PIPELINE),
                            "--json").json()
        self.assertEqual(set(seen), {"au", "rate", "parts", "stages",
                                     "verdict"})
        self.assertAlmostEqual(seen["rate"], 2 / 0.060, delta=1)
        self.assertAlmostEqual(seen["au"], 20 * seen["rate"] / 1000, places=6)
        self.assertAlmostEqual(sum(seen["parts"].values()), 1, places=6)
        self.assertEqual(seen["verdict"]["limit"], "data")
        self.assertEqual(seen["verdict"]["stage"], "read")
        self.assertEqual(seen["verdict"]["actions"][0]["knob"],
                         "read.workers")
        read = seen["stages"][0]
        self.assertAlmostEqual(read["rate"], 2 / 0.060, delta=1)
        self.assertLess(read["p50_ms"], 66)
        self.assertGreater(read["p99_ms"], 90)
        again = self.succeed("sim", "one.json", "--json").json()
        self.assertEqual(seen, again)

    def test_takes_lists_and_several_files(self):
        self.write("one.json", PIPELINE)
        self.write("two.json", [PIPELINE, {**PIPELINE, "step_ms": 100}])
        seen = self.succeed("sim", "one.json", "two.json", "--json").json()
        self.assertEqual([one["verdict"]["limit"] for one in seen],
                         ["data", "data", "compute"])
        self.write("list.json", [PIPELINE])
        self.assertEqual(len(self.succeed("sim", "list.json",
                                          "--json").json()), 1)

    def test_shows_people_a_table(self):
        text = self.succeed("sim", self.write("one.json", PIPELINE)).out
        self.assertIn("limit: data, stage 'read'", text)
        self.assertRegex(text, r"read +2 +3\d\.\d/s")
        self.assertRegex(text, "set read.workers from 2 to 4: .* % faster")

    def test_names_what_is_wrong(self):
        for change, code, words in (
                ({"stages": []}, "settings.value", "no stages"),
                ({"step_ms": -3}, "settings.value", "step_ms"),
                ({"stage": []}, "settings.unknown_key",
                 "did you mean 'stages'?"),
                ({"stages": [{"name": "read", "service_ms": -1}]},
                 "settings.value", "bad.json[1]: stages[0].service_ms")):
            self.write("bad.json", [PIPELINE, {**PIPELINE, **change}])
            self.refused(self.run_it("sim", "bad.json", "--json"), "request",
                         code, words)
        self.refused(self.run_it("sim", "--json"), "request", "cli.arguments",
                     "names no file")
        (self.folder / "text.json").write_text("{")
        self.refused(self.run_it("sim", "text.json", "--json"), "request",
                     "json.syntax", "text.json")
        gone = self.run_it("sim", "nowhere.json", "--json")
        self.assertEqual(gone.code, 2)
        self.assertIn("nowhere.json", gone.out)

    def test_random_pipelines_are_judged_rightly(self):
        done = subprocess.run(
            [sys.executable, ROOT / "bench/verdict_campaign.py",
             "--pipelines", "40", "--seed", "7", "--build",
             pathlib.Path(PROGRAM).parents[1]],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual(seen["limited"]["slowest_stage_named"], 40)
        self.assertEqual(seen["in_order"]["stage_or_order_named"], 40)
        self.assertLess(seen["limited"]["rate_error_p95"], 0.06)
        self.assertLess(seen["limited"]["gain_error_p95"], 0.05)
        self.assertLess(seen["limited"]["parts_off_by_at_most"], 0.01)
        self.assertEqual(seen["compute_bound"]["called_compute"], 40)
        self.assertEqual(seen["compute_bound"]["with_an_action"], 0)


if __name__ == "__main__":
    unittest.main()
