"""Ctrl-C and its kin at any moment: the state is saved, the exit code shows
it, and --resume continues with the very batch that would have come."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from penstock_cli import Case, tree_of

POSTGRES = os.environ.get("PENSTOCK_TEST_POSTGRES", "")


class Interrupts(Case):
    def slow_job(self, **sections):
        """16 steps of 10 ms per epoch on the wall clock."""
        self.good_start(loader={"batch_size": 4, "seed": 3}, **{
            "device": {"kind": "sim", "step_ms": 10}, "train": {"epochs": 100},
            **sections})

    def started(self, *arguments):
        """A training that has taken its first steps."""
        process = self.start("train", "job.json", "--json", *arguments)
        steps = self.folder / "runs" / "latest" / "steps.jsonl"
        self.wait_for(steps.exists, "the first steps")
        return process

    def state(self, run):
        return json.loads((self.folder / run / "state.json").read_text())

    def steps(self, run):
        """(epoch, step) of every line of steps.jsonl."""
        text = (self.folder / run / "steps.jsonl").read_text()
        return [(line["epoch"], line["step"])
                for line in map(json.loads, text.splitlines())]

    def test_sigint_is_130_and_sigterm_143_with_the_state_saved(self):
        self.slow_job()
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number=number):
                answer = self.end_by(self.started(), number)
                self.assertEqual(answer.code, code, answer.err)
                report = answer.json()
                self.assertTrue(report["interrupted"])
                state = self.state(report["run"])
                steps = self.steps(report["run"])
                self.assertEqual(state["steps_taken"], report["steps"])
                self.assertEqual(len(steps), report["steps"])
                epoch, step = steps[-1]
                self.assertEqual((state["epoch"], state["step"]),
                                 (epoch, step + 1) if step < 15
                                 else (epoch + 1, 0))
                saved = self.folder / report["run"] / "report.json"
                self.assertEqual(json.loads(saved.read_text()), report)
                (self.folder / "runs" / "latest").unlink()

    def test_resume_takes_the_steps_that_were_left(self):
        self.slow_job(train={"epochs": 4})
        first = self.end_by(self.started()).json()
        rest = self.succeed("train", "--resume", first["run"], "--json").json()
        self.assertFalse(rest["interrupted"])
        self.assertNotEqual(rest["run"], first["run"])
        both = self.steps(first["run"]) + self.steps(rest["run"])
        self.assertEqual(both, [(e, s) for e in range(4) for s in range(16)])
        run = json.loads((self.folder / rest["run"] / "run.json").read_text())
        self.assertEqual(run["resumed_from"], first["run"])
        self.assertEqual(rest["epochs"][0]["epoch"], both[first["steps"]][0])
        folders = set((self.folder / "runs").iterdir())
        again = self.succeed("train", "--resume", rest["run"], "--json")
        self.assertIn("finished: the run took all 64 steps", again.err)
        self.assertEqual(again.json(), rest)
        self.assertEqual(set((self.folder / "runs").iterdir()), folders)

    def test_the_first_batches_after_a_pause_in_the_prepare_phase(self):
        self.database(self.rows(60000))
        self.write_job(self.job(source={
            "kind": "sqlite", "path": "d.sqlite", "table": "t",
            "round_trip_ms": 150}))
        process = self.start("train", "job.json", "--json")
        runs = self.newest_run("state.json")
        answer = self.end_by(process)
        self.assertEqual(answer.code, 130, answer.err)
        report = answer.json()
        self.assertEqual((report["steps"], report["dataset"], report["au"]),
                         (0, None, None))
        self.assertFalse((runs / "steps.jsonl").exists())
        rest = self.succeed("train", "--resume", report["run"], "--json",
                            "--set", "train.max_steps=3",
                            "--set", "source.round_trip_ms=0").json()
        self.assertEqual(rest["steps"], 3)
        self.assertEqual(self.steps(rest["run"])[0], (0, 0))

    def test_a_query_per_sample_is_interrupted_between_two_queries(self):
        self.slow_job(source={"kind": "sqlite", "path": "d.sqlite",
                              "table": "t", "round_trip_ms": 50},
                      train={"max_steps": 1000})
        process = self.start("train", "job.json", "--json", "--set",
                             "loader.read=per_sample", "--set",
                             "loader.batch_size=64")
        self.newest_run("statistics.json")
        time.sleep(0.3)
        asked = time.monotonic()
        answer = self.end_by(process)
        self.assertEqual(answer.code, 130, answer.err)
        self.assertEqual(answer.json()["steps"], 0)
        self.assertLess(time.monotonic() - asked, 2, "a batch takes 3.2 s")

    def end_in_silence(self, *arguments):
        """Interrupts a training whose database has not said anything for a
        while; it must end at once and in order."""
        process = self.start("train", "job.json", "--json", *arguments)
        self.newest_run("state.json")
        time.sleep(0.5)
        asked = time.monotonic()
        answer = self.end_by(process)
        self.assertLess(time.monotonic() - asked, 5)
        self.assertEqual(answer.code, 130, answer.out + answer.err)
        report = answer.json()
        self.assertTrue(report["interrupted"])
        self.assertEqual(report["steps"], 0)
        self.assertEqual(self.state(report["run"])["steps_taken"], 0)

    def test_sqlite_is_interrupted_where_it_gives_no_row_for_minutes(self):
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute(
                "CREATE VIEW t AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL "
                "SELECT id + 1 FROM n WHERE id < 4000000000) SELECT id, id * "
                "1.0 AS y FROM n")
        base.close()
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite", "table": "t",
                    "key": "id", "where": "id % 1500000000 = 1"},
            fields={"y": {"columns": ["y"]}}))
        self.end_in_silence()

    @unittest.skipUnless(POSTGRES, "there is no PostgreSQL server")
    def test_postgresql_is_interrupted_where_it_waits_for_a_lock(self):
        table = f"penstock_stop_{os.getpid()}"
        psql = [os.environ["PENSTOCK_TEST_POSTGRES_BIN"] + "/psql", "-qX",
                POSTGRES]
        subprocess.run(
            [*psql, "-c", f"CREATE TABLE {table} AS SELECT i AS id, i * 1.0 "
             "AS y FROM generate_series(1, 100) i"], check=True)
        self.addCleanup(lambda: subprocess.run(
            [*psql, "-c", f"DROP TABLE {table}"], check=True))
        self.write_job(self.job(
            source={"kind": "postgres", "uri": POSTGRES, "table": table,
                    "key": "id"},
            fields={"y": {"columns": ["y"]}}))
        with subprocess.Popen(psql, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:
            holder.stdin.write(f"BEGIN; LOCK TABLE {table};\n\\echo locked\n")
            holder.stdin.flush()
            self.assertEqual(holder.stdout.readline(), "locked\n")
            self.end_in_silence()
            holder.stdin.close()

    def test_the_second_signal_ends_at_once(self):
        self.slow_job(device={"kind": "sim", "step_ms": 60000})
        process = self.started()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the first one waits for the step")
        answer = self.end_by(process)
        self.assertEqual((answer.code, answer.out), (130, ""))

    def test_kill_at_any_moment_needs_no_manual_step(self):
        self.slow_job(train={"epochs": 2})
        for moment in ("run.json", "state.json", "statistics.json",
                       "steps.jsonl"):
            with self.subTest(moment=moment):
                process = self.start("train", "job.json", "--json")
                folder = self.newest_run(moment)
                answer = self.end_by(process, signal.SIGKILL)
                self.assertEqual(answer.code, -signal.SIGKILL)
                for path in folder.glob("*.json"):
                    json.loads(path.read_text())
                for line in (folder / "steps.jsonl").read_text().splitlines() \
                        if (folder / "steps.jsonl").exists() else ():
                    json.loads(line)
                if (folder / "state.json").exists():
                    rest = self.succeed("train", "--resume", folder,
                                        "--json").json()
                    self.assertEqual(rest["steps"], 32)
                shutil.rmtree(self.folder / "runs")

    def test_killed_at_once_a_resumed_run_leaves_latest_as_good_as_it_was(self):
        self.slow_job(train={"epochs": 4})
        first = self.end_by(self.started()).json()
        runs = self.folder / "runs"
        for _ in range(10):
            before = set(runs.iterdir())
            process = self.start("train", "--resume", "runs/latest", "--json")
            self.wait_for(lambda: set(runs.iterdir()) - before, "a folder")
            self.end_by(process, signal.SIGKILL)
        rest = self.succeed("train", "--resume", "runs/latest",
                            "--json").json()
        self.assertEqual(rest["steps"], 64 - first["steps"])

    def test_batch_ends_after_whole_lines_and_whole_files(self):
        self.slow_job(source={"kind": "sqlite", "path": "d.sqlite",
                              "table": "t", "round_trip_ms": 20})
        process = self.start("batch", "job.json", "--steps", "0:1000",
                             "--out", "out", "--set", "loader.cache=none",
                             "--set", "loader.batch_size=1",
                             "--set", "loader.workers=0")
        out = self.folder / "out"
        self.wait_for(lambda: out.exists() and len(list(out.iterdir())) > 2,
                      "some batches")
        answer = self.end_by(process)
        self.assertEqual(answer.code, 130, answer.err)
        self.assertLess(len(answer.lines()), 64)
        self.assertEqual(
            sorted(path.name for path in out.iterdir()),
            [f"epoch-000000-step-{i:09}.safetensors"
             for i in range(len(answer.lines()))])

    def endless_demo(self, *arguments):
        """A demo that has written rows into demo.sqlite, and has more to do."""
        process = self.start("demo", "positions", "--rows", "300000000",
                             "--to", "sqlite:demo.sqlite", *arguments)
        base = self.folder / "demo.sqlite"
        self.wait_for(lambda: base.exists() and base.stat().st_size > 4 << 20,
                      "the first rows")
        self.assertTrue((self.folder / "demo.sqlite-journal").exists())
        return process

    def test_demo_leaves_the_old_table_and_no_journal(self):
        self.succeed("demo", "positions", "--rows", "50", "--to",
                     "sqlite:demo.sqlite")
        before = tree_of(self.folder)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number=number):
                answer = self.end_by(self.endless_demo("--replace"), number)
                self.assertEqual((answer.code, answer.out), (code, ""))
                self.assertEqual(tree_of(self.folder), before)

    def test_demo_leaves_no_new_file(self):
        answer = self.end_by(self.endless_demo("--json"))
        self.assertEqual((answer.code, answer.json()["rows"]), (130, 0))
        self.assertEqual(tree_of(self.folder), {})

    def test_demo_that_is_killed_is_mended_by_the_command_of_the_error(self):
        self.succeed("demo", "positions", "--rows", "50", "--to",
                     "sqlite:demo.sqlite")
        self.end_by(self.endless_demo("--replace"), signal.SIGKILL)
        source = "sqlite:demo.sqlite#measurements"
        error = self.refuse("source", "sqlite.unfinished_write", "demo.sqlite",
                            arguments=["peek", source])
        command = error["next"].partition(": ")[2]
        self.assertEqual(command, "sqlite3 'demo.sqlite' 'PRAGMA user_version'")
        with sqlite3.connect(self.folder / "demo.sqlite") as base:
            base.execute("PRAGMA user_version").fetchall()
        base.close()
        self.assertEqual(self.succeed("peek", source,
                                      "--json").json()["rows"], 50)


class Resuming(Case):
    """What cannot be gone on with is refused, and says why."""

    def setUp(self):
        super().setUp()
        self.good_start(train={"epochs": 2, "max_steps": 3})
        self.run_folder = self.train()["run"]

    def refuse_to_resume(self, code, *names, sets=()):
        self.refuse("request", code, *names,
                    sets=["train.max_steps=9", *sets],
                    arguments=["train", "--resume", self.run_folder])

    def spoil(self, name, text):
        (self.folder / self.run_folder / name).write_text(text)

    def test_a_folder_that_is_no_run(self):
        self.run_folder = "nowhere"
        self.refuse_to_resume("resume.no_run", "nowhere/run.json")

    def test_a_damaged_run_file(self):
        self.spoil("run.json", '{"job": ')
        self.refuse_to_resume("resume.no_run", "run.json")
        self.spoil("run.json", '{"version": 1}')
        self.refuse_to_resume("resume.no_run", "run.json", "no key")

    def test_a_damaged_or_missing_state(self):
        for text in ("", "[]", "{}", '{"epoch": -1}', '{"epoch": 1e300}'):
            self.spoil("state.json", text)
            self.refuse_to_resume("resume.no_state", "state.json")
        (self.folder / self.run_folder / "state.json").unlink()
        self.refuse_to_resume("resume.no_state", "state.json", "No such file")

    def test_a_step_beyond_the_epoch(self):
        state = json.loads(
            (self.folder / self.run_folder / "state.json").read_text())
        self.spoil("state.json", json.dumps({**state, "step": 400}))
        self.refuse_to_resume("resume.no_state", "step 400", "4")

    def test_other_rows(self):
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("DELETE FROM t WHERE id = 9")
        base.close()
        self.refuse_to_resume("resume.other_data", "fingerprint")

    def test_another_order(self):
        for change in ("loader.seed=4", "loader.batch_size=8",
                       "loader.shuffle=false", "loader.tail=pad",
                       "split.train=0.9"):
            self.refuse_to_resume("resume.other_order", change.split("=")[0],
                                  sets=[change])
        self.refuse_to_resume(
            "resume.other_order", "page",
            sets=['loader.order={"paged": {"page": 16, "window": 4}}'])

    def test_other_fields(self):
        job = json.loads((self.folder / "job.json").read_text())
        fields = job["fields"]
        for change, name in (
                ({"y": {"columns": ["y"], "standardize": True}},
                 "fields.y.standardize"),
                ({"heard": {"json_set": {**fields["heard"]["json_set"],
                                         "max": 2}, "standardize": True}},
                 "fields.heard.json_set.max")):
            self.refuse_to_resume(
                "resume.other_fields", name,
                sets=["fields=" + json.dumps({**fields, **change})])
        turned = dict(reversed(fields.items()))
        self.refuse_to_resume("resume.other_fields", '["y", "heard"]',
                              sets=["fields=" + json.dumps(turned)])

    def test_what_changes_time_alone_may_change(self):
        rest = self.succeed("train", "--resume", self.run_folder, "--json",
                            "--set", "train.max_steps=7", "--set",
                            "loader.workers=0", "--set", "loader.cache=none",
                            "--set", "device=cpu").json()
        self.assertEqual(rest["steps"], 4)


if __name__ == "__main__":
    unittest.main()
