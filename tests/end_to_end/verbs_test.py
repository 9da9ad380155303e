"""The verbs beside train and batch: peek, doctor, demo, quickstart."""
import json
import os
import pty
import signal
import sqlite3
import subprocess
import time
import unittest

from penstock_cli import PATIENCE_S, PROGRAM, Case, run

COLUMNS = ["id", "recorded_at", "session", "receivers", "tx_lat", "tx_lon"]
RECEIVER = ["station", "lat", "lon", "alt_m", "snr_db", "freq_offset_hz",
            "signal_present"]


class Peek(Case):
    def peek(self, uri):
        return self.succeed("peek", uri, "--json").json()

    def test_shows_schema_rows_values_and_rate(self):
        self.database(self.rows())
        seen = self.peek("sqlite:d.sqlite#t")
        self.assertEqual(seen["source"], "t in d.sqlite")
        self.assertEqual(
            [(column["name"], column["type"], column.get("primary_key", False),
              column["nulls"], column["distinct"])
             for column in seen["columns"]],
            [("id", "INTEGER", True, 0, 64), ("heard", "TEXT", False, 0, 64),
             ("y", "REAL", False, 0, 64)])
        self.assertEqual([seen["columns"][0][key] for key in ("min", "max")],
                         [1, 64])
        self.assertEqual((seen["rows"], seen["rows_exact"]), (64, True))
        self.assertGreater(seen["rows_per_s"], 0)
        self.assertEqual(len(seen["first"]), 3)
        self.assertEqual(seen["first"][1]["id"], 2)
        self.assertEqual(seen["first"][1]["y"], 0.5)
        self.assertEqual(json.loads(seen["first"][1]["heard"])[0]["a"], 1)

    def test_a_decimal_is_a_number(self):
        self.database([(i, i / 4, "n/a" if i == 5 else i) for i in range(64)],
                      "id INTEGER PRIMARY KEY, price DECIMAL(9,2), odd NUMERIC")
        seen = self.peek("sqlite:d.sqlite#t")
        self.assertEqual([(column["type"], column["min"], column["max"])
                          for column in seen["columns"]],
                         [("INTEGER", 0, 63), ("DECIMAL(9,2)", 0, 15.75),
                          ("NUMERIC", "0", "n/a")])
        self.assertEqual(seen["first"][1], {"id": 1, "price": .25, "odd": "1"})

    def test_is_a_table_for_people(self):
        self.database(self.rows())
        text = self.succeed("peek", "sqlite:d.sqlite#t").out
        self.assertIn("t in d.sqlite: 64 rows, 3 columns, ", text)
        self.assertRegex(text, r"(?m)^column +type +NULL +distinct +min +max")
        self.assertRegex(text, r"(?m)^id \(key\) +INTEGER +0 % +64 +1 +64 +\S")
        self.assertIn('{"id": 1, ', text)

    def test_needs_no_table_where_there_is_one_alone(self):
        self.database(self.rows())
        self.assertEqual(self.peek("sqlite:d.sqlite")["rows"], 64)

    def test_needs_no_key(self):
        self.database([(1.5, None), (2.5, "b")], "x REAL, y TEXT")
        seen = self.peek("sqlite:d.sqlite#t")
        self.assertEqual([(column["name"], column["type"], column["nulls"])
                          for column in seen["columns"]],
                         [("x", "REAL", 0), ("y", "TEXT", 1)])
        self.assertEqual(seen["rows"], 2)
        self.assertEqual(seen["first"], [{"x": 1.5, "y": None},
                                         {"x": 2.5, "y": "b"}])

    def test_shows_as_many_columns_as_sqlite_takes(self):
        self.database([[None] * 1999 + [2.5]],
                      ", ".join(f"c{i} REAL" for i in range(2000)))
        [row] = self.peek("sqlite:d.sqlite#t")["first"]
        self.assertEqual((row["c0"], row["c1999"]), (None, 2.5))

    def test_needs_no_key_that_can_be_used(self):
        """SQLite's text keys may be NULL, and others of any type."""
        self.database([(None, 1.0), (b"\xff", 2.0)],
                      "id TEXT PRIMARY KEY, y REAL")
        self.assertEqual(self.peek("sqlite:d.sqlite#t")["rows"], 2)

    def test_cuts_long_texts_between_characters(self):
        for start in ("", "a", "ab", "abc"):
            path = self.folder / "long.sqlite"
            path.unlink(missing_ok=True)
            self.database([(1, start + "\U0001f4fb" * 100, None)],
                          name="long.sqlite")
            [row] = self.peek("sqlite:long.sqlite#t")["first"]
            self.assertRegex(row["heard"], "^a?b?c?\U0001f4fb{49,50}[.]{3}$")
            self.assertIsNone(row["y"])

    def test_shows_bytes_that_are_no_text_as_valid_json(self):
        self.database([(1, b"\xff\x00\xfe", 1.0)])
        [row] = self.peek("sqlite:d.sqlite#t")["first"]
        self.assertIn("\ufffd", row["heard"])

    def test_an_empty_table(self):
        self.database([])
        seen = self.peek("sqlite:d.sqlite#t")
        self.assertEqual((seen["rows"], seen["first"]), (0, []))

    def test_refuses_what_is_no_source(self):
        self.database(self.rows())
        for uri, kind, code, name in (
                ("d.sqlite", "request", "source.uri", "sqlite:d.sqlite#TABLE"),
                ("sqlite:", "request", "source.uri", "names no file"),
                ("sqlite:d.sqlite#", "request", "source.uri", "no table"),
                ("sqlite:e.sqlite#t", "source", "sqlite.missing", "e.sqlite"),
                ("sqlite:d.sqlite#tt", "request", "source.unknown_table",
                 "did you mean 't'?")):
            self.refuse(kind, code, name, arguments=["peek", uri])


class Doctor(Case):
    def test_says_what_is_there_and_why_the_rest_is_not(self):
        found = self.succeed("doctor", "--json").json()
        self.assertGreater(found["machine"]["cpus"], 0)
        parts = {part["part"]: part for part in found["parts"]}
        self.assertEqual(list(parts), ["sqlite", "postgres", "parquet",
                                       "arrow", "csv", "jsonl", "text",
                                       "token_store", "hf",
                                       "images", "hdf5", "audio", "npy",
                                       "zarr", "tfrecord", "cpu",
                                       "sim", "cuda", "trainer"])
        for name in ("sqlite", "cpu", "sim"):
            self.assertIs(parts[name]["there"], True, parts[name])
        for part in parts.values():
            self.assertTrue(part["says"])
        alone = self.succeed("doctor", "--parts", "--json").json()
        self.assertEqual(list(alone), ["parts"])
        self.assertEqual([(part["part"], part["there"])
                          for part in alone["parts"]],
                         [(part["part"], part["there"])
                          for part in found["parts"]])

    def test_tells_of_a_gpu_only_where_the_device_is_one(self):
        found = self.succeed("doctor", "--parts", "--json").json()
        parts = {part["part"]: part for part in found["parts"]}
        for name in ("cpu", "sim"):
            self.assertNotIn("gpu", parts[name])
            self.assertEqual(parts[name]["says"], name)
        self.assertEqual("gpu" in parts["cuda"], parts["cuda"]["there"])

    def test_looks_for_parts_beside_itself_and_not_where_it_is_called(self):
        (self.folder / "penstock").write_text("no program")
        parts = self.folder / "lib" / "penstock"
        parts.mkdir(parents=True)
        (parts / "libpenstock_source_sqlite.so").write_text("no library")
        found = run("doctor", "--parts", "--json", cwd=self.folder, prefix=(
            "bash", "-c", "exec -a penstock \"$@\"", "bash")).json()
        self.assertIs(found["parts"][0]["there"], True, found["parts"][0])

    def test_names_a_part_that_cannot_be_loaded(self):
        """PENSTOCK_PARTS comes first: a file there that is no library."""
        parts = self.folder / "parts"
        parts.mkdir()
        (parts / "libpenstock_source_sqlite.so").write_text("no library")
        found = self.succeed("doctor", "--parts", "--json",
                             PENSTOCK_PARTS=str(parts)).json()
        [sqlite] = [p for p in found["parts"] if p["part"] == "sqlite"]
        self.assertIs(sqlite["there"], False)
        self.assertIn("libsqlite3-0", sqlite["says"])
        self.good_start()
        answer = self.run_it("train", "job.json", "--json",
                             PENSTOCK_PARTS=str(parts))
        self.refused(answer, "source", "source.part_missing", str(parts))

    def test_for_people_it_marks_each_part(self):
        for arguments in (["doctor"], ["doctor", "--parts"]):
            self.assertIn("  ok  sqlite: ", self.succeed(*arguments).out)

    def test_of_parts_alone_it_measures_and_tests_nothing(self):
        cache = self.folder / "cache"
        text = self.succeed("doctor", "--parts", XDG_CACHE_HOME=str(cache)).out
        for line in text.splitlines():
            self.assertRegex(line, r"^  (ok|--)  \w+: .")
        self.assertFalse(cache.exists())


class Check(Case):
    def csv(self, *lines):
        (self.folder / "t.csv").write_text("\n".join(lines) + "\n")

    def test_a_source_without_faults(self):
        self.database(self.rows())
        for workers in (1, 2, 8):
            answer = self.succeed("check", "sqlite:d.sqlite#t", "--workers",
                                  workers)
            self.assertIn("64 rows read in ", answer.out)
            self.assertIn("all rows can be used", answer.out)
        found = self.succeed("check", "sqlite:d.sqlite#t", "--json").json()
        self.assertEqual((found["rows"], found["bad_rows"], found["bad"]),
                         (64, 0, []))
        self.assertEqual(found["columns"][2]["distinct"], 64)

    def test_names_what_a_field_must_decide(self):
        self.csv("n,x,y", "1,1.5,0.5", "2,,1.5", "3,2.5,inf")
        said = self.succeed("check", "t.csv").out
        self.assertIn("all rows can be used", said)
        self.assertIn("NULL or NaN: 'x'; ", said)
        self.assertIn("infinite values: 'y'; ", said)
        self.csv("n,x", "1,1.5")
        self.assertNotIn("NULL or NaN", self.succeed("check", "t.csv").out)

    def test_bad_cells_of_a_source_are_listed(self):
        self.database([(1, 0.5), (2, "x"), (3, 1.5), (4, "y")],
                      "id INTEGER PRIMARY KEY, y REAL")
        answer = self.run_it("check", "sqlite:d.sqlite#t", "--json")
        self.assertEqual(answer.code, 4, answer.err)
        found = answer.json()
        self.assertEqual((found["rows"], found["bad_rows"]), (4, 2))
        self.assertEqual([(row["row"], row["column"]) for row in found["bad"]],
                         [("2", "y"), ("4", "y")])
        text = self.run_it("check", "sqlite:d.sqlite#t").out
        self.assertIn("2 rows cannot be used:", text)
        self.assertIn("  row 2, column 'y': ", text)

    def test_a_job_says_what_its_fields_cannot_use(self):
        self.csv("a,b,w", "1,x,1", "2,y,-1", ",x,1", "4,z,2", "5,x,",
                 "6,x,3")
        self.write_job({"source": {"kind": "csv", "path": "t.csv"},
                        "fields": {"a": {"column": "a"},
                                   "b": {"category": {"column": "b"}}},
                        "loader": {"batch_size": 1, "weights": "w"}})
        answer = self.run_it("check", "job.json", "--json")
        self.assertEqual(answer.code, 4, answer.out + answer.err)
        found = answer.json()
        self.assertEqual((found["rows"], found["bad_rows"], found["train"]),
                         (6, 3, 3))
        self.assertEqual([(row["row"], row["column"]) for row in found["bad"]],
                         [("1", "w"), ("2", "a"), ("4", "w")])
        answer = self.run_it("check", "job.json", "--set",
                             "loader.weights=a", "--set",
                             'fields.b={"column": "w"}', "--json")
        self.assertEqual([row["column"] for row in answer.json()["bad"]],
                         ["a", "w"])
        self.assertEqual(list(self.folder.glob("runs")), [])

    def test_what_no_job_could_read_is_told(self):
        self.database([(1, 0.5, "a"), (2, 1.5, "a\x1b[31m\nb")],
                      "id INTEGER PRIMARY KEY, y REAL, s TEXT")
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("CREATE VIEW v AS SELECT * FROM t")
        base.close()
        self.refuse("request", "source.no_key", "v",
                    arguments=["check", "sqlite:d.sqlite#v"])
        self.refuse("request", "source.query_order", "query",
                    arguments=["check", "sqlite:d.sqlite?query="
                               "SELECT * FROM t"])
        twice = self.run_it("check", "sqlite:d.sqlite?key=k&query="
                            "SELECT id / 4 AS k, y FROM t")
        self.assertEqual(twice.code, 4, twice.out)
        self.assertIn("1 keys belong to more than one row", twice.out)
        for verb in "peek", "check":
            text = self.succeed(verb, "sqlite:d.sqlite#t").out
            self.assertIn("\\u001b[31m\\nb", text)
            self.assertNotIn("\x1b", text)

    def test_what_cannot_be_read_is_an_error(self):
        self.refuse("source", "files.missing", "none.csv",
                    arguments=["check", "csv:none.csv"])
        self.refuse("request", "cli.arguments", "--set",
                    arguments=["check", "csv:t.csv", "--set", "a.b=1"])
        self.refuse("request", "file.read", "none.json",
                    arguments=["check", "none.json"])


class Demo(Case):
    def demo(self, *arguments, rows=40, to="sqlite:demo.sqlite"):
        return self.succeed("demo", "positions", "--rows", rows, "--to", to,
                            *arguments)

    def table(self, name="demo.sqlite"):
        base = sqlite3.connect(self.folder / name)
        try:
            return base.execute(
                "SELECT * FROM measurements ORDER BY id").fetchall()
        finally:
            base.close()

    def test_writes_the_table_that_was_promised(self):
        self.demo("--seed", "3")
        rows = self.table()
        self.assertEqual([row[0] for row in rows], list(range(1, 41)))
        for _, recorded_at, _, receivers, lat, lon in rows:
            self.assertRegex(recorded_at,
                             r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            heard = json.loads(receivers)
            self.assertTrue(3 <= len(heard) <= 10)
            for receiver in heard:
                self.assertLessEqual(set(receiver), set(RECEIVER))
            self.assertIsInstance(lat, float)
            self.assertIsInstance(lon, float)
        seen = self.succeed("peek", "sqlite:demo.sqlite", "--json").json()
        self.assertEqual([c["name"] for c in seen["columns"]], COLUMNS)

    def test_the_same_seed_gives_the_same_rows(self):
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            self.demo("--seed", seed, to=f"sqlite:{name}.sqlite")
        self.assertEqual(self.table("a.sqlite"), self.table("b.sqlite"))
        self.assertNotEqual(self.table("a.sqlite"), self.table("c.sqlite"))

    def test_an_existing_table_is_kept_unless_replace_is_said(self):
        self.demo()
        before = self.table()
        self.refuse("request", "source.table_exists", "'measurements'",
                    "demo.sqlite",
                    arguments=["demo", "positions", "--rows", 5, "--to",
                               "sqlite:demo.sqlite"])
        self.assertEqual(self.table(), before)
        self.demo("--replace", rows=5)
        self.assertEqual(len(self.table()), 5)

    def test_says_what_it_wrote(self):
        answer = self.demo("--json")
        self.assertEqual(answer.json(), {"rows": 40,
                                         "to": "sqlite:demo.sqlite"})

    def test_other_tables_of_the_file_stay(self):
        self.database(self.rows(), name="demo.sqlite")
        self.demo()
        self.assertEqual(self.succeed("peek", "sqlite:demo.sqlite#t",
                                      "--json").json()["rows"], 64)

    def test_refuses_a_place_that_is_none(self):
        for to, name in (("sqlite:no/such/folder.db", "no/such"),
                         ("mysql://x/y", "PostgreSQL"), ("sqlite:", "file")):
            answer = self.run_it("demo", "positions", "--rows", 5, "--to", to,
                                 "--json")
            self.assertEqual(answer.code, 2, answer.out)
            self.assertIn(name, " ".join(answer.json()["error"].values()))
        self.assertEqual(self.run_it("demo", "positions", "--rows", "0", "--to",
                                     "sqlite:x", "--json").code, 2)


class Quickstart(Case):
    def test_runs_the_job_both_ways_with_and_without_the_delay(self):
        self.succeed("demo", "positions", "--rows", "10", "--to", "sqlite:x.db")
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "anything",
                    "table": "measurements"},
            fields={"target": {"columns": ["tx_lat", "tx_lon"]}},
            loader={"batch_size": 32}))
        answer = self.succeed(
            "quickstart", "--job", "job.json", "--rows", "200", "--step-ms",
            "2", "--round-trip-ms", "0.5", "--epochs", "2", "--json")
        runs = answer.json()["runs"]
        self.assertEqual([(r["name"], r["round_trip_ms"]) for r in runs],
                         [("a query per sample", 0.5), ("penstock", 0.5),
                          ("a query per sample", 0.0), ("penstock", 0.0)])
        self.assertGreater(runs[1]["report"]["au"], runs[0]["report"]["au"])
        self.assertIn("0.5 ms per statement", answer.err)
        for entry in runs:
            saved = self.folder / entry["report"]["run"] / "report.json"
            self.assertEqual(json.loads(saved.read_text()), entry["report"])

    def test_what_was_not_measured_is_not_available(self):
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "anything",
                    "table": "measurements"},
            fields={"target": {"columns": ["tx_lat", "tx_lon"]}},
            loader={"batch_size": 256}))
        answer = self.succeed(
            "quickstart", "--job", "job.json", "--rows", "400", "--step-ms",
            "0", "--round-trip-ms", "0", "--epochs", "1")
        self.assertIn("n/a", answer.out)
        self.assertNotIn("nan", answer.out + answer.err)

    def test_ends_with_the_explanation_of_its_run(self):
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "anything",
                    "table": "measurements"},
            fields={"target": {"columns": ["tx_lat", "tx_lon"]}},
            loader={"batch_size": 32}))
        answer = self.succeed(
            "quickstart", "--job", "job.json", "--rows", "400", "--step-ms",
            "2", "--round-trip-ms", "0.1", "--epochs", "1")
        table, explained = answer.out.split("\nrun ")
        self.assertIn("round trip", table)
        run = explained.split()[0]
        self.assertIn("where the time went", explained)
        self.assertIn("longest steps", explained)
        self.assertEqual(self.succeed("explain", run).out,
                         "run " + explained.split("\nreports: ")[0])


class VerifyResume(Case):
    def test_proves_that_restarts_change_nothing(self):
        self.good_start(train={"epochs": 5})
        seen = self.succeed("verify-resume", "job.json", "--points=-1",
                            "--chains=2", "--ranks=3", "--json").json()
        self.assertEqual(seen["divergences"], 0, seen)
        self.assertEqual(seen["points"], seen["steps"])
        self.assertEqual(seen["epochs"], 2)
        self.assertGreater(seen["restarts"], 1)
        self.assertLessEqual(seen["state_bytes"], 128)
        text = self.succeed("verify-resume", "job.json").out
        self.assertIn("the same samples and bytes", text)
        self.assertFalse((self.folder / "runs").exists())

    def test_says_so_where_nothing_was_restarted(self):
        self.good_start()
        self.refused(self.run_it("verify-resume", "job.json", "--points=0",
                                 "--chains=0", "--json"),
                     "request", "resume.numbers", "nothing would be restarted")
        text = self.succeed("verify-resume", "job.json", "--steps=1",
                            "--points=0").out
        self.assertIn("nothing was restarted", text)
        self.assertNotIn("the same samples", text)

    def test_says_why_it_keeps_to_one_rank(self):
        self.good_start(loader={"batch_size": 16, "seed": 3,
                                "operations": [{"mixup": ["y"]}]})
        text = self.succeed("verify-resume", "job.json").out
        self.assertIn("chains on 1 rank\n", text)
        self.assertIn("batch operations may mix the rows of a batch", text)
        seen = self.succeed("verify-resume", "job.json", "--json").json()
        self.assertIn("operations may mix", seen["why_one_rank"])

    def test_numbers_beyond_their_range_are_refused(self):
        self.good_start()
        for option in ("--steps=-1", "--points=-2", "--chains=-1",
                       "--ranks=0", "--ranks=65"):
            self.refused(self.run_it("verify-resume", "job.json", "--json",
                                     option), "request", "cli.arguments",
                         option.split("=")[0])


class LiveLine(Case):
    """Standard error is a terminal."""

    def on_terminal(self, *arguments, interrupt_after_s=None):
        """The exit code and what the terminal got."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        shown, first = b"", None
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the program has ended
                break
            shown += piece
            first = first or time.monotonic()
            if (interrupt_after_s is not None and b"\r" in piece
                    and time.monotonic() - first > interrupt_after_s):
                process.send_signal(signal.SIGINT)
                interrupt_after_s = None
        os.close(ours)
        return process.wait(timeout=PATIENCE_S), shown.decode()

    def slow_job(self):
        """Each of its 102 batches is a query of 10 ms."""
        self.database(self.rows())
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite", "table": "t",
                    "round_trip_ms": 10},
            loader={"batch_size": 1, "seed": 3, "cache": "none",
                    "workers": 0}, train={"epochs": 2}))

    def test_what_comes_after_it_begins_on_its_own_line(self):
        self.slow_job()
        code, shown = self.on_terminal("verify-resume", "job.json",
                                       interrupt_after_s=0.2)
        self.assertEqual(code, 130, shown)
        self.assertTrue(shown.endswith("\n"), repr(shown))
        self.assertIn("without interruption: step ", shown)

    def test_changes_ten_times_a_second_at_most(self):
        self.slow_job()
        began = time.monotonic()
        code, shown = self.on_terminal("verify-resume", "job.json",
                                       "--points=-1", "--chains=0")
        self.assertEqual(code, 0, shown)
        changes = shown.count("\x1b[K")
        self.assertGreater(changes, 2)
        self.assertLessEqual(changes, 10 * (time.monotonic() - began) + 1)


class Skip(Case):
    def test_moves_the_data_of_a_resumed_run(self):
        self.good_start(train={"epochs": 2, "max_steps": 3})
        run = self.train()["run"]
        lines = (self.folder / run / "steps.jsonl").read_text().splitlines()
        third = json.loads(lines[2])
        again = self.succeed("train", "--resume", run, "--set",
                             "train.max_steps=4", "--skip=-1", "--json").json()
        [line] = (self.folder / again["run"] / "steps.jsonl"
                  ).read_text().splitlines()
        self.assertEqual([json.loads(line)[key] for key in ("epoch", "step")],
                         [third["epoch"], third["step"]])

    def test_says_where_it_goes_on_and_which_run_it_resumed(self):
        self.good_start(train={"epochs": 2, "max_steps": 3})
        run = self.train()["run"]
        answer = self.succeed("train", "--resume", "runs/latest", "--set",
                              "train.max_steps=4", "--skip=-1", "--json")
        self.assertIn("went back 1 step: the run continues at epoch 0, step 2\n",
                      answer.err)
        written = json.loads((self.folder / answer.json()["run"] / "run.json"
                              ).read_text())
        self.assertEqual(written["resumed_from"], run)

    def test_is_refused_where_no_step_is_left_or_none_is_taken(self):
        self.good_start(train={"epochs": 2})
        run = self.train()["run"]
        self.refused(self.run_it("train", "--resume", run, "--skip=1",
                                 "--json"),
                     "request", "resume.skip", "no steps left",
                     "train.epochs")
        self.refused(self.run_it("train", "--resume", run, "--skip=1",
                                 "--plan", "--json"),
                     "request", "cli.arguments", "--skip", "--plan")

    def test_is_refused_without_a_run(self):
        self.good_start()
        self.refused(self.run_it("train", "job.json", "--skip=3", "--json"),
                     "request", "cli.arguments", "--skip", "--resume")


if __name__ == "__main__":
    unittest.main()
