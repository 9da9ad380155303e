"""Parquet and Arrow files in both ways that there are: by the engine's plugin,
which uses pyarrow's libraries, and by pyarrow itself, which reads where another
release of it is installed. One suite over both, and each against the other."""

import contextlib
import datetime
import decimal
import importlib.util
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy

import penstock
from entry import main

HAVE_PYARROW = importlib.util.find_spec("pyarrow") is not None
if HAVE_PYARROW:
    import pyarrow
    from pyarrow import ipc, parquet

WAYS = ("plugin", "scanner")
ROWS = 3000
EPOCH = datetime.datetime(1970, 1, 1)


@contextlib.contextmanager
def reading_by(way):
    with unittest.mock.patch.dict(os.environ, {
            "PENSTOCK_ARROW_WAY": "scanner" if way == "scanner" else ""}):
        yield


def plugin_is_loaded():
    return "libpenstock_source_arrow" in pathlib.Path(
        "/proc/self/maps").read_text()


def some(draw, of, nulls=0.1):
    return None if draw.random() < nulls else of()


def plain_columns(draw, when, word):
    """A type, how a value is drawn, and the share of nulls where it matters."""
    return {
        "id": (pyarrow.int64(), lambda: 0, 0),
        "f16": (pyarrow.float16(), lambda: numpy.float16(
            draw.randrange(-64, 64) / 8)),
        "f32": (pyarrow.float32(), lambda: draw.choice(
            (math.nan, 2.0 ** 127, 0.5, -2.25))),
        "f64": (pyarrow.float64(), lambda: draw.gauss(0, 1e3)),
        "flag": (pyarrow.bool_(), lambda: draw.random() < 0.5),
        "price": (pyarrow.decimal128(10, 2), lambda: decimal.Decimal(
            draw.randrange(-10**9, 10**9)).scaleb(-2)),
        "wide": (pyarrow.decimal128(38, 6), lambda: decimal.Decimal(
            draw.randrange(-10**37, 10**37)).scaleb(-6)),
        "wider": (pyarrow.decimal256(60, 3), lambda: decimal.Decimal(
            draw.randrange(-10**18, 10**18)).scaleb(-3)),
        "word": (pyarrow.string(), word),
        "large": (pyarrow.large_string(), word),
        "kind": (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), word),
        "level": (pyarrow.dictionary(pyarrow.int16(), pyarrow.int32()),
                  lambda: draw.randrange(9)),
        "blob": (pyarrow.binary(), lambda: draw.randbytes(3)),
        "four": (pyarrow.binary(4), lambda: draw.randbytes(4)),
        "ms": (pyarrow.timestamp("ms"), when),
        "ns": (pyarrow.timestamp("ns", "UTC"), when),
        "day": (pyarrow.date32(), lambda: when().date()),
        "clock": (pyarrow.time64("us"), lambda: when().time()),
        "took": (pyarrow.duration("us"), lambda: datetime.timedelta(
            microseconds=draw.randrange(10**9))),
    }


def nested_columns(draw, when, word):
    return {
        "v": (pyarrow.list_(pyarrow.float32()), lambda: [
            draw.randrange(-64, 64) / 8 for _ in range(draw.randrange(4))]),
        "v3": (pyarrow.list_(pyarrow.int16(), 3), lambda: [
            draw.randrange(-99, 99) for _ in range(3)], 0),
        "set": (pyarrow.list_(pyarrow.struct([
            ("a", pyarrow.int32()), ("b", pyarrow.string()),
            ("c", pyarrow.float64()), ("d", pyarrow.decimal128(9, 3))])),
            lambda: [some(draw, lambda: {
                "a": some(draw, lambda: draw.randrange(99)),
                "b": word() + '"\\\n', "c": draw.choice((1e300, -0.125, 3.0)),
                "d": decimal.Decimal(draw.randrange(10**6)).scaleb(-3)})
                for _ in range(draw.randrange(3))]),
        "words": (pyarrow.list_(pyarrow.string()), lambda: [
            some(draw, word) for _ in range(draw.randrange(3))]),
        "flags": (pyarrow.list_(pyarrow.bool_()), lambda: [True, None, False]),
        "times": (pyarrow.list_(pyarrow.timestamp("ms")), lambda: [when()]),
        "map": (pyarrow.map_(pyarrow.string(), pyarrow.int64()), lambda: [
            (word() + str(at), draw.randrange(99))
            for at in range(draw.randrange(3))]),
        "s": (pyarrow.struct([
            ("x", pyarrow.int32()), ("y", pyarrow.struct([
                ("t", pyarrow.string()), ("d", pyarrow.decimal128(9, 3))]))]),
            lambda: {"x": some(draw, lambda: draw.randrange(99)),
                     "y": some(draw, lambda: {
                         "t": word(), "d": decimal.Decimal("1.125")})}),
    }


def table(rows=ROWS, seed=5):
    """A column of every type that is read, with values from Python."""
    draw = random.Random(seed)
    when = lambda: EPOCH + datetime.timedelta(  # noqa: E731
        milliseconds=draw.randrange(-10**12, 2 * 10**12))
    word = lambda: draw.choice(("ä b", "cat", "", "a longer text"))  # noqa: E731
    made = {**plain_columns(draw, when, word),
            **nested_columns(draw, when, word)}
    for width in (8, 16, 32, 64):
        made[f"i{width}"] = (getattr(pyarrow, f"int{width}")(),
                             lambda width=width: draw.randrange(
                                 -1 << width - 1, 1 << width - 1))
        made[f"u{width}"] = (getattr(pyarrow, f"uint{width}")(),
                             lambda width=width: draw.randrange(1 << width))
    columns = {name: pyarrow.array([
        some(draw, of[1], *of[2:]) for _ in range(rows)], of[0])
        for name, of in made.items()}
    columns["id"] = pyarrow.array(range(rows))
    return pyarrow.table(columns)


def number(value):
    """What a column of numbers gives for a value of Python."""
    if value is None:
        return math.nan
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) / datetime.timedelta(
            seconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days * 86400.0
    if isinstance(value, datetime.time):
        return (datetime.datetime.combine(EPOCH.date(), value) -
                EPOCH) / datetime.timedelta(seconds=1)
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(seconds=1)
    return float(value)


NUMBERS = ("id", "f16", "f32", "f64", "flag", "price", "wide", "wider", "level",
           "ms", "ns", "day", "clock", "took", "i8", "i16", "i32", "i64", "u8",
           "u16", "u32", "u64", "s.x", "s.y.d")
ROUNDED_TWICE = ("price", "wide", "wider", "ns")  # by Arrow, or by a division
TEXTS = ("word", "large", "kind", "s.y.t")
BYTES = ("blob", "four")
JSONS = ("set", "words", "flags", "times", "map")


def fields():
    made = {name: {"columns": [name], "missing": "nan", "dtype": "float64"}
            for name in NUMBERS}
    made |= {f"text of {name}": {"text": {"column": name, "missing": "empty"}}
             for name in (*TEXTS, *BYTES, *JSONS)}
    return made


LOADED = """
import sys, penstock
penstock.Loader(sys.argv[1], ["id"], 5).close()
print("libpenstock_source_arrow" in open("/proc/self/maps").read(),
      "pyarrow" in sys.modules)
"""
# How much memory reading takes, beside what is there after the first batch.
GROWTH = """
import resource, sys
import penstock, pyarrow.parquet
with penstock.Loader(sys.argv[1], {"x": ["a", "b", "c"]}, 4096, cache="none",
                     num_workers=1) as loader:
    batches = iter(loader)
    next(batches)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = 4096 + sum(batch.rows for batch in batches)
    print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


class Files:
    """The table in the forms that are read, in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.table = table()

    def parquet(self):
        parquet.write_table(self.table, self.folder / "one.parquet",
                            row_group_size=700)
        return "one.parquet"

    def parquets(self):
        (self.folder / "some").mkdir()
        for part in range(3):
            parquet.write_table(
                self.table.slice(part * 1000, 1000), row_group_size=300,
                where=self.folder / f"some/part-{part}.parquet",
                compression=("zstd", "snappy", "none")[part],
                write_page_checksum=True)
        return "some"

    def partitions(self):
        for part in range(3):
            folder = self.folder / f"hive/year={2020 + part}/kind=a%20b"
            folder.mkdir(parents=True)
            parquet.write_table(
                self.table.drop_columns(["kind"]).slice(part * 1000, 1000),
                folder / "part.parquet")
        return "hive"

    def arrow_file(self):
        with ipc.new_file(str(self.folder / "one.arrow"),
                          self.table.schema) as writer:
            writer.write_table(self.table, max_chunksize=700)
        return "one.arrow"

    def arrow_stream(self):
        with ipc.new_stream(
                str(self.folder / "one.arrows"), self.table.schema,
                options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(self.table, max_chunksize=700)
        return "one.arrows"

    def hugging_face(self):
        folder = self.folder / "hf"
        folder.mkdir()
        names = [f"data-{part:05}-of-00002.arrow" for part in range(2)]
        for part, name in enumerate(names):
            with ipc.new_stream(str(folder / name),
                                self.table.schema) as writer:
                writer.write_table(self.table.slice(part * 1500, 1500), 400)
        (folder / "state.json").write_text(json.dumps(
            {"_data_files": [{"filename": name} for name in names]}))
        return {"kind": "hf", "path": str(folder)}

    FORMS = ("parquet", "parquets", "arrow_file", "arrow_stream",
             "hugging_face")

    def make(self, form):
        made = getattr(self, form)()
        if not isinstance(made, str):
            return made
        kind = "arrow" if form.startswith("arrow") else "parquet"
        return {"kind": kind, "path": str(self.folder / made)}


class Case(unittest.TestCase):
    way = "plugin"

    def setUp(self):
        if not HAVE_PYARROW:
            self.skipTest("without pyarrow")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.files = Files(held.name)
        scope = reading_by(self.way)
        scope.__enter__()
        self.addCleanup(scope.__exit__, None, None, None)

    def loader(self, source, made=None, batch_size=256, **settings):
        return penstock.Loader(source, made or fields(), batch_size,
                               **settings)

    def refused(self, *arguments, **named):
        with self.assertRaises(penstock.errors.Error) as raised:
            with self.loader(*arguments, **named) as loader:
                for _ in loader:
                    pass
        return raised.exception


class Suite:
    """What is tested in both ways; a Case beside it."""

    def test_every_type_is_read_from_every_form(self):
        pylist = {name: column.to_pylist() for name, column in zip(
            self.files.table.column_names, self.files.table.columns)}
        for name, path in (("s.x", ("x",)), ("s.y.d", ("y", "d")),
                           ("s.y.t", ("y", "t"))):
            values = pylist["s"]
            for step in path:
                values = [None if v is None else v[step] for v in values]
            pylist[name] = values
        for form in Files.FORMS:
            with self.subTest(form), \
                    self.loader(self.files.make(form)) as loader:
                self.check(pylist, loader)
        if self.way == "plugin" and not plugin_is_loaded():
            self.skipTest("the plugin cannot be loaded here")

    def check(self, pylist, loader):
        begin = 0
        for batch in loader:
            arrays = batch.numpy()
            rows = slice(begin, begin + batch.rows)
            begin += batch.rows
            for name in NUMBERS:
                numpy.testing.assert_allclose(
                    arrays[name].ravel(),
                    [number(value) for value in pylist[name][rows]],
                    rtol=1e-15 if name in ROUNDED_TWICE else 0, err_msg=name)
            for name in TEXTS:
                self.assertEqual(
                    batch.texts(f"text of {name}"),
                    [value or "" for value in pylist[name][rows]], name)
            for name in BYTES:
                self.assertEqual(
                    arrays[f"text of {name}"].tobytes(),
                    b"".join(value or b"" for value in pylist[name][rows]),
                    name)
            for name in JSONS:
                for text, value in zip(batch.texts(f"text of {name}"),
                                       pylist[name][rows], strict=True):
                    self.check_json(name, text, value)
        self.assertEqual(begin, ROWS)

    def check_json(self, name, text, value):
        if value is None:
            self.assertEqual(text, "")
            return
        found = json.loads(text, parse_float=decimal.Decimal)
        if name == "times":
            value = [when.isoformat(sep=" ", timespec="milliseconds")
                     for when in value]
        if name == "map":
            value = [{"key": key, "value": number} for key, number in value]
        if name == "set":
            value = [element and {**element, "c": decimal.Decimal(
                repr(element["c"]))} for element in value]
        self.assertEqual(found, value, name)

    def test_numbers_keep_their_width_and_lists_are_arrays(self):
        made = {"i64": {"columns": ["i64"], "missing": "zero",
                        "dtype": "int64"},
                "v": {"array": {"column": "v", "lengths": "padded"}}}
        for form in ("parquet", "arrow_file"):
            with self.subTest(form), self.loader(
                    self.files.make(form), made, on_bad="skip") as loader:
                values = {i: (n, v) for i, (n, v) in enumerate(zip(
                    self.files.table["i64"].to_pylist(),
                    self.files.table["v"].to_pylist())) if v is not None}
                found = []
                for batch in loader:
                    arrays = batch.numpy()
                    found += [(n, v[:length].tolist()) for n, v, length in zip(
                        arrays["i64"].ravel().tolist(), arrays["v"],
                        arrays["v_lengths"].tolist())]
                self.assertEqual(found, [(n or 0, v)
                                         for n, v in values.values()])

    def test_folders_give_columns_and_conditions_select_rows(self):
        source = self.files.make("partitions")
        made = {"id": {"column": "id", "dtype": "int64"},
                "year": {"column": "year", "dtype": "int64"},
                "kind": {"category": {"column": "kind"}}}
        with self.loader(source, made,
                         where="year <> 2021 AND (f64 > 0 OR word LIKE 'C%' OR "
                         "s.x IS NULL) AND NOT id BETWEEN 10 AND 20") as loader:
            found = [(i, year) for batch in loader for i, year in zip(
                batch["id"].numpy().tolist(), batch["year"].numpy().tolist())]
        kept = []
        for row in self.files.table.to_pylist():
            year = 2020 + row["id"] // 1000
            x = None if row["s"] is None else row["s"]["x"]
            if year != 2021 and not 10 <= row["id"] <= 20 and (
                    (row["f64"] or 0) > 0 or (row["word"] or "") == "cat" or
                    x is None):
                kept.append((row["id"], year))
        self.assertEqual(found, kept)

    def test_any_number_of_workers_gives_the_same_batches(self):
        source = self.files.make("parquets")
        seen = set()
        for workers in (0, 1, 2, 8):
            with self.loader(source, shuffle=True, seed=3, num_workers=workers,
                             cache="none", order={"paged": {
                                 "page": 64, "window": 4}}) as loader:
                seen.add(tuple(array.tobytes() for batch in loader
                               for array in batch.numpy().values()))
        self.assertEqual(len(seen), 1)

    def test_a_text_that_is_not_utf8_makes_its_row_bad(self):
        bad = pyarrow.array([b"good", b"a\xff", b"more"] * 3).view(
            pyarrow.string())
        path = self.files.folder / "bad.arrow"
        made = pyarrow.table({"id": range(9), "word": bad})
        with ipc.new_file(str(path), made.schema) as writer:
            writer.write_table(made)
        wanted = {"id": {"column": "id"}, "word": {"text": {"column": "word"}}}
        with self.loader(str(path), wanted, on_bad="skip") as loader:
            self.assertEqual(
                [i for batch in loader for i in batch["id"].numpy().tolist()],
                [0, 2, 3, 5, 6, 8])
        told = str(self.refused(str(path), wanted))
        for word in ("61ff", "not UTF-8", str(path), "record batch 0"):
            self.assertIn(word, told)

    def test_a_list_that_lacks_a_value_is_no_tensor(self):
        made = pyarrow.table({"v": pyarrow.array(
            [[1, 2], [3, None], [5, 6]], pyarrow.list_(pyarrow.int16(), 2))})
        parquet.write_table(made, self.files.folder / "gap.parquet")
        wanted = {"v": {"array": {"column": "v", "shape": [2]}}}
        for source in (str(self.files.folder / "gap.parquet"), made):
            with self.subTest(type(source)):
                with self.loader(source, wanted, on_bad="skip") as loader:
                    self.assertEqual(next(iter(loader)).numpy()["v"].tolist(),
                                     [[1, 2], [5, 6]])
                self.assertIn("a value is missing",
                              str(self.refused(source, wanted)))

    def test_a_file_may_be_larger_than_the_memory(self):
        rows, group = 4_000_000, 50_000
        draw = numpy.random.default_rng(1)
        path = self.files.folder / "large.parquet"
        with parquet.ParquetWriter(path, pyarrow.schema([
                (name, pyarrow.float64()) for name in "abc"]),
                use_dictionary=False) as writer:
            for _ in range(rows // group):
                writer.write_table(pyarrow.table({
                    name: draw.random(group) for name in "abc"}))
        self.assertGreater(path.stat().st_size, 90 << 20)
        done = subprocess.run([sys.executable, "-c", GROWTH, str(path)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        read, grew_kib = map(int, done.stdout.split())
        self.assertEqual(read, rows)
        self.assertLess(grew_kib, 30 << 10)

    def test_a_file_that_is_changed_is_named(self):
        source = self.files.make("parquet")
        with self.loader(source, cache="none") as loader:
            batches = iter(loader)
            next(batches)
            path = pathlib.Path(source["path"])
            path.write_bytes(path.read_bytes()[:20_000])
            with self.assertRaises(penstock.errors.SourceError) as raised:
                for _ in range(4):
                    for _ in loader:
                        pass
        self.assertIn(raised.exception.code, ("files.changed", "files.damaged"))


class Plugin(Suite, Case):
    way = "plugin"


class Scanner(Suite, Case):
    way = "scanner"

    def test_the_plugin_is_left_alone(self):
        done = subprocess.run([sys.executable, "-c", LOADED,
                               self.files.make("parquet")["path"]],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "False True\n", done.stderr)

    def test_without_pyarrow_it_says_what_to_install(self):
        source = self.files.make("parquet")
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None}):
            error = self.refused(source)
        self.assertIsInstance(error, penstock.errors.SourceError)
        self.assertEqual((error.code, error.next),
                         ("source.part_missing", "pip install pyarrow"))

    def test_a_pyarrow_that_is_too_old_is_named(self):
        source = self.files.make("parquet")
        with unittest.mock.patch.object(pyarrow, "__version__", "14.0.2"):
            error = self.refused(source)
        self.assertEqual(error.code, "source.part_missing")
        self.assertIn("14.0.2 is installed, but 15 or later is needed",
                      str(error))


class Same(Case):
    """Each way against the other: what is read, what is saved, what is said."""

    def both(self, work):
        found = []
        for way in WAYS:
            with reading_by(way):
                found.append(work())
            if way == "plugin" and not plugin_is_loaded():
                self.skipTest("the plugin cannot be loaded here")
        return found

    def test_batches_are_the_same_byte_for_byte(self):
        for form in (*Files.FORMS, "partitions"):
            source = self.files.make(form)
            made = fields()
            if form == "partitions":
                made["year"] = {"column": "year"}

            def read():
                with self.loader(source, made, shuffle=True) as loader:
                    return loader.state_dict(), [
                        array.tobytes() for batch in loader
                        for array in batch.numpy().values()]
            with self.subTest(form):
                plugin, scanner = self.both(read)
                self.assertEqual(plugin, scanner)

    def test_a_run_of_one_goes_on_with_the_other(self):
        source = self.files.make("parquets")
        settings = {"shuffle": True, "seed": 8, "split": {"val": 0.2}}
        with reading_by("plugin"), self.loader(source, **settings) as loader:
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            saved = loader.state_dict()
            rest = [batch.ids.tolist() for batch in batches]
        with reading_by("scanner"), self.loader(source, **settings) as loader:
            loader.load_state_dict(saved)
            self.assertEqual([batch.ids.tolist() for batch in loader], rest)

    def errors(self, source, made=None, **settings):
        plugin, scanner = self.both(
            lambda: self.refused(source, made, **settings))
        self.assertEqual((type(plugin), plugin.code, str(plugin)),
                         (type(scanner), scanner.code, str(scanner)))
        return plugin

    def test_what_is_refused_is_refused_in_the_same_words(self):
        source = self.files.make("parquet")
        path = str(self.files.folder / "none.parquet")
        self.assertEqual(self.errors(path).code, "files.missing")
        made = {"x": {"column": "f65"}}
        self.assertIn("f64", str(self.errors(source, made)))
        self.errors(source, {"x": {"column": "word"}})
        self.errors(source, where="word < 3")
        self.errors(source, where="f64 >")
        other = self.files.table.select(["id"]).cast(
            pyarrow.schema([("id", pyarrow.string())]))
        folder = self.files.folder / "differ"
        folder.mkdir()
        parquet.write_table(self.files.table.select(["id"]),
                            folder / "a.parquet")
        parquet.write_table(other, folder / "b.parquet")
        self.assertEqual(self.errors(
            {"kind": "parquet", "path": str(folder)},
            {"id": {"column": "id"}}).code, "files.schema")

    def test_damaged_files_are_told_in_the_same_words(self):
        for form in ("parquet", "arrow_file", "arrow_stream"):
            source = self.files.make(form)
            path = pathlib.Path(source["path"])
            whole = path.read_bytes()
            for name, damaged in {
                    "empty": b"", "half": whole[:len(whole) // 2],
                    "cut": whole[:-3], "text": b"id,word\n1,a\n" * 40,
                    }.items():
                path.write_bytes(damaged)
                with self.subTest(form, damage=name):
                    told = self.errors(source)
                    self.assertEqual(told.code, "files.damaged")
                    self.assertIn(str(path), str(told))
            path.unlink()

    def test_damage_at_random_ends_in_the_same_way(self):
        draw = random.Random(4)
        small = self.files.table.slice(0, 200)
        self.files.table = small
        for form in ("parquet", "arrow_file", "arrow_stream"):
            source = self.files.make(form)
            path = pathlib.Path(source["path"])
            whole = path.read_bytes()
            for time in range(int(os.environ.get("PENSTOCK_TEST_DAMAGES",
                                                 "40"))):
                damaged = bytearray(whole)
                for _ in range(draw.randrange(1, 4)):
                    at = draw.randrange(len(damaged))
                    damaged[at:at + draw.randrange(1, 9)] = draw.randbytes(
                        draw.randrange(1, 9))
                path.write_bytes(damaged)

                def end():
                    try:
                        with self.loader(source, on_bad="skip",
                                         num_workers=0) as loader:
                            for _ in loader:
                                pass
                    except penstock.errors.Error as error:
                        return error.code
                    return "read"
                with self.subTest(form, time=time):
                    for code in self.both(end):
                        self.assertIn(code.split(".")[0], (
                            "read", "files", "source", "fields", "transform",
                            "dataset"), code)


if __name__ == "__main__":
    main()
