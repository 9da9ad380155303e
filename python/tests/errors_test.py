"""Each kind of error as an exception of a fitting class; wrong arguments."""
import pickle
import re
import sqlite3
import unittest
import warnings

import penstock
from penstock import arguments, errors
from penstock._dataloader import errors as drop_in
from entry import main
from positions import BATCH, Case


class Kinds(Case):
    def test_each_is_also_what_python_calls_it(self):
        for kind, base in ((penstock.RequestError, ValueError),
                           (penstock.SourceError, OSError),
                           (penstock.TransformError, ValueError),
                           (penstock.DeviceError, RuntimeError),
                           (penstock.OutOfMemory, MemoryError),
                           (penstock.InternalError, RuntimeError)):
            self.assertTrue(issubclass(kind, base) and
                            issubclass(kind, penstock.Error))
            error = errors.made(kind.kind, "text", "a.code", "what", "where",
                                "why", "next")
            self.assertIs(type(error), kind)
            again = pickle.loads(pickle.dumps(error))
            for one in (error, again):
                self.assertEqual(
                    (type(one), str(one), one.kind, one.code, one.what,
                     one.where, one.why, one.next),
                    (kind, "text", kind.kind, "a.code", "what", "where", "why",
                     "next"))

    def test_one_of_the_drop_in_is_what_torchs_loader_raises_too(self):
        for kind, bases in (
                (drop_in.WorkerDied, (penstock.SourceError, RuntimeError)),
                (drop_in.WorkerTimeout, (penstock.SourceError, TimeoutError,
                                         RuntimeError)),
                (drop_in.NotPicklable, (penstock.RequestError, TypeError)),
                (drop_in.CollateError, (penstock.TransformError,
                                        RuntimeError)),
                (drop_in.CollateTypeError, (drop_in.CollateError,
                                            TypeError))):
            self.assertTrue(all(issubclass(kind, base) for base in bases))
            error = errors.worded(kind, "a.code", "what", why="why")
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual(
                (type(again), str(again), again.kind, again.code, again.why),
                (kind, "what: why", kind.kind, "a.code", "why"))

    def test_request(self):
        with self.refused(penstock.RequestError, "settings.unknown_key",
                          "loader.batchsize", "batch_size"):
            self.open(loader__batchsize=4)
        with self.refused(penstock.RequestError, "sampling.too_few"):
            self.open(loader__batch_size=10 ** 6)

    def test_source(self):
        with self.refused(penstock.SourceError, "sqlite.missing", "nowhere"):
            self.open(source__path="/nowhere/d.sqlite")
        with self.assertRaises(OSError):
            self.open(source__path=str(self.path))  # no database

    def test_source_in_the_middle_of_an_epoch(self):
        for workers in (0, 1, 2, 8):
            base = self.folder / f"gone{workers}.sqlite"
            source = sqlite3.connect(self.base)
            with sqlite3.connect(base) as copy:
                source.backup(copy)
            source.close()
            loader = self.open(source__path=str(base), loader__cache="none",
                               loader__workers=workers, loader__prefetch=1)
            batches = iter(loader)
            next(batches)
            with copy:
                copy.execute("DELETE FROM measurements")
            copy.close()
            with self.assertRaises(penstock.SourceError) as raised:
                list(batches)
            self.assertIn("row", str(raised.exception))
            with self.assertRaises(penstock.SourceError):  # and it stays
                next(batches)

    def test_transform(self):
        base = self.folder / "bad.sqlite"
        with sqlite3.connect(base) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, heard TEXT)")
            made.execute("INSERT INTO t VALUES (1, '[{\"a\": 1}]'), "
                         "(2, '[{\"a\": ')")
        made.close()
        with self.refused(penstock.TransformError, "data.bad_rows", "row 2"):
            penstock.Loader(f"sqlite:{base}#t", {"heard": {"json_set": {
                "column": "heard", "keys": ["a"], "max": 2}}}, 1, device="cpu")

    def test_device(self):
        with self.assertRaises(penstock.DeviceError) as raised:
            self.open(device="cuda")
        self.assertEqual(raised.exception.kind, "device")

    def test_out_of_memory(self):
        with self.assertRaises(penstock.OutOfMemory) as raised:
            self.open(device={"kind": "sim", "memory_gib": 0.001},
                      loader__cache="device", loader__prefetch=0,
                      loader__batch_size=1,
                      fields__receivers__json_set__max=2000)
        self.assertIsInstance(raised.exception, MemoryError)

    def test_no_text_holds_what_a_terminal_obeys(self):
        for hostile in ("\x1b]0;OWNED\x07", "\x9b1;31m", "a\rb", "\u202eb",
                        "\x7f"):
            texts = []
            path = self.folder / (hostile + ".csv")
            path.write_text(f"{hostile}\n1\n{hostile}\n")
            for source in (f"csv:{path}", f"csv:{hostile}/none.csv"):
                try:
                    penstock.Loader(source, {"x": {"columns": [hostile]}}, 1,
                                    device="cpu")
                except penstock.Error as error:
                    texts += [str(error), error.what, error.where, error.why,
                              error.next, str(error.args[0])]
            with sqlite3.connect(self.folder / "named.sqlite") as made:
                made.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER "
                             "PRIMARY KEY)")
                made.execute(f'ALTER TABLE t ADD COLUMN "{hostile}" REAL')
                made.execute("DELETE FROM t")
                made.execute(f'INSERT INTO t (id, "{hostile}") VALUES (1, 1), '
                             "(2, 2)")
            made.close()
            source = {"kind": "sqlite", "table": "t",
                      "path": str(self.folder / "named.sqlite")}
            with penstock.Loader(source, {hostile: {"columns": [hostile]}}, 1,
                                 device="cpu") as loader:
                batch = next(iter(loader))
                texts += [repr(loader), loader._repr_html_(), repr(batch),
                          repr(batch[hostile])]
                self.assertEqual(batch[0].name, hostile)  # itself unchanged
            texts += [str(errors.refused("a.code", hostile, hostile, hostile,
                                         hostile))]
            for text in texts:
                self.assertIsNone(re.search(
                    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text),
                    ascii(text))

    def test_a_job_file_that_is_none(self):
        for text, code in (("{", "json.syntax"), ("[]", "settings.type")):
            path = self.folder / "bad.json"
            path.write_text(text)
            with self.refused(penstock.RequestError, code, "bad.json"):
                penstock.open(path)
        with self.refused(penstock.RequestError, "file.read", "none.json"):
            penstock.open(self.folder / "none.json")

    def test_a_job_file_with_comments_is_read(self):
        path = self.folder / "commented.json"
        path.write_text("""// what --init writes
            {"source": {"kind": "sqlite", // its kind
                        "path": "//none\\"//.sqlite"},
             "fields": {"x": {"column": "x"}}}""")
        with self.refused(penstock.SourceError, "sqlite.missing",
                          '//none"//.sqlite'):
            penstock.open(path)

    def test_a_loader_that_is_closed(self):
        loader = self.open()
        batches = iter(loader)
        loader.close()
        loader.close()
        for use in (lambda: next(batches), lambda: iter(loader), loader.peek,
                    loader.state_dict, loader.stats,
                    lambda: loader.set_epoch(1), loader.batches,
                    lambda: loader.load_state_dict({"epoch": 0, "step": 0})):
            with self.refused(penstock.RequestError, "loader.closed"):
                use()

    def test_leaving_the_block_closes(self):
        with self.open() as loader:
            next(iter(loader))
        with self.refused(penstock.RequestError, "loader.closed"):
            iter(loader)


class Arguments(Case):
    def setUp(self):
        arguments._told.clear()

    def test_a_wrong_name_is_told_the_nearest(self):
        for wrong, near in (("batchsize", "batch_size"), ("shufle", "shuffle"),
                            ("num_worker", "num_workers"),
                            ("prefetch", "prefetch_factor")):
            with self.assertRaisesRegex(TypeError, f"'{wrong}'.*'{near}'"):
                self.loader(**{wrong: 1})
        with self.assertRaisesRegex(TypeError, "choose one of: source, fields"):
            self.loader(xyzzy=1)

    def test_what_decides_a_batch_is_not_ignored(self):
        for name, why in (("collate_fn", "fields"), ("sampler", "shuffle"),
                          ("batch_sampler", "batch_size"),
                          ("worker_init_fn", "processes"),
                          ("generator", "seed"), ("num_replicas", "world")):
            with self.assertRaisesRegex(TypeError, f"'{name}'.*{why}"):
                self.loader(**{name: None})

    def test_what_has_no_meaning_says_so_once(self):
        given = {"pin_memory": True, "persistent_workers": True, "timeout": 5,
                 "multiprocessing_context": "fork", "in_order": False,
                 "pin_memory_device": "cuda"}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                loader = self.loader(**given)
        self.assertEqual(sorted(given), sorted(
            str(one.message).split("'")[1] for one in told))
        self.assertEqual({one.filename for one in told},
                         {self.loader.__func__.__code__.co_filename})
        self.assertEqual(loader.peek().rows, BATCH)

    def test_torchs_own_values_say_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.loader(pin_memory=False, persistent_workers=False, timeout=0,
                        in_order=True, pin_memory_device="",
                        multiprocessing_context=None)

    def test_overrides_of_a_job_name_a_setting(self):
        with self.assertRaisesRegex(TypeError, "'loader__batch_size'"):
            self.open(batch_size=4)
        with self.assertRaisesRegex(TypeError, "'lodaer__seed'.*'loader'"):
            self.open(lodaer__seed=4)
        loader = self.open(loader__batch_size=4, split={"train": 1},
                           source__where="id <= 8")
        self.assertEqual((len(loader), loader.peek().rows), (2, 4))

    def test_values_of_a_wrong_type(self):
        with self.assertRaisesRegex(TypeError, "batch_size"):
            self.loader(batch_size=2.5)
        with self.assertRaisesRegex(TypeError, "fields"):
            self.loader(fields={"x": {"a"}})
        with self.assertRaisesRegex(TypeError, "cannot be used in settings"):
            self.open(loader__seed=object())
        for wrong, code in (({"num_workers": -1}, "settings.range"),
                            ({"batch_size": 0}, "settings.range"),
                            ({"seed": -1}, "settings.range"),
                            ({"prefetch_factor": -1}, "settings.range"),
                            ({"cache": "tape"}, "settings.choice")):
            with self.subTest(wrong=wrong):
                with self.assertRaises(penstock.RequestError):
                    self.loader(**wrong)
        around = {}
        around["split"] = around
        for wrong in float("nan"), float("inf"), around:
            with self.refused(penstock.RequestError, "settings.value",
                              "split.train"):
                self.open(split={"train": wrong})
        with self.refused(penstock.RequestError, "source.uri",
                          "does not exist"):
            penstock.Loader("mysql:there", ["a"])

    def test_columns_come_in_an_order(self):
        columns = {"power": 0, "frequency": 0}
        with self.refused(penstock.SourceError, "sqlite.missing", "nowhere"):
            penstock.Loader("sqlite:nowhere.sqlite#t", {"x": columns.keys()})
        with self.assertRaisesRegex(TypeError, "is a set: expected a list"):
            penstock.Loader("sqlite:nowhere.sqlite#t", {"x": set(columns)})


if __name__ == "__main__":
    main()
