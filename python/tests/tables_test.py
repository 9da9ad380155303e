"""Data frames and tables as rows of a loader. Each library is skipped where it
is not installed; one of the tests needs none of them."""

import contextlib
import importlib.util
import pathlib
import sqlite3
import tempfile
import unittest
import unittest.mock

import numpy

import penstock
from epochs import all_rows

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("pandas", "polars", "pyarrow", "duckdb", "datasets")}


def needs(*names):
    missing = [name for name in names if not HAVE[name]]
    return unittest.skipIf(missing, f"without {', '.join(missing)}")


def columns(rows=400):
    draw = numpy.random.default_rng(7)
    return {
        "size": draw.normal(size=rows).astype("float32"),
        "count": draw.integers(-5, 90, rows).astype("int32"),
        "kind": [None if i % 50 == 3 else ("b", "a", "cc")[i % 3]
                 for i in range(rows)],
        "good": (draw.random(rows) < 0.5),
        "when": numpy.datetime64("2026-01-01T00:00:00", "ns")
        + (numpy.arange(rows) * 3_600_000_000_000).astype("timedelta64[ns]"),
        "note": [f"row {i}" for i in range(rows)],
    }


class AnArrowStream:
    """Numbers in one record batch, by the interface alone: what the capsule
    holds lives in ctypes."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class DataFrames(unittest.TestCase):
    def frames(self, data):
        if HAVE["pandas"] and HAVE["pyarrow"]:
            import pandas
            yield "pandas", pandas.DataFrame(data)
        if HAVE["polars"]:
            import polars
            yield "polars", polars.DataFrame(data)
        if HAVE["pyarrow"]:
            import pyarrow
            table = arrow_rows = pyarrow.table(data)
            yield "pyarrow", table
            yield "any __arrow_c_stream__", AnArrowStream(table)
            yield "chunks", pyarrow.concat_tables(
                [table.slice(0, 100), table.slice(100)])
            if HAVE["duckdb"]:
                import duckdb
                yield "duckdb", duckdb.sql("select * from arrow_rows")

    @needs("pyarrow")
    def test_every_column_is_a_field_by_its_kind(self):
        data = columns()
        kinds = {"a": 0, "b": 1, "cc": 2, None: 3}
        expected = {
            "size": data["size"], "count": data["count"],
            "kind": numpy.array([kinds[kind] for kind in data["kind"]]),
            "good": data["good"],
            "when": 1767225600 + 3600.0 * numpy.arange(400)}
        for name, frame in self.frames(data):
            with self.subTest(name), \
                    penstock.Loader(frame, batch_size=32) as loader:
                found = all_rows(loader)
                for column, array in expected.items():
                    self.assertEqual(found[column].dtype, array.dtype, column)
                    numpy.testing.assert_array_equal(found[column], array)
                self.assertIn("'note' holds a different", repr(loader))

    @needs("pyarrow")
    def test_repr_shows_the_rules_and_what_they_leave_out(self):
        import pyarrow
        table = pyarrow.table({"x": [1.0] * 1500,
                               "id": [f"{i}" for i in range(1500)],
                               "blob": [b"x"] * 1500})
        with penstock.Loader(table, batch_size=2) as loader:
            shown = repr(loader)
        self.assertIn('x: {"column": "x", "dtype": "float32"', shown)
        self.assertIn("left out: 'id' holds more than 1000", shown)
        self.assertIn("left out: 'blob' holds binary", shown)

    @needs("pyarrow")
    def test_uint64_keeps_all_of_its_bits(self):
        import pyarrow
        values = [2**64 - 1, 2**53 + 1, 7]
        table = pyarrow.table({
            "id": pyarrow.array(values, "uint64"),
            "some": pyarrow.array([2**63, None, 1], "uint64"),
            "pairs": pyarrow.array([[value, 0] for value in values],
                                   pyarrow.list_(pyarrow.uint64())),
            "text": ["a", "b", "a"]})
        with penstock.Loader(table, batch_size=3) as loader:
            batch = next(iter(loader)).numpy()
        self.assertEqual(batch["id"].dtype, numpy.uint64)
        self.assertEqual(batch["id"].tolist(), values)
        self.assertEqual(batch["some"].tolist(), [2**63, 0, 1])
        self.assertEqual(batch["some_mask"].tolist(), [1, 0, 1])
        self.assertEqual(batch["pairs"][:, 0].tolist(), values)
        with self.assertRaises(penstock.TransformError) as caught:
            next(iter(penstock.Loader(
                table, {"x": {"column": "id", "dtype": "int64"}})))
        self.assertIn("row 0, column 'id'", str(caught.exception))
        self.assertIn(str(2**64 - 1), str(caught.exception))

    @needs("pyarrow")
    def test_integers_beside_null_keep_all_bits(self):
        import pyarrow
        table = pyarrow.table({
            "id": pyarrow.array([2**53 + 1, None, -2**63]),
            "few": pyarrow.array([2**53, None, -2**53]),
            "narrow": pyarrow.array([2**31 - 1, None, 1], "int32")})
        with penstock.Loader(table, batch_size=3) as loader:
            batch = next(iter(loader)).numpy()
        self.assertEqual(batch["id"].dtype, numpy.int64)
        self.assertEqual(batch["id"].tolist(), [2**53 + 1, 0, -2**63])
        self.assertEqual(batch["id_mask"].tolist(), [1, 0, 1])
        self.assertEqual(batch["narrow"].tolist(), [2**31 - 1, 0, 1])
        for name in ("few", "narrow"):
            self.assertEqual(batch[f"{name}_mask"].tolist(), [1, 0, 1])

    @needs("pyarrow")
    def test_fields_are_a_jobs_rules_or_names_of_columns(self):
        for name, frame in self.frames(columns()):
            fields = {"x": ["size", "count"],
                      "y": {"category": {"column": "kind",
                                         "order": "frequency"}}}
            with self.subTest(name), penstock.Loader(
                    frame, fields, batch_size=400) as loader:
                batch = next(iter(loader)).numpy()
                self.assertEqual(batch["x"].shape, (400, 2))
                self.assertEqual(batch["x"].dtype, numpy.float32)
                self.assertEqual(batch["y"].shape, (400,))

    @needs("pyarrow")
    def test_a_shuffled_epoch_is_the_same_from_every_library_and_worker(self):
        seen = set()
        for name, frame in self.frames(columns()):
            for workers in (0, 1, 2, 8):
                with penstock.Loader(frame, batch_size=16, shuffle=True,
                                     num_workers=workers, seed=3) as loader:
                    rows = all_rows(loader)
                    seen.add(b"".join(array.tobytes()
                                      for array in rows.values()))
        self.assertEqual(len(seen), 1)

    @needs("pyarrow")
    def test_a_state_goes_on_and_other_rows_are_refused(self):
        import pyarrow
        table = pyarrow.table(columns())
        with penstock.Loader(table, batch_size=16, shuffle=True) as loader:
            steps = iter(loader)
            for _ in range(5):
                next(steps)
            state = loader.state_dict()
            rest = [batch.ids.tolist() for batch in steps]
        with penstock.Loader(table, batch_size=16, shuffle=True) as loader:
            loader.load_state_dict(state)
            self.assertEqual([batch.ids.tolist() for batch in loader], rest)
        changed = columns()
        changed["count"][0] += 1
        with penstock.Loader(pyarrow.table(changed), batch_size=16,
                             shuffle=True) as loader, \
                self.assertRaises(penstock.RequestError):
            loader.load_state_dict(state)

    @needs("pandas")
    def test_numbers_of_pandas_are_read_where_they_lie(self):
        import pandas
        data = columns()
        frame = pandas.DataFrame({name: data[name]
                                  for name in ("size", "count", "good")})
        frame.loc[2, "size"] = numpy.nan
        with penstock.Loader(frame, batch_size=400) as loader:
            found = all_rows(loader)
        for name in frame:
            numpy.testing.assert_array_equal(found[name], frame[name])
            self.assertEqual(found[name].dtype, frame[name].dtype)

    @needs("pandas", "pyarrow")
    def test_nullable_and_categorical_columns_of_pandas(self):
        import pandas
        frame = pandas.DataFrame({
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "c": pandas.Categorical(["lo", "hi", "lo"]),
            "t": pandas.Series([1, 2, 3], dtype="timedelta64[s]")})
        with penstock.Loader(frame, batch_size=3) as loader:
            batch = next(iter(loader)).numpy()
        self.assertEqual(batch["n"].tolist(), [1, 0, 3])
        self.assertEqual(batch["n_mask"].tolist(), [1, 0, 1])
        self.assertEqual(batch["c"].tolist(), [1, 0, 1])
        self.assertEqual(batch["t"].tolist(), [1, 2, 3])

    @needs("pandas", "pyarrow")
    def test_categories_of_pandas_keep_their_order(self):
        import pandas
        sizes = ["small", "medium", "large"]
        frame = pandas.DataFrame({
            "size": pandas.Categorical(["large", None, "small", "large"],
                                       categories=sizes, ordered=True),
            "n": pandas.array([1, None, 3, 4], dtype="Int64")})
        with penstock.Loader(frame, batch_size=4, shuffle=False) as loader:
            batch = next(iter(loader)).numpy()
            self.assertEqual(loader.statistics["size"]["classes"], sizes)
        self.assertEqual(batch["size"].tolist(), [2, 3, 0, 2])
        fields = {"size": {"category": {"column": "size"}},
                  "part": {"columns": ["n"], "missing": "mean"}}
        with penstock.Loader(frame, fields, batch_size=4,
                             shuffle=False) as loader:
            batch = next(iter(loader)).numpy()
            found = loader.statistics["size"]
        self.assertEqual(batch["size"].tolist(), [2, 3, 0, 2])
        self.assertEqual(found["classes"], sizes)
        self.assertEqual(found["counts"], [1, 0, 2])
        fields = {"size": {"category": {"column": "size"}},
                  "text": {"text": {"column": "size"}}}
        with penstock.Loader(frame.iloc[2:], fields, batch_size=2,
                             shuffle=False) as loader:
            batch = next(iter(loader)).numpy()
        self.assertEqual(batch["size"].tolist(), [0, 2])
        self.assertEqual(bytes(batch["text"]), b"smalllarge")

    @needs("pandas", "pyarrow")
    def test_numbers_and_codes_of_pandas_are_read_where_they_lie(self):
        import pandas
        from penstock._rows.tables import _arrow_of_pandas
        real = numpy.array([1.5, numpy.nan, 3])
        frame = pandas.DataFrame({
            "text": ["a", None, "b"],
            "masked": pandas.array([1, None, 3], "Int16"),
            "real": real,
            "kind": pandas.Categorical(["y", "x", None], ordered=True),
            "whole": numpy.array([1, 2, 3])})
        lie = {"masked": frame["masked"].array._data,
               "real": frame["real"].to_numpy(),
               "kind": frame["kind"].array.codes,
               "whole": frame["whole"].to_numpy()}
        table, unread, _ = _arrow_of_pandas(frame, "DataFrame")
        self.assertEqual(table.column_names, list(frame.columns))
        self.assertFalse(unread)
        self.assertEqual(table.to_pydict(), {
            "text": ["a", None, "b"], "masked": [1, None, 3],
            "real": [1.5, None, 3], "kind": ["y", "x", None],
            "whole": [1, 2, 3]})
        for name, values in lie.items():
            array = table[name].chunk(0)
            array = getattr(array, "indices", array)
            self.assertEqual(array.buffers()[1].address, values.ctypes.data,
                             name)

    @needs("pandas", "pyarrow")
    def test_numbers_of_the_other_byte_order_are_not_taken_as_they_lie(self):
        import pandas
        from penstock._rows.tables import _arrow_of_pandas
        frame = pandas.DataFrame({"swapped": numpy.array([1.0, 2], ">f8"),
                                  "text": ["a", "b"]})
        table, unread, _ = _arrow_of_pandas(frame, "DataFrame")
        self.assertEqual(table["swapped"].to_pylist(), [1, 2])
        self.assertEqual(unread, {})

    @needs("pandas", "pyarrow")
    def test_many_rows_are_packed_beside_their_first_batches(self):
        import pandas
        rows = 600_000
        draw = numpy.random.default_rng(3)
        sizes = draw.integers(-1, 3, rows, "int8")
        frame = pandas.DataFrame({
            "size": pandas.Categorical.from_codes(sizes, ["s", "m", "l"]),
            "n": pandas.array(numpy.arange(rows), dtype="Int64")})
        with penstock.Loader(frame, batch_size=1000, shuffle=True,
                             seed=4) as loader:
            notes = " ".join(loader.plan["notes"])
            self.assertIn("while all samples are packed in memory", notes)
            self.assertEqual(loader.statistics["size"]["classes"],
                             ["s", "m", "l"])
            from_memory = False
            for _ in range(200):
                found = all_rows(loader)
                at = found["n"].astype("int64")
                self.assertEqual(numpy.unique(at).size, rows)
                numpy.testing.assert_array_equal(  # a code of -1 is unknown
                    found["size"], sizes[at] % 4)
                if from_memory:
                    break
                from_memory = any(stage["name"] == "gather" and stage["rows"]
                                  for stage in loader.stats()["stages"])
            self.assertTrue(from_memory)
            with self.assertRaises((TypeError, penstock.Error)):
                penstock.Loader(frame["n"], batch_size=2)  # one column alone

    @needs("polars")
    def test_an_enum_of_polars_keeps_its_order(self):
        import polars
        frame = polars.DataFrame({"size": polars.Series(
            ["b", None, "a"], dtype=polars.Enum(["b", "a", "c"]))})
        with penstock.Loader(frame, batch_size=3, shuffle=False) as loader:
            batch = next(iter(loader)).numpy()
            self.assertEqual(loader.statistics["size"]["classes"],
                             ["b", "a", "c"])
        self.assertEqual(batch["size"].tolist(), [0, 3, 1])

    @needs("datasets")
    def test_labels_of_hugging_face_keep_their_numbers_and_names(self):
        import datasets
        features = datasets.Features({
            "label": datasets.ClassLabel(names=["neg", "neutral", "pos"])})
        data = datasets.Dataset.from_dict({"label": [2, 0, 2]}, features)
        with penstock.Loader(data, batch_size=3, shuffle=False) as loader:
            batch = next(iter(loader)).numpy()
            self.assertEqual(loader.statistics["label"]["classes"],
                             ["neg", "neutral", "pos"])
        self.assertEqual(batch["label"].tolist(), [2, 0, 2])
        self.assertEqual(batch["label"].dtype, "int64")
        with penstock.Loader(data, {"y": {"column": "label"}}, batch_size=3,
                             shuffle=False) as loader:
            self.assertEqual(next(iter(loader)).numpy()["y"].tolist(),
                             [2, 0, 2])
        data = datasets.Dataset.from_dict({"label": [2, -1]}, features)
        with self.assertRaisesRegex(penstock.TransformError, "expected a class"), \
                penstock.Loader(data, batch_size=2) as loader:
            next(iter(loader))

    @needs("datasets")
    def test_a_data_set_of_hugging_face_with_its_indices(self):
        import datasets
        data = datasets.Dataset.from_dict({"x": [0.0, 1.0, 2.0, 3.0]})
        chosen = data.select([3, 1])
        with penstock.Loader(chosen, batch_size=2) as loader:
            self.assertEqual(next(iter(loader)).numpy()["x"].tolist(), [3, 1])
        with self.assertLogs("penstock", "INFO") as said, \
                penstock.Loader(data.select([3, 0, 1]), batch_size=4,
                                where="x < 3") as loader:
            self.assertEqual(all_rows(loader)["x"].tolist(), [0, 1])
        self.assertIn("copies 3 rows", "".join(said.output))
        with self.assertRaisesRegex(penstock.RequestError, "no rows"):
            penstock.Loader(data.select([3, 1]).select([]), batch_size=2)
        chosen.set_transform(lambda rows: rows)
        with self.assertRaisesRegex(penstock.RequestError, "transform"):
            penstock.Loader(chosen, batch_size=2)

    @needs("datasets")
    def test_rows_that_were_picked_are_read_where_they_are(self):
        import datasets
        rows = 3000
        data = datasets.Dataset.from_dict({
            "x": [None if i == 5 else i for i in range(rows)],
            "kind": [f"k{i % 7}" if i % 3 else f"odd {i}" for i in range(rows)],
            "pair": [[i, -i] for i in range(rows)]})
        for some in (data.shuffle(seed=1), data.select([7, 2999, 7, 4]),
                     data.filter(lambda row: row["x"] is not None
                                 and row["x"] % 3)):
            copied = some.flatten_indices()
            self.assertIsNotNone(some._indices)
            with unittest.mock.patch.object(
                    datasets.Dataset, "flatten_indices",
                    side_effect=AssertionError("copies all rows")):
                found = [self.epoch(some, workers) for workers in (0, 1, 2, 8)]
            expected = self.epoch(copied, 0)
            for each in found:
                self.assertEqual(each.keys(), expected.keys())
                for name, array in expected.items():
                    self.assertEqual(each[name].dtype, array.dtype, name)
                    numpy.testing.assert_array_equal(each[name], array)

    @staticmethod
    def epoch(data, workers):
        with penstock.Loader(data, batch_size=64, shuffle=True, seed=2,
                             num_workers=workers) as loader:
            return all_rows(loader)

    @needs("datasets")
    def test_a_data_set_of_hugging_face_of_the_columns_of_its_format(self):
        import datasets
        data = datasets.Dataset.from_dict({"x": [0.0, 1.0], "y": [2.0, 3.0]})
        for some in (data.with_format(columns=["y"]),
                     data.with_format("numpy", columns=["y"]).select([1, 0])):
            with penstock.Loader(some, batch_size=2) as loader:
                self.assertEqual(set(next(iter(loader)).numpy()), {"y"})
        whole = data.with_format("numpy", columns=["y"], output_all_columns=True)
        for all_of_them in (data, data.with_format("numpy"), whole):
            with penstock.Loader(all_of_them, batch_size=2) as loader:
                self.assertEqual(set(next(iter(loader)).numpy()), {"x", "y"})

    @needs("pyarrow")
    def test_decimals_are_the_numbers_that_a_file_of_text_has(self):
        import decimal

        import numpy
        import pyarrow
        draw = numpy.random.default_rng(0)
        texts = [f"{value}.{part:03}" for value, part in zip(
            draw.integers(-10**14, 10**14, 500), draw.integers(0, 1000, 500))]
        for kind in (pyarrow.decimal128(18, 3), pyarrow.decimal256(60, 3)):
            table = pyarrow.table({"d": pyarrow.array(
                [decimal.Decimal(text) for text in texts], kind)})
            with penstock.Loader(table, None, 500, dtypes="keep") as loader:
                found = next(iter(loader)).numpy()["d"]
            self.assertEqual(found.tolist(), [float(text) for text in texts])

    @needs("pyarrow")
    def test_what_cannot_be_read_is_named(self):
        import pyarrow
        table = pyarrow.table({"m": pyarrow.array(
            [[("a", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64()))})
        with self.assertRaisesRegex(penstock.RequestError, "'m' holds map"):
            penstock.Loader(table)
        with self.assertRaisesRegex(penstock.TransformError, "holds text"):
            penstock.Loader(table, {"x": "m"})  # as in a file, it is JSON
        table = pyarrow.table({"m": pyarrow.array(
            [[b"a"]], pyarrow.list_(pyarrow.binary()))})
        with self.assertRaisesRegex(penstock.RequestError, "list<binary>"):
            penstock.Loader(table, {"x": "m"})
        empty = pyarrow.table({"x": pyarrow.array([], pyarrow.float64())})
        with self.assertRaisesRegex(penstock.RequestError, "no rows"):
            penstock.Loader(empty)
        with self.assertRaisesRegex(penstock.RequestError, "does not exist"):
            penstock.Loader(pyarrow.table({"x": [1.0]}), {"y": "z"})

    @needs("pandas")
    def test_an_override_names_the_weights(self):
        import pandas
        frame = pandas.DataFrame({"x": numpy.arange(100.0),
                                  "w": [0.0] * 90 + [1.0] * 10})
        for loading in {"weights": "x"}, {}:
            with penstock.open({"source": frame, "loader": {
                    "batch_size": 50, **loading}},
                    loader__weights="w") as loader:
                self.assertGreaterEqual(
                    next(iter(loader)).numpy()["x"].min(), 90)

    @needs("pandas")
    def test_texts_of_pandas_without_pyarrow_name_what_to_install(self):
        import pandas
        frame = pandas.DataFrame({"x": [1.0], "g": ["a"]})
        with unittest.mock.patch.dict("sys.modules", pyarrow=None):
            with self.assertRaisesRegex(penstock.RequestError,
                                        "pip install pyarrow"):
                penstock.Loader(frame)

    @needs("pandas", "pyarrow")
    def test_an_index_of_pandas_is_no_field(self):
        import pandas
        frame = pandas.DataFrame({"g": ["a", "b"] * 3, "x": [1.0] * 6})
        for taken, named in ((frame.sample(frac=1, random_state=0), ""),
                             (frame.set_index("g").assign(h="z"),
                              "'g' is the index")):
            with penstock.Loader(taken, batch_size=2) as loader:
                self.assertLessEqual(set(next(iter(loader)).numpy()),
                                     {"g", "x", "h"})
                self.assertIn(named, repr(loader))

    @needs("pyarrow")
    def test_lists_are_arrays_padded_or_packed_or_of_one_shape(self):
        import pyarrow
        lists = [[1.5, 2.5], [], [3.5], [4.5, 5.5, 6.5]]
        table = pyarrow.table({
            "v": pyarrow.array(lists, pyarrow.list_(pyarrow.float32())),
            "m": pyarrow.array([[i, i + 1] for i in range(4)],
                               pyarrow.list_(pyarrow.int16(), 2)),
            "b": pyarrow.array([bytes([i, 7]) for i in range(4)])})
        for workers in (0, 2):
            with penstock.Loader(table, batch_size=4,
                                 num_workers=workers) as loader:
                batch = next(iter(loader)).numpy()
                self.assertIn("left out: 'b' holds binary", repr(loader))
            numpy.testing.assert_array_equal(
                batch["v"], [[1.5, 2.5, 0], [0, 0, 0], [3.5, 0, 0],
                             [4.5, 5.5, 6.5]])
            self.assertEqual(batch["v_lengths"].tolist(), [2, 0, 1, 3])
            self.assertEqual((batch["m"].dtype, batch["m"].tolist()),
                             ("int16", [[i, i + 1] for i in range(4)]))
            with penstock.Loader(
                    table, {"v": {"array": {"column": "v",
                                            "lengths": "packed"}},
                            "b": {"array": {"column": "b", "shape": [2],
                                            "of": "uint8",
                                            "dtype": "uint8"}}},
                    batch_size=4, num_workers=workers) as loader:
                batch = next(iter(loader)).numpy()
            self.assertEqual(batch["v"].tolist(), sum(lists, []))
            self.assertEqual(batch["v_cu_seqlens"].tolist(), [0, 2, 2, 3, 6])
            self.assertEqual(batch["b"].tolist(), [[i, 7] for i in range(4)])
        with self.assertRaisesRegex(penstock.TransformError,
                                    "column 'v': holds 0 numbers, expected 2"):
            penstock.Loader(table, {"v": {"array": {
                "column": "v", "shape": [2]}}}, cache="ram")

    def test_a_file_is_named_by_its_path_as_text_or_pathlib_has_it(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.csv"
            file.write_text("a,b\n1,x\n2,y\n")
            for name in (file, str(file), f"csv:{file}"):
                with penstock.Loader(name, ["a"], batch_size=2) as loader:
                    self.assertEqual(
                        next(iter(loader)).numpy()["a"].tolist(), [[1], [2]])

    def test_key_condition_and_query_are_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            base = str(pathlib.Path(folder) / "d.sqlite")
            with contextlib.closing(sqlite3.connect(base)) as made:
                made.execute("CREATE TABLE t (name TEXT UNIQUE NOT NULL, "
                             "a REAL)")
                made.executemany("INSERT INTO t VALUES (?, ?)",
                                 [("d", 1), ("c", 2), ("b", "x"), ("a", 4)])
                made.commit()

            def values(*arguments, **more):
                with penstock.Loader(*arguments, batch_size=9,
                                     **more) as loader:
                    return next(iter(loader)).numpy()["a"].ravel().tolist()

            at = f"sqlite:{base}#t"
            self.assertEqual(values(at, ["a"], key="name", on_bad="skip"),
                             [4, 2, 1])
            self.assertEqual(values(at, ["a"], where="a < 3"), [1, 2])
            self.assertEqual(
                values(f"sqlite:{base}", ["a"], query="SELECT name, a * 10 AS a "
                       "FROM t WHERE name > 'b' ORDER BY name"), [20, 10])
            with self.assertRaisesRegex(penstock.TransformError, "'x'"):
                penstock.Loader(at, ["a"], cache="ram")

    @needs("pyarrow")
    def test_a_condition_selects_rows_of_a_table(self):
        where = "size > 0 AND kind IN ('a', 'cc') OR count BETWEEN 80 AND 90"
        data = columns()
        kept = [at for at in range(400)
                if data["size"][at] > 0 and data["kind"][at] in ("a", "cc")
                or 80 <= data["count"][at] <= 90]
        for name, frame in self.frames(data):
            with self.subTest(name), penstock.Loader(
                    frame, batch_size=16, where=where) as loader:
                numpy.testing.assert_array_equal(all_rows(loader)["size"],
                                                 data["size"][kept])
                state = loader.state_dict()
            with penstock.Loader(frame, batch_size=16, where="count > 0",
                                 ) as loader, self.assertRaises(
                                     penstock.RequestError):
                loader.load_state_dict(state)  # other rows
            with self.assertRaisesRegex(
                    penstock.RequestError, "no column 'weigth'"):
                penstock.Loader(frame, where="weigth > 0")
        if HAVE["pandas"]:
            import pandas
            frame = pandas.DataFrame({"n": numpy.arange(9)})  # numpy's own
            with penstock.Loader(frame, batch_size=9, where="n > 5",
                                 on_bad="skip") as loader:
                self.assertEqual(all_rows(loader)["n"].tolist(), [6, 7, 8])
            with self.assertRaisesRegex(TypeError, "key is for files"):
                penstock.Loader(frame, key="n")

    @needs("pyarrow")
    def test_bad_rows_of_a_table_are_left_out_where_that_is_asked(self):
        import pyarrow
        table = pyarrow.table({"a": [1.0, None, 3.0]})
        with penstock.Loader(table, ["a"], batch_size=3,
                             on_bad="skip") as loader:
            self.assertEqual(next(iter(loader)).numpy()["a"].tolist(),
                             [[1], [3]])

    def test_what_is_no_table_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "a data frame or table"):
            penstock.Loader(object())

    @needs("pyarrow")
    def test_the_table_is_released_with_the_loader(self):
        import gc
        import pyarrow
        gc.collect()
        before = pyarrow.total_allocated_bytes()
        table = pyarrow.table({"x": pyarrow.array(range(100_000),
                                                  pyarrow.int64())})
        loader = penstock.Loader(table, {"x": {"column": "x"}}, batch_size=8)
        next(iter(loader))
        del table
        self.assertGreater(pyarrow.total_allocated_bytes(), before)
        loader.close()
        del loader
        gc.collect()
        self.assertEqual(pyarrow.total_allocated_bytes(), before)


if __name__ == "__main__":
    unittest.main()
