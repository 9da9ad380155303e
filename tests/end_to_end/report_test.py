"""What a run leaves: the folder, the keys of its report, and numbers that
hold together."""
import json
import re
import unittest

from penstock_cli import Case

KEYS = {"run", "au", "parts", "steps", "samples", "samples_per_s",
        "first_batch_ms", "epochs", "verdict", "plan", "dataset", "stages",
        "machine", "settings"}
LIMITS = {"compute", "data", "copy", "order", "host", "unknown"}


class Report(Case):
    def test_has_every_key_that_was_promised(self):
        self.good_start(train={"epochs": 2})
        report = self.train()
        self.assertLessEqual(KEYS, set(report))
        self.assertEqual([epoch["epoch"] for epoch in report["epochs"]], [0, 1])
        for epoch in report["epochs"]:
            self.assertLessEqual({"epoch", "seconds", "au", "train_loss",
                                  "val_loss"}, set(epoch))
        self.assertEqual(set(report["verdict"]), {"limit", "stage", "applied", "cause",
                                                  "because", "actions",
                                                  "no_action"})
        self.assertIn(report["verdict"]["limit"], LIMITS)
        self.assertLessEqual({"rows", "train", "val", "left_out",
                              "fingerprint"}, set(report["dataset"]))
        self.assertTrue(report["stages"])
        for stage in report["stages"]:
            self.assertLessEqual(
                {"name", "workers", "rate", "busy", "cpu", "blocked_get",
                 "blocked_put", "bytes"}, set(stage))
        self.assertRegex(report["dataset"]["fingerprint"], "^[0-9a-f]{64}$")

    def test_tells_how_the_rows_are_prepared_and_why(self):
        self.good_start()
        expected = {"form": "scanned",
                    "reason": "samples are numbered by their keys"}
        line = ("the rows are scanned before the first batch: "
                "samples are numbered by their keys\n")
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        self.assertEqual(plan["preparation"], expected)
        self.assertIn(line, self.succeed("train", "job.json", "--plan").out)
        self.assertEqual(self.train()["dataset"]["preparation"], expected)
        told = self.succeed("explain", "runs/latest").out
        self.assertIn(line, told)

    def test_counts_what_was_done(self):
        self.good_start(split={"train": 0.5, "val": 0.25, "seed": 1},
                        train={"epochs": 3},
                        loader={"batch_size": 7, "tail": "exact"})
        report = self.train()
        train = report["dataset"]["train"]
        self.assertEqual(report["samples"], 3 * train)
        self.assertEqual(report["steps"], 3 * -(-train // 7))
        self.assertEqual([e["samples"] for e in report["epochs"]], [train] * 3)
        self.assertGreater(report["dataset"]["val"], 0)
        self.assertLess(train + report["dataset"]["val"], 64)
        short = self.train("--set", "train.max_steps=4")
        self.assertEqual(short["steps"], 4)

    def test_shows_each_tier_with_its_bytes_and_the_chosen_one(self):
        self.good_start()
        for wish, device, tier in (
                ("auto", "sim", "device"), ("auto", "cpu", "ram"),
                ("device", "cpu", "device"), ("ram", "sim", "ram"),
                ("none", "sim", "none")):
            plan = self.train("--set", "loader.cache=" + wish, "--set",
                              "device=" + device)["plan"]
            self.assertEqual(plan["tier"], tier, (wish, device))
            self.assertEqual([t["tier"] for t in plan["tiers"] if t["chosen"]],
                             [tier])
            for line in plan["tiers"]:
                self.assertGreater(line["bytes"], 0)
                self.assertTrue(line["why"])
        # 3 elements of 2 keys, 3 of mask, 1 column, float32; in eights
        [ram] = [t for t in plan["tiers"] if t["tier"] == "ram"]
        self.assertGreaterEqual(ram["bytes"], 64 * 40)

    def test_shows_the_machine_and_the_settings_with_their_defaults(self):
        self.good_start()
        report = self.train("--set", "loader.workers=2")
        self.assertGreater(report["machine"]["cpus"], 0)
        self.assertGreater(report["machine"]["memory_bytes"], 0)
        self.assertTrue(report["machine"]["memory_from"])
        settings = report["settings"]
        self.assertEqual(settings["loader"], {
            "batch_size": 16, "seed": 3, "shuffle": True, "tune": "auto", "workers": 2,
            "prefetch": 2, "prepare": "auto", "readers": 4, "cache": "auto", "on_bad": "stop", "read": "batch", "tail": "drop"})
        self.assertEqual(settings["train"]["epochs"], 1)
        self.assertEqual(settings["output"]["dir"], "runs")
        self.assertEqual(settings["device_used"], "sim")

    def test_shows_no_gpu_where_the_device_is_none(self):
        self.good_start()
        for device in ("sim", "cpu"):
            report = self.train("--set", "device=" + device)
            self.assertNotIn("gpu", report["machine"], device)
            run = json.loads(
                (self.folder / report["run"] / "run.json").read_text())
            self.assertNotIn("gpu", run["machine"], device)


class Utilisation(Case):
    def shares(self, report):
        parts = report["parts"]
        self.assertEqual(set(parts), {"compute", "wait_data", "wait_copy",
                                      "host", "sync"})
        self.assertAlmostEqual(sum(parts.values()), 1, places=9)
        for name, share in parts.items():
            self.assertGreaterEqual(share, 0, name)
        return parts

    def test_on_virtual_time_it_is_steps_times_step_time_over_wall(self):
        for step_ms, gb_s, cache in ((5, 12, "device"), (0.02, 0.001, "ram"),
                                     (0.05, 0.0015, "ram"),
                                     ({"mean": 2, "deviation": 0}, 12, "none")):
            with self.subTest(step_ms=step_ms, cache=cache):
                for path in self.folder.glob("d.sqlite"):
                    path.unlink()
                self.good_start(
                    device={"kind": "sim", "step_ms": step_ms,
                            "clock": "virtual", "copy_gb_s": gb_s},
                    # On one thread: a wait moves virtual time for all threads.
                    loader={"batch_size": 16, "cache": cache, "workers": 0},
                    train={"epochs": 5})
                report = self.train()
                parts = self.shares(report)
                step_s = 1e-3 * (step_ms if isinstance(step_ms, float | int)
                                 else step_ms["mean"])
                wall = sum(epoch["seconds"] for epoch in report["epochs"])
                window = report["steps"] - 1
                self.assertAlmostEqual(report["au"], window * step_s / wall,
                                       places=5)
                self.assertAlmostEqual(report["au"], parts["compute"],
                                       places=9)
                self.assertAlmostEqual(
                    report["samples_per_s"] * wall, 16 * window, places=3)

    def test_a_slow_copy_is_seen_and_named(self):
        self.good_start(device={"kind": "sim", "step_ms": 0.5,
                                "copy_gb_s": 0.001},
                        fields={"heard": {"json_set": {
                            "column": "heard", "keys": ["a", "b"],
                            "max": 40}}},
                        loader={"batch_size": 64, "cache": "ram"},
                        train={"epochs": 20})
        report = self.train()
        self.assertLess(report["au"], 0.5)
        self.assertGreater(self.shares(report)["wait_copy"], 0.4)
        self.assertEqual(report["verdict"]["limit"], "copy")
        [action] = report["verdict"]["actions"]
        self.assertEqual((action["knob"], action["to"]),
                         ("loader.cache", "device"))
        self.assertGreater(action["predicted_gain"], 0.02)

    def test_on_wall_time_a_busy_device_is_called_so(self):
        self.good_start(device={"kind": "sim", "step_ms": 10},
                        train={"epochs": 5})
        report = self.train()
        self.shares(report)
        wall = sum(epoch["seconds"] for epoch in report["epochs"])
        self.assertAlmostEqual(report["au"], 19 * 0.010 / wall, delta=0.01)

    def test_a_query_per_sample_starves_it_and_the_warning_says_what_to_do(
            self):
        self.good_start(
            device={"kind": "sim", "step_ms": 2}, train={"epochs": 2},
            source={"kind": "sqlite", "path": "d.sqlite", "table": "t",
                    "round_trip_ms": 1}, loader={"read": "per_sample",
                                                 "batch_size": 16})
        answer = self.succeed("train", "job.json", "--json")
        report = answer.json()
        self.assertLess(report["au"], 0.3)
        verdict = report["verdict"]
        self.assertEqual((verdict["limit"], verdict["stage"]),
                         ("data", "read per sample"))
        best = verdict["actions"][0]
        self.assertEqual((best["knob"], best["from"], best["to"]),
                         ("loader.read", "per_sample", "batch"))
        self.assertGreater(best["predicted_gain"], 1)
        [warning] = [line for line in answer.err.splitlines()
                     if line.startswith("warning: ")]
        self.assertIn("once per sample", warning)
        self.assertIn('set loader.read to "batch"', warning)
        [read] = [s for s in report["stages"] if s["name"] == "read per sample"]
        self.assertEqual((read["statements"], read["rows"]), (128, 128))

    def test_is_unknown_where_steps_take_no_time(self):
        self.good_start(device="cpu", train={"epochs": 3})
        report = self.train()
        self.assertIsNone(report["au"])
        self.assertEqual([e["au"] for e in report["epochs"]], [None] * 3)
        self.assertEqual(self.shares(report)["compute"], 0)
        self.assertEqual(report["verdict"]["limit"], "unknown")
        self.assertEqual(report["verdict"]["actions"], [])
        self.assertGreater(report["samples_per_s"], 0)

    def test_is_unknown_after_a_single_step(self):
        self.good_start(train={"max_steps": 1})
        report = self.train()
        self.assertEqual((report["steps"], report["au"],
                          report["samples_per_s"]), (1, None, None))
        self.assertGreater(report["first_batch_ms"], 0)


class RunFolder(Case):
    def test_is_named_by_time_and_linked_as_the_latest(self):
        self.good_start()
        names = []
        for _ in range(3):
            run = self.train()["run"]
            self.assertTrue(re.fullmatch(r"runs/\d{8}T\d{9}Z-[0-9a-f]{6}", run),
                            run)
            names.append(run.removeprefix("runs/"))
            latest = self.folder / "runs" / "latest"
            self.assertEqual(str(latest.readlink()), names[-1])
        self.assertEqual(names, sorted(set(names)))
        self.assertEqual(len(list((self.folder / "runs").iterdir())), 4)

    def test_holds_the_same_report_that_was_printed(self):
        self.good_start()
        answer = self.succeed("train", "job.json", "--json")
        folder = self.folder / answer.json()["run"]
        self.assertEqual((folder / "report.json").read_text(), answer.out)
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"run.json", "state.json", "statistics.json",
                          "steps.jsonl", "report.json", "report.html"})

    def test_of_a_run_that_could_not_begin_there_is_none(self):
        self.write_job()  # there is no database
        self.assertEqual(self.run_it("train", "job.json").code, 3)
        self.assertFalse((self.folder / "runs").exists())

    def test_holds_run_json(self):
        self.good_start()
        folder = self.folder / self.train()["run"]
        run = json.loads((folder / "run.json").read_text())
        self.assertLessEqual({"started", "job", "settings", "machine"},
                             set(run))
        self.assertEqual(run["job"], self.job())

    def test_has_one_line_per_step(self):
        self.good_start(train={"epochs": 2},
                        loader={"batch_size": 24, "tail": "exact"})
        run = self.train()["run"]
        text = (self.folder / run / "steps.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([(line["epoch"], line["step"], line["rows"])
                          for line in lines],
                         [(e, s, r) for e in (0, 1)
                          for s, r in ((0, 24), (1, 24), (2, 16))])
        times = [line["seconds"] for line in lines]
        self.assertEqual(times, sorted(times))

    def test_holds_the_statistics_that_were_applied(self):
        self.good_start()
        run = self.train()["run"]
        text = (self.folder / run / "statistics.json").read_text()
        values = [i + j / 4
                  for i in range(64) for j in range(min(3, 1 + i % 4))]
        mean = sum(values) / len(values)
        found = re.search(r'"mean":\s*([-0-9.e+]+)', text)
        self.assertIsNotNone(found, text)
        self.assertAlmostEqual(float(found[1]), mean, places=9)

    def test_lists_rows_that_were_skipped(self):
        good = '[{"a": 1, "b": 2}]'
        self.database([(1, good, 1.0), (9, "nonsense", 1.0),
                       (3, "[{}, 4]", 1.0), (10, good, None),
                       *[(i, good, 2.0) for i in range(20, 40)]])
        self.write_job()
        report = self.train("--set", "source.on_bad=skip")
        self.assertEqual(report["dataset"]["left_out"], 3)
        self.assertEqual(report["dataset"]["rows"], 21)
        lines = [json.loads(line) for line in (
            self.folder / report["run"] / "quarantine.jsonl"
        ).read_text().splitlines()]
        self.assertEqual([(line["key"], line["column"], "byte" in line)
                          for line in lines],
                         [(3, "heard", True), (9, "heard", True),
                          (10, "y", False)])
        for line in lines:
            self.assertTrue(line["why"])


if __name__ == "__main__":
    unittest.main()
