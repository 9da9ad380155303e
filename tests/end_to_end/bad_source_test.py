"""Databases that cannot be read as the job says."""
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import unittest

from penstock_cli import (Answer, Case, floats, read_safetensors, tree_of,
                          without_roots_rights)


class BadFiles(Case):
    def test_a_missing_file(self):
        self.write_job()
        self.refuse("source", "sqlite.missing", "d.sqlite", "does not exist",
                    str(self.folder))
        self.assertFalse((self.folder / "d.sqlite").exists())

    def test_a_folder_in_place_of_the_file(self):
        (self.folder / "d.sqlite").mkdir()
        self.write_job()
        self.refuse("source", "sqlite.folder", "d.sqlite", "is a folder")

    def test_a_file_that_is_no_database(self):
        path = self.folder / "d.sqlite"
        path.write_bytes(b"id,heard,y\n" * 100)
        self.write_job()
        self.refuse("source", "sqlite.not_a_database", "d.sqlite",
                    "not a database")
        self.assertEqual(path.read_bytes(), b"id,heard,y\n" * 100)

    def test_an_empty_file(self):
        (self.folder / "d.sqlite").touch()
        self.write_job()
        self.refuse("request", "source.unknown_table", "d.sqlite", "no table",
                    "0 bytes")

    def test_a_link_to_itself(self):
        (self.folder / "d.sqlite").symlink_to("d.sqlite")
        self.write_job()
        self.refuse("source", "sqlite.link_loop", "d.sqlite", "back to itself")
        self.refuse("request", "sqlite.link_loop", "d.sqlite",
                    arguments=["demo", "positions", "--to", "sqlite:d.sqlite"])
        (self.folder / "loop.json").symlink_to("loop.json")
        self.refuse("request", "file.read", "loop.json", "point the link",
                    arguments=["train", "loop.json"])

    def test_a_damaged_database(self):
        path = self.database(self.rows(4000))
        raw = bytearray(path.read_bytes())
        raw[4096 * 3:4096 * 30] = b"\xa5" * (4096 * 27)
        path.write_bytes(raw)
        self.write_job()
        self.refuse("source", "sqlite.corrupt", "d.sqlite", "malformed",
                    ".recover")

    def test_a_file_that_may_not_be_read(self):
        prefix = without_roots_rights()
        if prefix is None:
            self.skipTest("root may read everything here")
        self.good_start()
        (self.folder / "d.sqlite").chmod(0)
        answer = self.run_it("train", "job.json", "--json", prefix=prefix)
        self.refused(answer, "source", "sqlite.unreadable", "d.sqlite",
                     "Permission denied")

    def test_a_locked_database(self):
        self.good_start()
        base = sqlite3.connect(self.folder / "d.sqlite", isolation_level=None)
        self.addCleanup(base.close)
        base.execute("BEGIN EXCLUSIVE")
        base.execute("UPDATE t SET y = 9")
        answer = self.run_it("train", "job.json", "--json")
        self.refused(answer, "source", "sqlite.locked", "d.sqlite", "'t'",
                     "locked", "a copy")
        base.execute("COMMIT")
        self.assertEqual(self.train()["dataset"]["rows"], 64)

    def test_a_writer_in_wal_mode_is_no_obstacle(self):
        self.good_start()
        base = sqlite3.connect(self.folder / "d.sqlite", isolation_level=None)
        self.addCleanup(base.close)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("BEGIN IMMEDIATE")
        base.execute("UPDATE t SET y = 9")
        self.assertEqual(self.train()["dataset"]["rows"], 64)
        base.execute("ROLLBACK")

    def test_reading_leaves_no_trace_in_the_databases_folder(self):
        self.good_start(output={"dir": "elsewhere"})
        before = tree_of(self.folder)
        self.train()
        after = tree_of(self.folder)
        self.assertEqual({name: tree for name, tree in after.items()
                          if not name.startswith("elsewhere")}, before)


class BadNames(Case):
    def test_an_unknown_table_with_the_nearest_name(self):
        self.database(self.rows(), table="measurements")
        self.write_job()
        self.refuse("request", "source.unknown_table", "'measurments'",
                    "d.sqlite", "did you mean 'measurements'?",
                    sets=["source.table=measurments"])

    def test_an_unknown_column_with_the_nearest_name(self):
        self.good_start()
        error = self.refuse("request", "source.unknown_column", "'hear'",
                            "'heard'",
                            sets=["fields.heard.json_set.column=hear"])
        self.assertIn("did you mean 'heard'?", error["next"])

    def test_an_unknown_key_with_the_nearest_name(self):
        self.good_start()
        answer = self.run_it("train", "job.json", "--json", "--set",
                             "source.key=idd")
        self.refused(answer, "request", "source.unknown_column", "'idd'",
                     "did you mean 'id'?")

    def test_an_unknown_column_to_split_by(self):
        self.good_start(split={"train": 0.5, "val": 0.5, "by": "yy"})
        self.refuse("request", "source.unknown_column", "'yy'",
                    "did you mean 'y'?")

    def test_several_tables_and_none_named(self):
        self.database(self.rows())
        self.database(self.rows(), table="other", name="d.sqlite")
        self.write_job(self.job(source={"kind": "sqlite", "path": "d.sqlite"}))
        self.refuse("request", "source.unknown_table", "2 tables", "other")

    def test_the_only_table_need_not_be_named(self):
        self.database(self.rows())
        self.write_job(self.job(source={"kind": "sqlite", "path": "d.sqlite"}))
        self.assertEqual(self.train()["dataset"]["rows"], 64)

    def test_a_condition_that_is_none(self):
        self.good_start()
        for where, says in (("y >", "SQLite reports"), ("yy > 3", "yy"),
                            ("y > ?", "parameter"), ("1) ; DROP TABLE t; --",
                                                     "where")):
            self.refuse("request", "source.where", where, says,
                        sets=["source.where=" + where])
        self.assertEqual(self.train()["dataset"]["rows"], 64)

    def test_a_condition_that_closes_its_parenthesis(self):
        """It would take in rows that other conditions leave out."""
        self.good_start()
        self.refuse("request", "source.where", "syntax error",
                    sets=["source.where=id > 5) or (id > 7"])
        self.assertEqual(self.train("--set", "source.where=(id > 5) or (id > 7)"
                                    )["dataset"]["rows"], 59)

    def test_the_password_of_a_server_that_is_not_there_is_told_to_nobody(
            self):
        self.good_start()
        for uri in (
                "postgresql://me:hunter2@127.0.0.1:1/x",
                "postgresql://127.0.0.1:1/x?password=hunter2",
                "host=127.0.0.1 port=1 password = 'hunter2' dbname=x",
                "pwuser:hunter2@host/db",
                "postgres:/u:hunter2@h/db",
                "postgresql://u:hunter2",
                "postgresql+psycopg2://u:hunter2@h/db",
                "host=127.0.0.1 passwrd='hunter2'",
                "host=127.0.0.1 port=hunter2",
                "host=u:hunter2@127.0.0.1"):
            with self.subTest(uri=uri):
                source = json.dumps({"kind": "postgres", "table": "t",
                                     "uri": uri})
                for arguments in (
                        ("train", "job.json", "--set", "source=" + source),
                        ("batch", "job.json", "--set", "source=" + source),
                        ("peek", uri), ("peek", uri + "#t"), (uri,),
                        ("demo", "positions", "--to", uri),
                        ("doctor", uri)):
                    answer = self.run_it(*arguments, "--json")
                    self.assertNotEqual(answer.code, 0, arguments)
                    self.assertNotIn("hunter", answer.out + answer.err,
                                     arguments)
                # A run that has not begun leaves no folder.
                self.assertEqual(list((self.folder / "runs").glob("*")), [])

    @unittest.skipUnless(os.environ.get("PENSTOCK_TEST_POSTGRES"),
                         "there is no PostgreSQL server")
    def test_a_run_is_resumed_with_a_password_of_the_environment(self):
        table = f"penstock_resumed_{os.getpid()}"
        psql = [os.environ["PENSTOCK_TEST_POSTGRES_BIN"] + "/psql", "-qX",
                os.environ["PENSTOCK_TEST_POSTGRES"], "-c"]
        subprocess.run(
            [*psql, f"CREATE TABLE {table} AS SELECT i AS id, i * 1.0 AS y "
             "FROM generate_series(1, 100) i; GRANT SELECT ON " + table +
             " TO password_only"], check=True)
        self.addCleanup(lambda: subprocess.run(
            [*psql, f"DROP TABLE {table}"], check=True))
        port = os.environ["PENSTOCK_TEST_POSTGRES_PORT"]
        self.write_job(self.job(
            source={"kind": "postgres", "table": table, "key": "id",
                    "uri": f"host=127.0.0.1 port={port} dbname=postgres "
                           "user=password_only password='open, sesame'"},
            fields={"y": {"columns": ["y"]}}))
        first = self.train()
        resume = ("train", "--resume", first["run"], "--set", "train.epochs=2",
                  "--json")
        none = {"PGPASSFILE": "/nonexistent"}
        answer = self.run_it(*resume, **none)
        self.assertEqual(answer.code, 3, answer.err)
        self.assertIn("postgres.password", answer.out + answer.err)
        answer = self.run_it(*resume, **none, PGPASSWORD="open, sesame")
        self.assertEqual(answer.code, 0, answer.err)


class TooLittle(Case):
    def test_a_table_without_rows(self):
        self.database([])
        self.write_job()
        self.refuse("source", "source.empty", "t in d.sqlite", "no row")

    def test_a_condition_that_leaves_no_row(self):
        self.good_start()
        self.refuse("source", "source.empty", "no row", "'source.where'",
                    sets=["source.where=y > 1e9"])

    def test_rows_that_are_all_left_out(self):
        self.good_start()
        self.refuse("source", "source.empty", "32 rows", "'min'",
                    sets=["source.where=id % 4 in (1, 2)",
                          "fields.heard.json_set.min=3"])

    def test_fewer_rows_than_a_batch_with_drop(self):
        self.good_start()
        self.refuse("request", "sampling.too_few", "64 rows", "batch of 65",
                    "'drop'", "loader.batch_size", "'pad' or 'exact'",
                    sets=["loader.batch_size=65"])

    def test_fewer_rows_than_a_batch_otherwise(self):
        self.good_start()
        for tail, rows in (("pad", 65), ("exact", 64)):
            report = self.train("--set", "loader.batch_size=65", "--set",
                                "loader.tail=" + tail)
            self.assertEqual((report["steps"], report["samples"]), (1, rows))

    def test_a_side_without_rows(self):
        self.good_start(split={"train": 0, "val": 1})
        self.refuse("request", "sampling.too_few", "0 rows", "'split'")


class WhileItTrains(Case):
    """Rows are read again for each batch, and somebody changes the database."""

    def change(self, act, *names, code, sets=()):
        self.database(self.rows())
        self.write_job(self.job(
            loader={"batch_size": 1, "cache": "none"},
            device={"kind": "sim", "step_ms": 20}))
        process = self.start("train", "job.json", "--json",
                             *[w for s in sets for w in ("--set", s)])
        steps = self.folder / "runs" / "latest" / "steps.jsonl"
        self.wait_for(steps.exists, "the first steps")
        act()
        out, err = process.communicate(timeout=60)
        self.refused(Answer(process.returncode, out, err), "source", code,
                     *names)
        (self.folder / "runs" / "latest").unlink()
        (self.folder / "d.sqlite").unlink()

    def execute(self, sql):
        base = sqlite3.connect(self.folder / "d.sqlite")
        base.execute(sql)
        base.close()

    def test_a_table_or_column_goes(self):
        for sets in ((), ("source.where=y >= 0",)):
            for sql, name in (("DROP TABLE t", "no such table: t"),
                              ("ALTER TABLE t RENAME TO u", "no such table: t"),
                              ("ALTER TABLE t DROP COLUMN y", "y")):
                with self.subTest(sql=sql, sets=sets):
                    self.change(lambda: self.execute(sql), name,
                                "dropped or renamed",
                                code="source.table_changed", sets=sets)

    def test_the_file_is_emptied(self):
        self.change(lambda: (self.folder / "d.sqlite").write_bytes(b""),
                    "0 bytes", "emptied", code="sqlite.emptied")


class WideTables(Case):
    def test_as_many_columns_as_sqlite_takes(self):
        """The key, and a row number for messages, are columns too."""
        for columns in (1998, 1999, 2000):
            with self.subTest(columns=columns):
                names = [f"c{i}" for i in range(1, columns)]
                self.database(
                    [[row] + [row * i for i in range(1, columns)]
                     for row in range(8)],
                    "id INTEGER PRIMARY KEY, " +
                    ", ".join(name + " REAL" for name in names), table="wide",
                    name=f"{columns}.sqlite")
                self.write_job(self.job(
                    source={"kind": "sqlite", "path": f"{columns}.sqlite"},
                    fields={"x": {"columns": ["id", *names]}},
                    loader={"batch_size": 8, "shuffle": False}))
                rows = self.succeed(
                    "peek", f"sqlite:{columns}.sqlite#wide",
                    "--json").json()["first"]
                self.assertEqual((rows[2]["id"], rows[2]["c1"],
                                  rows[2][names[-1]]),
                                 (2, 2.0, 2.0 * (columns - 1)))
                for cache in ("ram", "none"):
                    [batch] = self.batches("--set", "loader.cache=" + cache,
                                           "--out", "out")
                    self.assertEqual(batch["keys"], list(range(8)))
                    [path] = (self.folder / "out").iterdir()
                    x = floats(read_safetensors(path)["x"])
                    self.assertEqual(x[2 * columns:2 * columns + 3],
                                     [2.0, 2.0, 4.0])
                    self.assertEqual(x[-1], 7.0 * (columns - 1))


class DeadWriter(Case):
    """A program that was killed in the middle of writing left its journal."""

    def test_its_half_done_work_is_never_read(self):
        self.good_start()
        writer = textwrap.dedent("""
            import os, sqlite3
            base = sqlite3.connect("d.sqlite", isolation_level=None)
            base.execute("PRAGMA cache_size=1")
            base.execute("BEGIN")
            for i in range(100, 4000):
                base.execute("INSERT INTO t VALUES (?, '[]', 0)", (i,))
            os._exit(1)
        """)
        subprocess.run([sys.executable, "-c", writer], cwd=self.folder,
                       check=False)
        self.assertTrue((self.folder / "d.sqlite-journal").exists())
        answer = self.run_it("train", "job.json", "--json")
        if answer.code == 0:
            self.assertEqual(answer.json()["dataset"]["rows"], 64)
            return
        self.refused(answer, "source", "sqlite.unfinished_write", "d.sqlite",
                     "died while writing", "PRAGMA user_version")


if __name__ == "__main__":
    unittest.main()
