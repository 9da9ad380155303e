"""What `penstock explain` and report.html show of real runs on the simulated
accelerator, and of folders that are no finished run."""
import html.parser
import json
import signal
import unittest

from penstock_cli import Case

VOID = {"meta"}
PARTS = {"compute", "wait_data", "wait_copy", "host", "sync"}


class Page(html.parser.HTMLParser):
    """Reads a page and notes what is wrong with it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong = [], []
        self.numbers, self.references, self.words = [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.wrong.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        attributes = dict(attrs)
        if tag == "data":
            self.numbers.append(float(attributes["value"]))
        self.references += [value for key, value in attrs
                            if key in ("src", "href", "srcset", "action")]

    def handle_startendtag(self, tag, attrs):
        pass  # an element of a drawing

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def numbers_in(json_value):
    """Every number of a document."""
    if isinstance(json_value, dict):
        json_value = list(json_value.values())
    if isinstance(json_value, list):
        return {n for value in json_value for n in numbers_in(value)}
    is_number = isinstance(json_value, (int, float)) and not isinstance(
        json_value, bool)
    return {float(json_value)} if is_number else set()


class Explained(Case):
    """Runs of one second and more, so that they have a time line."""

    def wall_job(self, **sections):
        loader = {"batch_size": 16, "seed": 3, **sections.pop("loader", {})}
        device = {"kind": "sim", **sections.pop("device")}
        source = {"kind": "sqlite", "path": "d.sqlite", "table": "t",
                  **sections.pop("source", {})}
        return self.job(loader=loader, device=device, source=source,
                        **sections)

    def starved(self, **sections):
        """One stage, the reader, waits 40 ms for every batch of 16 rows."""
        return self.wall_job(
            source={"round_trip_ms": 40}, device={"step_ms": 10},
            loader={"cache": "none", "workers": 1, "readers": 1},
            train={"epochs": 10}, **sections)

    def copy_bound(self):
        """Batches of 512 rows at a megabyte per second, so that their copy
        takes longer than a busy machine keeps the loader waiting."""
        return self.wall_job(
            device={"step_ms": 5, "copy_gb_s": 0.001},
            loader={"cache": "ram", "batch_size": 512},
            train={"epochs": 60})

    def compute_bound(self):
        return self.wall_job(device={"step_ms": 20}, train={"epochs": 20})

    def run_job(self, document, rows=64):
        if not (self.folder / "d.sqlite").exists():
            self.database(self.rows(rows))
        self.write_job(document)
        return self.train()

    def explain(self, run="runs/latest", *more):
        return self.succeed("explain", run, *more).out

    def page_of(self, run):
        text = (self.folder / run / "report.html").read_text()
        page = Page(text)
        self.assertEqual(page.wrong, [])
        self.assertEqual(page.references, [])
        self.assertNotRegex(text, r"https?:|<script|@import|url\(")
        return page

    def check_page(self, report):
        """Every number of the page that is said to be one of the report is."""
        page = self.page_of(report["run"])
        self.assertGreater(len(page.numbers), 20)
        self.assertEqual(set(page.numbers) - numbers_in(report), set())
        for number in ("au", "samples_per_s", "steps", "samples"):
            self.assertIn(float(report[number]), page.numbers)
        words = " ".join(page.words)
        self.assertIn(report["verdict"]["cause"], words)
        for action in report["verdict"]["actions"]:
            self.assertIn(action["knob"], words)
        return words

    def check_text(self, text, report):
        cause = report["verdict"]["cause"].split()[0]
        self.assertIn(cause, text)
        self.assertIn("where the time went", text)
        self.assertIn("longest steps", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        share = f"{100 * report['au']:.1f} %"
        self.assertIn(f"AU {share}", text)
        self.assertIn(f"computes {share}", text)

    def check_timeline(self, report):
        timeline = report["timeline"]
        self.assertEqual(len({len(c) for c in timeline.values()}), 1)
        self.assertLessEqual(len(timeline["seconds"]), 512)
        self.assertEqual(timeline["seconds"], sorted(timeline["seconds"]))
        # All steps but the first, which only starts the clock.
        self.assertEqual(sum(timeline["steps"]), report["steps"] - 1)
        wall = sum(sum(timeline[part]) for part in PARTS)
        for part in PARTS:
            self.assertAlmostEqual(sum(timeline[part]) / wall,
                                   report["parts"][part], places=3)
        self.assertNotIn("temperature_c", timeline)
        self.assertGreater(min(timeline["resident_bytes"]), 0)

    def check_worst(self, report):
        worst = report["worst_steps"]
        self.assertEqual(len(worst), 10)
        self.assertEqual([s["ms"] for s in worst],
                         sorted((s["ms"] for s in worst), reverse=True))
        for step in worst[:3]:
            self.assertAlmostEqual(sum(step["parts"].values()), 1, places=6)
            [batch] = self.batches("--epoch", step["epoch"], "--steps",
                                   f"{step['step']}:{step['step'] + 1}")
            self.assertEqual(step["samples"], batch["keys"][:5])

    def check_all(self, report):
        self.check_timeline(report)
        self.check_worst(report)
        self.check_text(self.explain(), report)
        return self.check_page(report)


class Ended(Explained):
    def test_a_run_that_waits_for_one_slow_stage(self):
        report = self.run_job(self.starved())
        self.assertEqual(report["verdict"]["limit"], "data")
        self.assertEqual(report["verdict"]["stage"], "read")
        text = self.explain()
        self.assertRegex(text, r"\n\nInput-bound: ")
        self.assertRegex(text, r"\n  -> Set loader\.\w+ from .*: predicted")
        self.assertRegex(text, r"\nread .* <\n")
        self.assertIn("Input-bound: ", self.check_all(report))

    def test_a_run_that_waits_for_the_copy(self):
        report = self.run_job(self.copy_bound(), rows=1024)
        self.assertEqual(report["verdict"]["limit"], "copy")
        self.assertRegex(self.explain(), r"\n\nCopy-bound: ")
        self.assertIn("Copy-bound: ", self.check_all(report))

    def test_a_run_that_computes(self):
        report = self.run_job(self.compute_bound())
        self.assertEqual(report["verdict"]["limit"], "compute")
        text = self.explain()
        self.assertRegex(text, r"\n\nCompute-bound: ")
        self.assertNotIn("->", text)
        self.assertIn("Compute-bound: ", self.check_all(report))

    def test_an_epoch_has_what_it_used(self):
        report = self.run_job(self.starved())
        for epoch in report["epochs"]:
            self.assertLess(epoch["use"]["cpus"]["mean"], 8)
            self.assertLessEqual(epoch["use"]["cpus"]["mean"],
                                 epoch["use"]["cpus"]["max"])
            self.assertNotIn("gpu_utilisation", epoch["use"])
        self.assertIn("resident_bytes", report["epochs"][0]["use"])

    def test_the_page_can_be_made_again(self):
        report = self.run_job(self.compute_bound())
        there = (self.folder / report["run"] / "report.html").read_text()
        for run in ("runs/latest", report["run"],
                    report["run"] + "/report.json"):
            self.explain(run, "--html", "again.html")
            self.assertEqual((self.folder / "again.html").read_text(), there)

    def test_a_page_that_cannot_be_written_is_refused(self):
        self.good_start()
        self.train()
        self.refused(self.run_it("explain", "runs/latest", "--html",
                                 "job.json/page.html", "--json"),
                     "request", "file.write", "job.json/page.html")

    def test_json_is_one_document(self):
        report = self.run_job(self.compute_bound())
        answer = self.succeed("explain", "runs/latest", "--json")
        self.assertEqual(answer.json(), {"notes": [], "report": report})

    def test_two_runs_are_compared(self):
        first = self.run_job(self.starved())
        action = first["verdict"]["actions"][0]
        second = self.succeed(
            "train", "job.json", "--json", "--set",
            f"{action['knob']}={json.dumps(action['to'])}").json()
        compared = self.succeed("explain", first["run"], second["run"],
                                "--json").json()["comparison"]
        gain = second["samples_per_s"] / first["samples_per_s"] - 1
        self.assertAlmostEqual(compared["gain"], gain, places=9)
        self.assertEqual([entry["key"] for entry in compared["settings"]],
                         [action["knob"]])
        self.assertIs(compared["advice"]["followed"], True)
        self.assertEqual(compared["advice"]["predicted_gain"],
                         action["predicted_gain"])
        self.assertEqual(compared["advice"]["measured_gain"],
                         compared["gain"])
        text = self.explain(first["run"], second["run"])
        self.assertRegex(" ".join(text.split()), "predicted .* measured")
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.refused(self.run_it("explain", first["run"], second["run"],
                                 "--html", "x.html", "--json"),
                     "request", "cli.arguments", "--html")

    def test_what_the_user_wrote_is_text(self):
        evil = "</style><script>alert(1)</script>\" onload='x'"
        self.database([(evil + str(i), i / 2) for i in range(64)],
                      declared="id TEXT PRIMARY KEY, y REAL")
        document = self.wall_job(device={"step_ms": 1}, fields={
            "<b>y</b>": {"columns": ["y"]}}, output={"dir": "<i>runs"})
        self.write_job(document)
        report = self.train()
        words = " ".join(self.page_of(report["run"]).words)
        self.assertIn(evil, words)
        self.assertIn("<b>y</b>", words)

    def test_no_secret_is_shown(self):
        self.write_job(self.job(source={
            "kind": "postgres", "table": "t",
            "uri": "postgresql://user:hunter2@127.0.0.1:1/base"}))
        self.assertNotEqual(self.run_it("train", "job.json").code, 0)
        if not (self.folder / "runs/latest/run.json").exists():
            self.skipTest("the part for PostgreSQL is not there")
        shown = self.explain("runs/latest", "--html", "page.html")
        shown += self.explain("runs/latest", "--json")
        shown += (self.folder / "page.html").read_text()
        self.assertIn("127.0.0.1", shown)
        self.assertNotIn("hunter2", shown)


class NotFinished(Explained):
    def test_an_interrupted_run_has_its_page(self):
        self.database(self.rows())
        self.write_job(self.starved(output={"dir": "runs"}))
        process = self.start("train", "job.json")
        self.wait_for((self.folder / "runs/latest/steps.jsonl").exists,
                      "the first step")
        answer = self.end_by(process)
        self.assertEqual(answer.code, 128 + signal.SIGINT)
        text = self.explain()
        self.assertIn("note: the run was interrupted", text)
        self.assertIn("interrupted", " ".join(self.page_of("runs/latest").words))

    def test_a_run_that_goes_on_or_was_killed_is_explained_as_far_as_it_goes(
            self):
        self.database(self.rows())
        self.write_job(self.starved())
        process = self.start("train", "job.json")
        steps = self.folder / "runs/latest/steps.jsonl"
        self.wait_for(lambda: steps.exists() and steps.read_text(),
                      "the first step")
        going_on = self.explain()
        self.end_by(process, signal.SIGKILL)
        for text in (going_on, self.explain()):
            self.assertIn("note: the run has no report.json: it is still running, "
                          "or was killed", text)
            self.assertIn("penstock train --resume runs/",
                          " ".join(text.split()))
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        with open(steps, "a", encoding="utf-8") as file:
            file.write('{"epoch": 0, "st')
        answer = self.succeed("explain", "runs/latest", "--json").json()
        self.assertEqual(answer["report"]["steps"],
                         len(steps.read_text().splitlines()) - 1)
        self.explain("runs/latest", "--html", "page.html")
        self.assertEqual(Page((self.folder / "page.html").read_text()).wrong,
                         [])

    def test_a_run_of_a_newer_version(self):
        self.good_start()
        run = self.folder / self.train()["run"]
        report = json.loads((run / "report.json").read_text())
        report.update(version=99, stages={"all": "new"}, epochs=7)
        (run / "report.json").write_text(json.dumps(report))
        text = self.explain()
        self.assertIn("newer Penstock (version 99", text)
        self.assertIn("4 steps", text)

    def test_what_is_no_run_is_refused(self):
        self.good_start()
        for path in ("nothing", ".", "job.json"):
            self.refused(self.run_it("explain", path, "--json"), "request",
                         "explain.no_run", path)
        self.train()
        self.refused(self.run_it("explain", "runs", "--json"), "request",
                     "explain.no_run", "penstock explain runs/latest")

    def test_a_run_of_one_step_has_no_rates(self):
        self.good_start(train={"max_steps": 1})
        report = self.train()
        text = self.explain()
        self.assertIn("1 step, n/a samples/s, AU n/a", text)
        self.assertEqual(report["worst_steps"], [])
        self.page_of(report["run"])


if __name__ == "__main__":
    unittest.main()
