"""Rows that are kept on disk: what a run finds there, why, and what is left
when it is removed, damaged, or its writer killed. PENSTOCK_TEST_KILLS says how
many writers are (50; `./check --faults` kills more)."""
import contextlib
import json
import os
import random
import sqlite3
import struct
import time
import unittest

from penstock_cli import Case, has_part

KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "50"))


class Stores(Case):
    def setUp(self):
        super().setUp()
        self.stores = self.folder / "stores"
        self.good_start(loader={"batch_size": 16, "seed": 3, "cache": "disk",
                                "cache_dir": "stores"})

    def cache(self, verb, *arguments, code=0):
        where = ["job.json"] if verb == "why" else ["--dir", "stores"]
        answer = self.run_it("cache", verb, *where, *arguments, "--json")
        self.assertEqual(answer.code, code, answer.out + answer.err)
        return answer.json()

    def only_store(self):
        [path] = self.stores.glob("*.store")
        return path

    def damage(self, at):
        with self.only_store().open("r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 1]))

    def test_a_store_is_listed_and_its_hit_explained(self):
        self.refused(self.run_it("cache", "ls", "--dir", "stores", "--json"),
                     "request", "cache.no_folder", "stores",
                     "loader.cache_dir")
        why = self.cache("why")
        self.assertFalse(why["hit"])
        self.assertIn("no store", why["why"])
        first = self.train()
        [store] = self.cache("ls")["stores"]
        self.assertEqual(store["path"], "stores/" + self.only_store().name)
        self.assertEqual(store["rows"], 64)
        self.assertEqual(store["bytes"], self.only_store().stat().st_size)
        self.assertEqual(store["source"], "t in d.sqlite")
        self.assertEqual(store["fingerprint"],
                         first["dataset"]["fingerprint"])
        self.assertTrue(self.cache("why")["hit"])
        second = self.train()
        self.assertEqual(second["dataset"], first["dataset"])
        self.assertNotIn("scan", second["plan"])
        self.assertIn("stores: 1, ", self.succeed("cache", "ls", "--dir",
                                               "stores").out)

    def test_a_plan_sees_that_no_store_can_be_written(self):
        self.stores.write_text("no folder")
        self.refused(self.run_it("train", "job.json", "--plan", "--json"),
                     "request", "file.write", "stores")
        self.stores.unlink()
        self.succeed("train", "job.json", "--plan", "--json")
        self.assertFalse(self.stores.exists())

    def test_rows_of_a_source_that_is_gone_are_used_on_request(self):
        first = self.train()
        os.rename(self.folder / "d.sqlite", self.folder / "away.sqlite")
        self.refused(self.run_it("train", "job.json", "--json"), "source",
                     "sqlite.missing", "d.sqlite",
                     '"source.on_missing": "store"',
                     self.only_store().name)
        on_request = ["--set", "source.on_missing=store"]
        answer = self.succeed("train", "job.json", "--json", *on_request)
        second = answer.json()
        self.assertIn("the source cannot be opened: its rows are",
                      answer.err)
        for name in ("fingerprint", "rows", "train_rows", "val_rows"):
            self.assertEqual(second["dataset"].get(name),
                             first["dataset"].get(name))
        self.assertNotIn("scan", second["plan"])
        self.refused(self.run_it("train", "job.json", "--json", *on_request,
                                 "--set", "split.seed=9"),
                     "source", "source.gone", "d.sqlite")
        self.refused(self.run_it("train", "job.json", "--json", *on_request,
                                 "--set", "loader.cache=none"),
                     "source", "sqlite.missing", "d.sqlite")
        os.rename(self.folder / "away.sqlite", self.folder / "d.sqlite")
        self.assertNotIn("cannot be opened",
                         self.succeed("train", "job.json", "--json",
                                      *on_request).err)

    def test_files_that_are_gone_too(self):
        """Rows by position, in several files, of which one is gone."""
        (self.folder / "t").mkdir()
        for name in "ab":
            (self.folder / "t" / f"{name}.csv").write_text(
                "x,y\n" + "".join(f"{n},{n % 3}\n" for n in range(100)))
        job = {"source": {"kind": "csv", "path": ["t/a.csv", "t/b.csv"]},
               "fields": {"x": {"columns": ["x"], "standardize": True}},
               "split": {"val": 0.2, "train": 0.8},
               "loader": {"batch_size": 16, "cache": "disk",
                          "cache_dir": "stores"},
               "device": "cpu", "model": "none", "train": {"epochs": 1}}
        (self.folder / "csv.json").write_text(json.dumps(job))
        first = self.succeed("train", "csv.json", "--json").json()
        (self.folder / "t" / "b.csv").unlink()
        self.refused(self.run_it("train", "csv.json", "--json"), "source",
                     "files.missing", "b.csv", "source.on_missing")
        second = self.succeed("train", "csv.json", "--json", "--set",
                              "source.on_missing=store").json()
        self.assertEqual(second["dataset"]["fingerprint"],
                         first["dataset"]["fingerprint"])

    def test_keys_that_are_damaged_cost_no_run_its_report(self):
        """They are read when the worst steps are named, at the end."""
        self.train()
        store = self.only_store().read_bytes()
        keys = store.index(struct.pack("<8q", *range(1, 9)))
        self.damage(keys)
        self.assertTrue(self.cache("why")["hit"])
        answer = self.succeed("train", "job.json", "--json", "--set",
                              "train.epochs=40")
        self.assertNotIn("scan", answer.json()["plan"])
        self.assertTrue(answer.json()["worst_steps"])
        self.assertIn("it is repaired from the source", answer.err)

    def test_a_commit_is_seen_through_a_link_too(self):
        """SQLite's log of commits lies beside the file, not beside the link."""
        os.symlink("d.sqlite", self.folder / "link.sqlite")
        link = ["--set", "source.path=link.sqlite"]
        with contextlib.closing(
                sqlite3.connect(self.folder / "d.sqlite")) as writer:
            writer.execute("PRAGMA journal_mode=WAL")
            writer.execute("UPDATE t SET y = 1 WHERE id = 2")
            writer.commit()
            first = self.train(*link)
            self.assertTrue(self.cache("why", *link)["hit"])
            writer.execute("UPDATE t SET y = 7 WHERE id = 2")
            writer.commit()
            self.assertFalse(self.cache("why", *link)["hit"])
            self.assertNotEqual(self.train(*link)["dataset"]["fingerprint"],
                                first["dataset"]["fingerprint"])

    @unittest.skipUnless(has_part("csv"), "the part that reads CSV was not built")
    def test_another_file_of_the_same_size_and_time_is_another_one(self):
        file = self.folder / "m.csv"
        job = {"source": {"kind": "csv", "path": "m.csv"},
               "fields": {"v": {"column": "v"}},
               "loader": {"batch_size": 2, "cache": "disk",
                          "cache_dir": "stores"}}
        self.write_job(job)
        fingerprints, hits = set(), []
        for text in ("v\n1111\n1112\n", "v\n2222\n2223\n"):
            other = self.folder / "other.csv"
            other.write_text(text)
            os.utime(other, ns=(10**18, 10**18))
            other.replace(file)
            hits.append(self.cache("why")["hit"])
            fingerprints.add(self.train()["dataset"]["fingerprint"])
            hits.append(self.cache("why")["hit"])
        self.assertEqual(hits, [False, True, False, True])
        self.assertEqual(len(fingerprints), 1, "a copy may go on with a run")

    def test_what_depends_on_the_clock_is_read_again(self):
        for ends, hit in (("y < unixepoch()", False),
                          ("y < strftime('%s')", False),
                          ("y < julianday ( )", False),
                          ("date(y) IS NOT NULL", True),
                          ("strftime('%s', y) IS NOT NULL", True)):
            where = ["--set", "source.where=" + ends]
            self.train(*where)
            self.assertEqual(self.cache("why", *where)["hit"], hit, ends)

    def test_a_miss_names_what_differs(self):
        self.train()
        why = self.cache("why", "--set", "split.seed=9")
        self.assertFalse(why["hit"])
        self.assertEqual(why["nearest"], "stores/" + self.only_store().name)
        self.assertEqual([part["part"] for part in why["differs"]],
                         ["split.seed"])
        self.assertEqual(why["differs"][0]["now"], "9")
        self.assertIn("split.seed", why["why"])
        self.database(self.rows(65)[64:], declared=self.columns(), table="u")
        why = self.cache("why")
        self.assertIn("source.version", why["differs"][0]["part"])
        plain = self.succeed("cache", "why", "job.json").out
        self.assertIn("miss: the next run scans t in d.sqlite", plain)
        self.assertIn(" stored, ", plain)

    @staticmethod
    def columns():
        return "id INTEGER PRIMARY KEY, heard TEXT, y REAL"

    def test_none_keeps_nothing(self):
        why = self.cache("why", "--set", "loader.cache=none")
        self.assertFalse(why["hit"])
        self.assertIn("loader.cache", why["why"])

    def test_a_version_of_ones_own_makes_another_store(self):
        for version in ("a", "b", "a"):
            self.train("--set", f"source.version={version}")
        self.assertEqual(len(self.cache("ls")["stores"]), 2)
        self.assertTrue(self.cache("why", "--set",
                                   "source.version=a")["hit"])
        why = self.cache("why", "--set", "source.version=c")
        self.assertEqual([part["part"] for part in why["differs"]],
                         ["source_version"])

    def test_damage_is_found_by_verify(self):
        self.train()
        found = self.cache("verify")
        self.assertEqual((found["sound"], len(found["stores"])), (1, 1))
        self.damage(17)
        found = self.cache("verify", code=3)
        self.assertEqual(found["sound"], 0)
        self.assertIn(self.only_store().name + ":0",
                      found["stores"][0]["damaged"])
        self.damage(self.only_store().stat().st_size - 20)
        found = self.cache("verify", code=3)
        self.assertIn("damaged", found["stores"][0]["unusable"])
        self.assertFalse(self.cache("why")["hit"])
        self.train()
        self.assertEqual(self.cache("verify")["sound"], 1)

    def test_prune_removes_what_is_no_longer_used(self):
        self.train()
        kept = self.cache("prune")
        self.assertEqual((kept["removed"], kept["kept"]), ([], 1))
        bytes_there = self.only_store().stat().st_size
        dry = self.cache("prune", "--unused-days", "0", "--dry-run")
        self.assertEqual((dry["bytes"], dry["kept"]), (bytes_there, 0))
        self.only_store()
        (self.stores / "mine.txt").write_text("not a store")
        listed = self.cache("prune", "--unused-days", "0")
        self.assertEqual((listed["bytes"], listed["removes"]),
                         (bytes_there, False))
        plain = self.succeed("cache", "prune", "--unused-days", "0", "--dir",
                             "stores").out
        self.assertIn("would free", plain)
        self.assertIn("nothing was removed: add --yes", plain)
        self.only_store()
        gone = self.cache("prune", "--unused-days", "0", "--yes")
        self.assertEqual((gone["bytes"], gone["removes"]), (bytes_there, True))
        self.assertEqual([path.name for path in self.stores.iterdir()],
                         ["mine.txt"])
        self.train()
        store = self.only_store()
        store.write_text("half written")
        (self.stores / (store.name + ".tmp.0123")).write_text("of the dead")
        (self.stores / "keys.store").write_text("not ours")
        self.assertEqual(self.cache("prune")["removed"], [])
        gone = self.cache("prune", "--unused-days", "0", "--yes")
        self.assertIn("fewer than", gone["removed"][0]["unusable"])
        self.assertEqual(sorted(path.name for path in self.stores.iterdir()),
                         ["keys.store", "mine.txt"])
        self.assertEqual(self.run_it("cache", "prune", "--unused-days",
                                     "999999", "--dir", "stores").code, 2)

    def test_another_file_of_the_same_size_and_time_is_another_source(self):
        self.train()
        first, base = self.only_store(), self.folder / "d.sqlite"
        seen = base.stat()
        other = base.read_bytes().replace(b'"a": 1.0', b'"a": 9.0')
        (self.folder / "new.sqlite").write_bytes(other)
        (self.folder / "new.sqlite").replace(base)
        os.utime(base, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        self.assertFalse(self.cache("why")["hit"])
        self.train()
        self.assertEqual(len(list(self.stores.glob("*.store"))), 2)
        self.assertTrue(first.exists())

    def test_a_store_fills_memory_in_later_runs(self):
        first = self.train()
        for cache in ("ram", "device", "auto"):
            report = self.train("--set", f"loader.cache={cache}")
            self.assertNotIn("scan", report["plan"])
            self.assertEqual(report["dataset"], first["dataset"])


class Kills(Case):
    def test_a_writer_that_is_killed_leaves_nothing_to_be_found(self):
        self.database(self.rows(4000))
        self.write_job(self.job(
            loader={"batch_size": 64, "cache": "disk", "cache_dir": "stores"},
            train={"max_steps": 1}))
        expected = self.train("--set", "loader.cache=ram")["dataset"]
        stores = self.folder / "stores"
        chance, while_writing = random.Random(7), 0
        for _ in range(KILLS):
            process = self.start("train", "job.json", "--json")
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                if stores.is_dir() and list(stores.glob("*.tmp.*")):
                    time.sleep(chance.random() * 0.004)
                    break
            process.kill()
            process.communicate()
            while_writing += bool(list(stores.glob("*.tmp.*")))
            whole = list(stores.glob("*.store"))
            found = self.succeed("cache", "verify", "--dir", "stores",
                                 "--json").json()
            self.assertEqual(found["sound"], len(whole))
            for path in whole:
                path.unlink()
        self.assertGreater(while_writing, 0)
        self.assertEqual(self.train()["dataset"], expected)
        self.assertEqual(self.train()["dataset"], expected)
        self.assertEqual([path.suffix for path in stores.iterdir()],
                         [".store"])


class Plans(Case):
    def test_the_plan_is_shown_before_anything_is_written(self):
        self.good_start(split={"train": 0.75, "val": 0.25, "seed": 1})
        before = sorted(path.name for path in self.folder.iterdir())
        found = self.succeed("train", "job.json", "--plan", "--json").json()
        self.assertEqual(found["rows"], 64)
        self.assertEqual(found["train_rows"] + found["val_rows"], 64)
        self.assertEqual(found["plan"]["tier"], "device")
        tiers = {tier["tier"]: tier for tier in found["plan"]["tiers"]}
        self.assertEqual(list(tiers), ["device", "pinned", "ram", "disk", "none"])
        self.assertGreater(tiers["device"]["most_rows"], 10_000)
        plain = self.succeed("train", "job.json", "--plan")
        self.assertIn("* device: ", plain.out)
        self.assertIn("such rows)", plain.out)
        self.assertIn("~64 rows of ", plain.err)
        self.assertEqual(before, sorted(
            path.name for path in self.folder.iterdir()))
        done = self.train()
        self.assertEqual(done["plan"]["tier"], "device")

    def test_training_says_where_its_rows_are(self):
        self.good_start()
        self.assertIn(
            "64 train + 0 val rows on the device",
            self.succeed("train", "job.json").err)

    def test_a_plan_of_what_cannot_be_kept_is_the_error_of_the_run(self):
        self.good_start(device={"kind": "sim", "step_ms": 1,
                                "memory_gib": 0.001},
                        loader={"batch_size": 64, "cache": "device",
                                "prefetch": 4096})
        self.refuse("out_of_memory", "cache.no_room", "loader.cache",
                    arguments=["train", "job.json", "--plan"])


if __name__ == "__main__":
    unittest.main()
