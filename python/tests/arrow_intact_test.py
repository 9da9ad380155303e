"""Intact Parquet and Arrow files that readers stumble over: Arrow files that
are only right by their footer, types that are not read, columns of one name,
times beyond nanoseconds. Both ways of reading, and tables in memory."""

import importlib.util
import math
import os
import pathlib
import struct
import tempfile
import unittest
import unittest.mock

import numpy

import penstock
from entry import main

HAVE_PYARROW = importlib.util.find_spec("pyarrow") is not None
HAVE_POLARS = importlib.util.find_spec("polars") is not None
if HAVE_PYARROW:
    import pyarrow
    from pyarrow import feather, ipc, parquet

MARK = b"ARROW1"
END = b"\xff\xff\xff\xff\0\0\0\0"


def arrow_file(table, **how):
    sink = pyarrow.BufferOutputStream()
    with ipc.new_file(sink, table.schema, **how) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def arrow_stream(table):
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def footer_begin(data):
    size, = struct.unpack("<i", data[-10:-6])
    return len(data) - 10 - size


@unittest.skipUnless(HAVE_PYARROW, "without pyarrow")
class Case(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        kept = unittest.mock.patch.dict(os.environ)
        kept.start()
        self.addCleanup(kept.stop)

    def each_way(self):
        for way in ("", "scanner"):
            os.environ["PENSTOCK_ARROW_WAY"] = way
            yield way

    def read(self, source, *arguments, **named):
        with penstock.Loader(source, *arguments, batch_size=64, num_workers=0,
                             shuffle=False, **named) as loader:
            batches = [batch.numpy() for batch in loader]
            return {name: numpy.concatenate([batch[name] for batch in batches])
                    .tolist() for name in batches[0]}, repr(loader)

    def refused(self, *arguments, **named):
        with self.assertRaises(penstock.errors.Error) as raised:
            self.read(*arguments, **named)
        return raised.exception

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def write_parquet(self, table, name="t.parquet", **how):
        parquet.write_table(table, self.folder / name, **how)
        return str(self.folder / name)


class ByTheFooter(Case):
    """What lies in a file of Arrow's file format beside what the footer lists
    does not matter."""

    def setUp(self):
        super().setUp()
        self.table = pyarrow.table({
            "a": pyarrow.array([1, 2, 3, 4, 5], "int64"),
            "w": pyarrow.array(["x", "y", "x", "y", "x"]).dictionary_encode()})
        self.right = [1, 2, 3, 4, 5]

    def check(self, data):
        path = self.write("t.arrow", data)
        self.assertEqual(ipc.open_file(path).read_all()["a"].to_pylist(),
                         self.right)
        for _ in self.each_way():
            found, _ = self.read(path)
            self.assertEqual(found["a"], self.right)
            self.assertEqual(found["w"], [0, 1, 0, 1, 0])

    def test_a_file_without_an_end_mark(self):
        whole = arrow_file(self.table)
        begin = footer_begin(whole)
        self.assertEqual(whole[begin - len(END):begin], END)
        self.check(whole[:begin - len(END)] + whole[begin:])

    def test_other_bytes_before_the_footer(self):
        whole = arrow_file(self.table)
        begin = footer_begin(whole) - len(END)
        for rest in (bytes(64), b"\x07" * 64, whole[8:8 + 64]):
            self.check(whole[:begin] + rest + whole[begin:])

    def test_no_schema_before_the_batches(self):
        whole = bytearray(arrow_file(self.table))
        size, = struct.unpack("<i", whole[12:16])
        whole[8:16 + size] = bytes(8 + size)
        self.check(bytes(whole))

    def test_a_footer_that_is_damaged_is_named(self):
        whole = bytearray(arrow_file(self.table))
        begin = footer_begin(whole)
        whole[begin:begin + 16] = b"\xff" * 16
        path = self.write("t.arrow", bytes(whole))
        for _ in self.each_way():
            error = self.refused(path)
            self.assertEqual(error.code, "files.damaged")
            self.assertIn("its footer", str(error))

    def test_compressed_files_feather_and_streams_as_before(self):
        for compression in ("lz4", "zstd", "uncompressed"):
            feather.write_feather(self.table, self.folder / "t.feather",
                                  compression=compression, chunksize=2)
            for _ in self.each_way():
                found, _ = self.read(str(self.folder / "t.feather"))
                self.assertEqual(found["a"], self.right)
        stream = arrow_stream(self.table)
        for data in (stream, stream.removesuffix(END)):
            path = self.write("s.arrow", data)
            for _ in self.each_way():
                self.assertEqual(self.read(path)[0]["a"], self.right)

    @unittest.skipUnless(HAVE_POLARS, "without polars")
    def test_files_of_polars(self):
        import polars
        polars.DataFrame({"a": self.right, "s": ["p", None, "q", "p", "r"]}
                         ).write_ipc(self.folder / "p.arrow")
        for _ in self.each_way():
            found, _ = self.read(str(self.folder / "p.arrow"))
            self.assertEqual(found["a"], self.right)


class TypesThatAreNotRead(Case):
    def setUp(self):
        super().setUp()
        if not hasattr(pyarrow, "list_view"):
            self.skipTest("a pyarrow without list_view")
        union = pyarrow.UnionArray.from_sparse(
            pyarrow.array([0, 1, 0], "int8"),
            [pyarrow.array([1, 2, 3]), pyarrow.array(["a", "b", "c"])])
        self.table = pyarrow.table({
            "u": union, "k": pyarrow.array([1, 2, 3], "int32"),
            "v": pyarrow.array([[1], [2, 3], []],
                               pyarrow.list_view(pyarrow.int64()))})

    def sources(self):
        yield self.table, "sparse_union", "list_view"
        for data in (arrow_file(self.table), arrow_stream(self.table)):
            path = self.write("t.arrow", data)
            for _ in self.each_way():
                yield path, "sparse_union<", "list_view"

    def test_other_columns_are_read_and_these_named(self):
        for source, union, view in self.sources():
            found, text = self.read(source)
            self.assertEqual(found, {"k": [1, 2, 3]})
            self.assertIn(f"left out: 'u': it is {union}", text)
            self.assertIn(f"left out: 'v': it is {view}", text)
            self.assertIn("an unsupported type", text)

    def test_one_that_is_wanted_is_refused_by_name_and_type(self):
        for source, union, _ in self.sources():
            error = self.refused(source, {"u": {"column": "u"}})
            self.assertEqual(error.code, "source.column_type")
            for text in ("column 'u'", union, "unsupported type"):
                self.assertIn(text, str(error))
            self.assertEqual(
                self.read(source, {"k": {"column": "k", "dtype": "int32"}})[0],
                {"k": [1, 2, 3]})

    def test_a_file_with_nothing_else_is_refused_with_the_reason(self):
        table = self.table.select(["u"])
        for source in (table, self.write("t.arrow", arrow_file(table))):
            for _ in self.each_way():
                error = self.refused(source)
                self.assertEqual(error.code, "fields.none")
                self.assertIn("'u': it is sparse_union", str(error))

    @unittest.skipUnless(HAVE_POLARS, "without polars")
    def test_a_schema_that_arrow_cannot_take_is_not_called_damaged(self):
        import polars
        path = str(self.folder / "p.parquet")
        polars.DataFrame({"i": polars.Series([1, 2], dtype=polars.Int128)}
                         ).write_parquet(path)
        for _ in self.each_way():
            error = self.refused(path)
            self.assertEqual(error.code, "files.unsupported")
            self.assertIn("64 bits", str(error))
            self.assertNotIn("damaged", str(error))


class ColumnsOfOneName(Case):
    def sources(self, table):
        yield table
        paths = [self.write_parquet(table),
                 self.write("t.arrow", arrow_file(table)),
                 self.write("s.arrow", arrow_stream(table))]
        for path in paths:
            for _ in self.each_way():
                yield path

    def check(self, table, name, places):
        for source in self.sources(table):
            found, text = self.read(source)
            self.assertEqual(found, {"k": [7, 8]})
            said = f"'{name}': columns {places} have this name"
            self.assertIn(f"left out: {said}", text)
            error = self.refused(source, {"x": {"column": name}})
            self.assertEqual(error.code, "source.column_type")
            self.assertIn(f"columns {places}", str(error))

    def test_are_left_out_with_both_places(self):
        self.check(pyarrow.Table.from_arrays(
            [pyarrow.array([1, 2]), pyarrow.array([7, 8]),
             pyarrow.array([3, 4])], names=["a", "k", "a"]), "a", "1 and 3")

    def test_no_file_of_several_gives_null_for_them(self):
        twice = pyarrow.Table.from_arrays(
            [pyarrow.array([1, 2]), pyarrow.array([3, 4])], names=["a", "a"])
        self.write_parquet(pyarrow.table({"a": [1, 2]}), "0.parquet")
        self.write_parquet(twice, "1.parquet")
        for schema in ("same", "union"):
            for _ in self.each_way():
                error = self.refused({"kind": "parquet", "schema": schema,
                                      "path": str(self.folder)})
                self.assertEqual(error.code, "files.schema")
                self.assertIn("1.parquet", str(error))
                self.assertIn("columns 1 and 2 have this name", str(error))

    def test_a_member_of_a_struct_and_a_column(self):
        self.check(pyarrow.table({
            "s": pyarrow.array([{"m": 1}, {"m": 2}]),
            "k": [7, 8], "s.m": [3, 4]}), "s.m", "1.1 and 3")

    def test_two_members_of_a_struct(self):
        members = pyarrow.StructArray.from_arrays(
            [pyarrow.array([1, 2]), pyarrow.array([3, 4])], names=["m", "m"])
        self.check(pyarrow.table({"k": [7, 8], "s": members}), "s.m",
                   "2.1 and 2.2")

    def test_a_struct_and_a_column(self):
        table = pyarrow.Table.from_arrays(
            [pyarrow.array([{"m": 1}, {"m": 2}]), pyarrow.array([7, 8]),
             pyarrow.array([3, 4])], names=["s", "k", "s"])
        self.check(table, "s", "1 and 3")
        self.check(table, "s.m", "1 and 3")


class TimesFarAway(Case):
    def seconds(self, column):
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
        per = unit[column.type.unit]
        return [value.value / per for value in column]

    def test_int96_beyond_nanoseconds(self):
        micros = [253402271999009999, 1136185445000000, -62135596800000000, 0]
        table = pyarrow.table({"t": pyarrow.array(
            micros, pyarrow.timestamp("us"))})
        path = self.write_parquet(table, use_deprecated_int96_timestamps=True)
        self.assertEqual(parquet.ParquetFile(path).schema.column(0)
                         .physical_type, "INT96")
        for _ in self.each_way():
            self.assertEqual(self.read(path)[0]["t"],
                             [value / 1e6 for value in micros])

    def test_the_first_and_last_of_every_unit(self):
        end = 2**63 - 1
        columns = {unit: pyarrow.array([-end, 0, end], pyarrow.timestamp(unit))
                   for unit in ("s", "ms", "us", "ns")}
        table = pyarrow.table({
            **columns,
            "day": pyarrow.array([-2**31, 0, 2**31 - 1], "int32").cast(
                pyarrow.date32()),
            "ms of days": pyarrow.array(
                [-86400000 * 10**8, 0, 86400000 * 10**8], pyarrow.date64())})
        right = {unit: [value / per for value in (-end, 0, end)]
                 for unit, per in (("s", 1.0), ("ms", 1e3), ("us", 1e6),
                                   ("ns", 1e9))}
        right["day"] = [-2**31 * 86400.0, 0, (2**31 - 1) * 86400.0]
        right["ms of days"] = [-864e10, 0, 864e10]
        sources = [table, self.write("t.arrow", arrow_file(table))]
        # Parquet has no seconds, and no milliseconds of days.
        rest = table.select(["ms", "us", "ns", "day"])
        sources.append(self.write_parquet(rest, version="2.6"))
        for source in sources:
            for _ in self.each_way():
                for name, found in self.read(source)[0].items():
                    self.assertEqual(found, right[name], name)


class ListsThatLackAValue(Case):
    """Without fields a list with NULL in it is left out as a NULL list is."""

    def tables(self):
        lists = pyarrow.array([[1.0], [1.0, None], [2.0, 3.0]])
        for made in (lists, pyarrow.array([[1, 2], [3, None], [5, 6]],
                                          pyarrow.list_(pyarrow.int64(), 2)),
                     pyarrow.array([[1.0], None, [2.0]])):
            yield pyarrow.table({"l": made, "k": [1, 2, 3]})

    def test_in_files_and_tables(self):
        for table in self.tables():
            for source in (table, self.write_parquet(table),
                           self.write("t.arrow", arrow_file(table))):
                for _ in self.each_way():
                    found, text = self.read(source)
                    self.assertEqual(found, {"k": [1, 2, 3]})
                    self.assertIn("left out: 'l' holds lists, and NULL", text)

    def test_rows_outside_a_slice_do_not_matter(self):
        table = next(self.tables())
        found, _ = self.read(table.slice(2))
        self.assertEqual(found["k"], [3])
        self.assertEqual(found["l"], [[2.0, 3.0]])


if __name__ == "__main__":
    main()
