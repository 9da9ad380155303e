"""A loader without `fields`: files and databases make them of their columns by
the rule that tables in memory have."""

import contextlib
import importlib.util
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import time
import unittest
import zlib

import numpy

import alarm
import penstock

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("pandas", "pyarrow", "h5py")}
POSTGRES = os.environ.get("PENSTOCK_TEST_POSTGRES")
ROWS = 300


def columns():
    return {
        "size": numpy.arange(ROWS, dtype="float32"),
        "count": numpy.arange(ROWS, dtype="int32"),
        "gaps": [None if i % 7 == 1 else i for i in range(ROWS)],
        "kind": [None if i % 50 == 3 else ("b", "a", "cc")[i % 3]
                 for i in range(ROWS)],
        "good": [i % 3 == 0 for i in range(ROWS)],
        "maybe": [None if i % 9 == 1 else i % 2 == 0 for i in range(ROWS)],
        "when": numpy.datetime64("2026-01-01T00:00:00", "us")
        + (numpy.arange(ROWS) * 3_600_000_000).astype("timedelta64[us]"),
        "lists": [[0.5] * (i % 4) for i in range(ROWS)],
        "blob": [b"x"] * ROWS,
    }


def one_batch(*arguments, **more):
    with penstock.Loader(*arguments, batch_size=ROWS, **more) as loader:
        return next(iter(loader)).numpy(), repr(loader)


def rules(text):
    return [line for line in text.splitlines()[1:] if "; set 'fields'" not in line]


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def sqlite(self, made, rows, table="t"):
        path = self.folder / "d.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute(f"CREATE TABLE {table} ({made})")
            marks = ",".join("?" * len(rows[0]))
            base.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        return f"sqlite:{path}#{table}"


class ByThemselves(Folder):
    @unittest.skipUnless(HAVE["pyarrow"], "without pyarrow")
    def test_a_file_makes_the_fields_of_its_table(self):
        import pyarrow
        import pyarrow.parquet
        table = pyarrow.table(columns())
        pyarrow.parquet.write_table(table, self.folder / "t.parquet")
        with pyarrow.ipc.new_file(self.folder / "t.arrow",
                                  table.schema) as file:
            file.write_table(table)
        expected, shown = one_batch(table)
        self.assertIn("left out: 'blob' holds binary", shown)
        for name in ("t.parquet", "t.arrow"):
            try:
                found, text = one_batch(self.folder / name)
            except penstock.SourceError as error:
                if error.code != "source.part_missing":
                    raise
                self.skipTest("built without Arrow")
            self.assertEqual(rules(text), rules(shown))
            self.assertIn("types from all 300 rows", text)
            self.assertEqual(list(found), list(expected))
            for field, array in expected.items():
                self.assertEqual(found[field].dtype, array.dtype)
                numpy.testing.assert_array_equal(found[field], array)

    @unittest.skipUnless(HAVE["pandas"] and HAVE["pyarrow"], "without pandas")
    def test_the_index_that_pandas_writes_is_no_field(self):
        import pandas
        frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0],
                                  "g": list("abab")})
        frame[frame.x != 3].to_parquet(self.folder / "t.parquet")
        try:
            found, text = one_batch(self.folder / "t.parquet")
        except penstock.SourceError as error:
            if error.code != "source.part_missing":
                raise
            self.skipTest("built without Arrow")
        self.assertEqual(list(found), ["x", "g"])
        self.assertIn("__index_level_0__' is the index", text)
        frame.index = pandas.Index([4, 2, 9, 7], name="pid")
        frame.to_parquet(self.folder / "t.parquet")
        for source in (frame, self.folder / "t.parquet",
                       __import__("pyarrow").Table.from_pandas(frame)):
            found, text = one_batch(source)
            self.assertEqual(list(found), ["x", "g"])
            self.assertIn("left out: 'pid' is the index", text)

    def test_numbers_of_rows_without_a_name_are_no_field(self):
        file = self.write("t.csv", ",x\n0,1.5\n1,2.5\n2,0.5\n")
        found, text = one_batch(file)
        self.assertEqual(list(found), ["x"])
        self.assertIn("left out: 'c1' is the number of the row, without a "
                      "name", text)
        file = self.write("u.csv", ",x\n5,1.5\n3,2.5\n4,0.5\n")
        self.assertEqual(list(one_batch(file)[0]), ["c1", "x"])

    def test_a_stray_text_is_one_bad_row_where_numbers_are_wanted(self):
        file = self.write("t.csv", "age,y\n" + "".join(
            f"{'?' if i == 700 else i % 90},{i % 2}\n" for i in range(900)))
        fields = {"x": ["age"], "y": {"column": "y"}}
        with self.assertRaises(penstock.Error) as refused:
            list(penstock.Loader(file, fields, batch_size=900))
        self.assertIn("holds text '?'", str(refused.exception))
        self.assertIn("t.csv:702)", str(refused.exception))
        self.assertNotIn("row 0", str(refused.exception))
        with penstock.Loader(f"csv:{file}?on_bad=skip", fields,
                             batch_size=900) as loader:
            ages = loader.peek().numpy()["x"]
            self.assertEqual(len(ages), 899)
            self.assertEqual(ages[699:701, 0].tolist(), [699 % 90, 701 % 90])

    def test_a_stray_text_among_numbers_is_asked_about(self):
        def rows(stray):
            return self.write("t.csv", "age,y\n" + "".join(
                f"{stray if i == 700 else i % 90},{'uv'[i % 2]}\n"
                for i in range(900)))

        for stray, answer, value in (
                ("?", "?na=,?", 0), ('"1,000"', "?thousands=,", 1000),
                ("7%", '?columns={"age":"int64"}&on_bad=skip', None)):
            file = rows(stray)
            with self.assertRaises(penstock.RequestError) as asked:
                penstock.Loader(file)
            self.assertEqual(asked.exception.code, "source.unclear")
            self.assertIn("899 of its 900 cells are numbers, and 1 is not: "
                          f"text '{stray.strip(chr(34))}' (",
                          str(asked.exception))
            self.assertIn("t.csv:702)", str(asked.exception))
            self.assertIn(answer, str(asked.exception))
            with penstock.Loader(f"csv:{file}{answer}",
                                 batch_size=900) as loader:
                ages = loader.peek().numpy()["age"]
                self.assertEqual(len(ages), 899 if value is None else 900)
                if value is not None:
                    self.assertEqual(int(ages[700]), value)
        for chosen in ({"age": {"category": {"column": "age"}}}, {"y": "y"}):
            penstock.Loader(file, chosen).close()
        with penstock.Loader(f'csv:{file}?columns={{"age":"text"}}') as loader:
            self.assertIn('age: {"category": {"column": "age"}}', repr(loader))

    def test_numbers_that_all_differ_are_asked_about_too(self):
        file = self.write("t.csv", "b,y\n" + "".join(
            f"{'?' if i == 70 else i},{'uv'[i % 2]}\n" for i in range(100)))
        with self.assertRaisesRegex(penstock.RequestError, "column 'b'"):
            penstock.Loader(file)

    def test_a_row_in_place_of_the_header_warns_once(self):
        file = self.write("iris.csv",
                          "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,other\n")
        with self.assertLogs("penstock", "WARNING") as logs:
            penstock.Loader(file).close()
        said = [line for line in logs.output if "?header=false" in line]
        self.assertEqual(len(said), 1)
        self.assertIn("'5.1', '3.5', 'setosa'", said[0])

    def test_a_csv_file(self):
        file = self.write("t.csv", "n,gaps,x,kind,when,id\n" + "".join(
            f"{i},{'' if i == 2 else i},{i / 2},{'ab'[i % 2]},"
            f"2026-01-01T00:00:{i % 60:02d},name {i}\n" for i in range(1500)))
        with penstock.Loader(file, batch_size=4) as loader:
            batch = next(iter(loader)).numpy()
            text = repr(loader)
        self.assertEqual({name: (array.dtype.name,
                                 numpy.nan_to_num(array, nan=-1).tolist())
                          for name, array in batch.items()}, {
            "n": ("int64", [0, 1, 2, 3]),
            "gaps": ("int64", [0, 1, 0, 3]),
            "gaps_mask": ("float32", [1, 1, 0, 1]),
            "x": ("float32", [0, .5, 1, 1.5]), "kind": ("int64", [0, 1, 0, 1]),
            "when": ("float64", [1767225600 + i for i in range(4)])})
        self.assertIn("left out: 'id' holds more than 1000", text)
        self.assertIn("types from all 1,500 rows", text)

    def test_json_lines_hold_lists(self):
        file = self.write("t.jsonl", "".join(
            f'{{"v": [{i}, 2], "w": [0.5{", 1" * i}], "o": [{{"a": 1}}]}}\n'
            for i in range(3)))
        found, text = one_batch(file)
        self.assertEqual(found["v"].dtype, "int64")
        self.assertEqual(found["v"].tolist(), [[0, 2], [1, 2], [2, 2]])
        self.assertEqual(found["w"].tolist(),
                         [[.5, 0, 0], [.5, 1, 0], [.5, 1, 1]])
        self.assertNotIn("  o: ", text)
        self.assertIn("left out: 'o'", text)

    def test_a_table_and_a_query_of_a_database(self):
        source = self.sqlite(
            "id INTEGER PRIMARY KEY, x REAL, kind TEXT, good BOOLEAN, "
            "heard TIMESTAMP, untyped, mixed, n INTEGER",
            [(i, i / 2, "ab"[i % 2], i % 2, f"2026-01-01T00:00:0{i}", i,
              "x" if i == 4 else i, None if i == 3 else i) for i in range(6)])
        found, text = one_batch(source)
        self.assertEqual({name: array.dtype.name
                          for name, array in found.items()}, {
            "x": "float32", "kind": "int64", "good": "bool",
            "heard": "float64", "untyped": "int64", "n": "int64",
            "n_mask": "float32"})
        self.assertIn("left out: 'id' is the primary key", text)
        self.assertIn("left out: 'mixed' declares no type", text)
        found, text = one_batch(source, where="n IS NOT NULL AND id > 1")
        self.assertEqual(found["n"].dtype, "int64")  # no NULL among these
        self.assertEqual(found["n"].tolist(), [2, 4, 5])
        self.assertIn("types from all 3 rows", text)
        found, _ = one_batch(source.split("#")[0], query="SELECT id, kind FROM "
                             "t WHERE id < 3 ORDER BY id")
        self.assertEqual(found["id"].tolist(), [0, 1, 2])

    def test_decimals_and_expressions_of_a_database_are_numbers(self):
        source = self.sqlite(
            "id INTEGER PRIMARY KEY, price DECIMAL(10,2), odd DECIMAL",
            [(i, None if i == 2 else i / 4, "n/a" if i == 5 else i)
             for i in range(ROWS)])
        found, text = one_batch(source)
        self.assertEqual(found["price"].dtype, "float32")
        self.assertEqual(numpy.nan_to_num(found["price"][:4], nan=-1).tolist(),
                         [0, .25, -1, .75])
        self.assertIn("left out: 'odd' holds a different text", text)
        found, text = one_batch(
            source.split("#")[0], query="SELECT id, price * 2 AS v, id || 'x' "
            "AS k, id % 2 AS parity, price, NULL AS none FROM t ORDER BY id")
        self.assertEqual({name: array.dtype.name
                          for name, array in found.items()}, {
            "id": "int64", "v": "float32", "parity": "int64",
            "price": "float32"})
        self.assertEqual(found["v"][3:5].tolist(), [1.5, 2])
        self.assertIn("left out: 'k' holds a different text in every row", text)
        self.assertIn("left out: 'none' declares no type", text)

    @unittest.skipUnless(POSTGRES, "without a PostgreSQL server")
    def test_decimals_and_arrays_of_postgresql(self):
        psql = pathlib.Path(os.environ["PENSTOCK_TEST_POSTGRES_BIN"], "psql")
        subprocess.run(
            [psql, "-q", "-v", "ON_ERROR_STOP=1", POSTGRES], check=True,
            text=True, input="DROP TABLE IF EXISTS decimals; CREATE TABLE "
            "decimals(id int PRIMARY KEY, price numeric(10,2), flat real[], "
            "square real[][], tags text[]); INSERT INTO decimals SELECT i, "
            "i / 4.0, ARRAY[i, 1], ARRAY[[i, 1], [2, 3]], ARRAY['a', 'b'] FROM "
            f"generate_series(0, {ROWS - 1}) i;")
        source = f"{POSTGRES}#decimals"
        found, text = one_batch(source)
        self.assertEqual(found["price"].dtype, "float32")
        self.assertEqual(found["price"][:3].tolist(), [0, .25, .5])
        self.assertEqual(found["flat"][1].tolist(), [1, 1])
        self.assertIn("left out: 'square' holds real[][]", text)
        self.assertIn("left out: 'tags' holds text[]", text)
        found, _ = one_batch(source, {"square": {
            "array": {"column": "square", "shape": [2, 2]}}})
        self.assertEqual(found["square"][5].tolist(), [[5, 1], [2, 3]])
        with self.assertRaisesRegex(penstock.TransformError, "'square'"):
            one_batch(source, {"square": {
                "array": {"column": "square", "shape": [3]}}})

    def test_a_text_in_place_of_a_number_is_a_bad_row_as_ever(self):
        source = self.sqlite("id INTEGER PRIMARY KEY, n INTEGER",
                             [(0, 1), (1, "x"), (2, 3)])
        with self.assertRaisesRegex(penstock.TransformError, "'x'"):
            one_batch(source, cache="ram")
        found, _ = one_batch(source, on_bad="skip")
        self.assertEqual((found["n"].dtype, found["n"].tolist()),
                         ("int64", [1, 3]))

    def test_what_is_read_for_it_has_an_end(self):
        source = self.sqlite(
            "n INTEGER, note TEXT",
            [(i, "a" * 3000) for i in range(50_000)])
        with penstock.Loader(source, batch_size=2) as loader:
            self.assertRegex(repr(loader), "types from the first 4[0-9],[0-9]{3} rows")
            self.assertEqual(next(iter(loader)).numpy()["n"].dtype, "int64")

    def test_reading_for_it_ends_by_ctrl_c(self):
        source = self.sqlite("n INTEGER", [(i,) for i in range(3000)])
        alarm.listen(self)
        begun = time.monotonic()
        self.assertTrue(alarm.rings(0.3, lambda: penstock.Loader(
            source.split("#")[0], query="SELECT a.n AS n FROM t a, t b, t c "
            "WHERE a.n + b.n + c.n < 0")))
        self.assertLess(time.monotonic() - begun, 20)

    def test_an_array_on_disk(self):
        x = numpy.arange(24, dtype="float32").reshape(4, 3, 2)
        numpy.save(self.folder / "x.npy", x)
        found, _ = one_batch(self.folder / "x.npy")
        numpy.testing.assert_array_equal(found["array"], x)

    @unittest.skipUnless(HAVE["h5py"], "without h5py")
    def test_a_path_in_a_file_is_a_name_as_of_h5py(self):
        import h5py
        with h5py.File(self.folder / "x.h5", "w") as file:
            file["in/x"] = numpy.zeros((4, 2), "float32")
            file["y"] = numpy.arange(4, dtype="int16")
        found, _ = one_batch(self.folder / "x.h5")
        with h5py.File(self.folder / "x.h5") as file:
            expected, _ = one_batch(file)
        self.assertEqual(sorted(found), ["in_x", "y"])
        for name, array in expected.items():
            self.assertEqual(found[name].dtype, array.dtype)
            numpy.testing.assert_array_equal(found[name], array)

    def test_integers_beside_null_keep_all_bits(self):
        values = [2**53 + 1, None, 7]
        shown = [("" if value is None else str(value)) for value in values]
        csv = self.write("t.csv", "id,few\n" + "".join(
            f"{value},{few}\n" for value, few in zip(shown, (1, 2, ""))))
        jsonl = self.write("t.jsonl", "".join(
            f'{{"id": {value or "null"}, "few": {few}}}\n'
            for value, few in zip(shown, (1, "null", 2))))
        base = self.folder / "t.sqlite"
        with contextlib.closing(sqlite3.connect(base)) as held, held:
            held.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, "
                         "id INTEGER, few INTEGER)")
            held.executemany("INSERT INTO t (id, few) VALUES (?, ?)",
                             zip(values, (1, 2, None)))
        for source in (csv, jsonl, f"sqlite:{base}#t"):
            found, _ = one_batch(source)
            self.assertEqual(found["id"].dtype, numpy.int64)
            self.assertEqual(found["id"].tolist(), [2**53 + 1, 0, 7])
            self.assertEqual(found["id_mask"].tolist(), [1, 0, 1])
            self.assertEqual(found["few"].dtype, numpy.int64)
            self.assertEqual(found["few_mask"].sum(), 2)

    @unittest.skipUnless(HAVE["pandas"] and HAVE["pyarrow"],
                         "needs pandas and pyarrow")
    def test_int64_of_pandas_beside_missing_values_keeps_all_bits(self):
        import pandas
        frame = pandas.DataFrame({
            "id": pandas.array([2**53 + 1, None], "Int64"),
            "few": pandas.array([1, None], "Int64")})
        with penstock.Loader(frame, batch_size=2) as loader:
            batch = next(iter(loader)).numpy()
        self.assertEqual(batch["id"].tolist(), [2**53 + 1, 0])
        self.assertEqual(batch["id_mask"].tolist(), [1, 0])
        self.assertEqual(batch["few"].tolist(), [1, 0])

    def test_says_that_few_lines_may_have_other_columns(self):
        pad = "x" * 400
        text = "".join(f'{{"i": {i}, "pad": "{pad}"}}\n'
                       for i in range(60_000))
        middle = text.index("\n", len(text) // 10) + 1
        file = self.write("t.jsonl", text[:middle] + '{"i": 1, "rare": 5}\n'
                          + text[middle:])
        loader = penstock.Loader(file, batch_size=10)
        self.assertIn("columns were determined from parts of the file", repr(loader))
        with self.assertRaises(penstock.RequestError) as caught:
            penstock.Loader(file, {"rare": {"column": "rare",
                                            "missing": "zero"}}, batch_size=10)
        self.assertIn("source.columns", str(caught.exception))
        self.assertIn('{"rare": "float64"}', str(caught.exception))
        with penstock.Loader({"kind": "jsonl", "path": str(file),
                              "columns": {"rare": "float64"}},
                             {"rare": {"column": "rare", "missing": "zero"}},
                             batch_size=60_001) as loader:
            self.assertEqual(next(iter(loader)).numpy()["rare"].sum(), 5)

    def test_numbers_become_float32_unless_they_are_kept(self):
        file = self.write("t.csv", "x,n\n0.1,1\n0.2,2\n")
        found, text = one_batch(file)
        self.assertEqual(found["x"].dtype, numpy.float32)
        self.assertIn('"dtype": "float32"', text)
        found, _ = one_batch(file, dtypes="keep")
        self.assertEqual(found["x"].dtype, numpy.float64)
        self.assertEqual(found["x"].tolist(), [.1, .2])
        found, _ = one_batch({"x": numpy.array([.1, .2])})
        self.assertEqual(found["x"].dtype, numpy.float64)
        with self.assertRaisesRegex(TypeError, '"float32" or "keep"'):
            penstock.Loader(file, dtypes="float16")
        with self.assertRaisesRegex(TypeError, "without fields"):
            penstock.Loader(file, ["x"], dtypes="keep")

    def test_texts_that_tell_nothing_are_left_out(self):
        file = self.write("t.csv", "x,same,name,kind\n" + "".join(
            f"{i},a,name {i},{'pq'[i % 2]}\n" for i in range(6)))
        found, text = one_batch(file)
        self.assertEqual(set(found), {"x", "kind"})
        self.assertIn("left out: 'same' holds one text in all rows", text)
        self.assertIn("left out: 'name' holds a different text in every row",
                      text)

    def test_numbers_are_never_left_out_but_a_primary_key(self):
        source = self.sqlite("a INTEGER, b INTEGER, same REAL, PRIMARY KEY "
                             "(a, b)", [(i, i, 1.5) for i in range(4)])
        found, text = one_batch(source)
        self.assertEqual(set(found), {"same"})
        self.assertIn("left out: 'b' is the primary key", text)

    def test_null_among_numbers_warns_and_says_what_to_write(self):
        file = self.write("t.csv", "x,n,m\n0.5,1,1\n,2,2\n1.5,,3\n")
        with self.assertLogs("penstock", "WARNING") as logs:
            penstock.Loader(file)
        said = "\n".join(logs.output)
        self.assertIn("NULL in 'x' becomes NaN", said)
        self.assertIn('{"x": {"column": "x", "missing": "mask"}', said)
        self.assertIn("NULL in 'n' becomes 0, with NAME_mask", said)
        self.assertNotIn("'m'", said)
        with self.assertNoLogs("penstock", "WARNING"):
            penstock.Loader(file, ["m"])

    def test_paths_that_make_one_name_make_two_fields(self):
        from penstock._rows.table_fields import Declared, fields_of_columns
        rules, left_out = fields_of_columns(Declared([
            (path, "float32", "float32", "", False, [], 0, False, "")
            for path in ("/a/b", "/a_b")]))
        self.assertEqual([rule["column"] for rule in rules.values()],
                         ["/a/b", "/a_b"])
        self.assertEqual(left_out, [])

    def test_a_source_of_ones_own(self):
        class Own:
            columns = {"x": "float32[2]", "n": "int64", "good": "bool",
                       "lists": "list[int64]", "note": "text"}

            def __len__(self):
                return 5

            def read(self, positions):
                count = len(positions)
                return {"x": numpy.ones((count, 2), "float32"),
                        "n": positions, "good": numpy.ones(count, "bool"),
                        "lists": [[1] * int(at) for at in positions],
                        "note": ["a"] * count}

        found, text = one_batch(Own())
        self.assertEqual({name: (array.dtype.name, array.shape)
                          for name, array in found.items()}, {
            "x": ("float32", (5, 2)), "n": ("int64", (5,)),
            "good": ("bool", (5,)), "lists": ("int64", (5, 4)),
            "lists_lengths": ("int32", (5,))})
        self.assertIn("left out: 'note' holds text", text)
        with penstock.open({"source": Own(),
                            "loader": {"batch_size": 5}}) as loader:
            self.assertEqual(sorted(loader.peek().keys()), sorted(found))

    def test_names_that_a_batch_uses_itself_are_changed(self):
        file = self.write("t.jsonl", "".join(
            f'{{"weight": {i}, "v": [1], "v_lengths": {i}}}\n'
            for i in range(3)))
        found, _ = one_batch(file)
        self.assertEqual(found["weight_"].tolist(), [0, 1, 2])
        self.assertEqual(found["v_lengths"].tolist(), [0, 1, 2])
        self.assertEqual(found["v_"].tolist(), [[1], [1], [1]])

    def test_a_source_without_such_a_column_says_what_each_holds(self):
        source = self.sqlite("b BLOB", [(b"x",)])
        with self.assertRaisesRegex(
                penstock.RequestError,
                "'b' holds BLOB; name the columns in 'fields'"):
            penstock.Loader(source)

    def test_a_missing_file_is_named(self):
        with self.assertRaisesRegex(penstock.SourceError, "none.csv"):
            penstock.Loader(self.folder / "none.csv")

    def test_several_sources_need_fields(self):
        file = self.write("t.csv", "x\n1\n")
        with self.assertRaisesRegex(TypeError, "'fields' of several sources"):
            penstock.Loader([{"source": file}, file])


class OfFolders(Folder):
    def folders(self, ending, content):
        for name in ("cat", "dog"):
            (self.folder / name).mkdir()
            (self.folder / name / f"1.{ending}").write_bytes(content)

    def test_pictures_and_their_classes(self):
        def chunk(kind, data):
            body = kind + data
            return (len(data).to_bytes(4, "big") + body
                    + zlib.crc32(body).to_bytes(4, "big"))
        size = (8).to_bytes(4, "big")
        self.folders("png", b"\x89PNG\r\n\x1a\n" + chunk(
            b"IHDR", size + size + b"\x08\0\0\0\0") + chunk(
            b"IDAT", zlib.compress(b"\0" * 72)) + chunk(b"IEND", b""))
        found, text = one_batch(f"images:{self.folder}")
        self.assertEqual(found["image"].shape, (2, 3, 224, 224))
        self.assertEqual(found["class"].tolist(), [0, 1])
        self.assertIn("left out: 'path'", text)

    def test_of_sounds_the_length_of_a_row_is_asked_for(self):
        self.folders("wav", b"RIFF")
        with self.assertRaisesRegex(penstock.RequestError, '"seconds": 2'):
            penstock.Loader(f"audio:{self.folder}")


if __name__ == "__main__":
    unittest.main()
