"""What is near to a table, and columns that no table can hold: read where that
is possible, else refused with the way to one. Each library is skipped where it
is not installed."""

import importlib.util
import unittest
import warnings

import numpy

import penstock

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("pandas", "polars", "pyarrow", "datasets")}


def needs(*names):
    missing = [name for name in names if not HAVE[name]]
    return unittest.skipIf(missing, f"without {', '.join(missing)}")


def batch_of(*arguments, **more):
    with penstock.Loader(*arguments, batch_size=8, **more) as loader:
        return next(iter(loader)).numpy(), repr(loader)


class Refused(unittest.TestCase):
    def refused(self, source, *texts, kind=TypeError, fields=None, **more):
        with self.assertRaises(kind) as caught:
            penstock.Loader(source, fields, **more)
        for text in texts:
            self.assertIn(text, str(caught.exception))


@unittest.skipUnless(HAVE["pandas"] and HAVE["pyarrow"], "without pandas")
class ColumnsOfPandas(Refused):
    def setUp(self):
        import pandas
        self.frame = pandas.DataFrame({
            "x": [1.0, 2.0, 3.0, 4.0], "o": [None, 1, 2.5, "a"],
            "z": numpy.array([1j, 2, 3, 4])})

    def test_a_column_that_is_not_used_may_hold_anything(self):
        found, text = batch_of(self.frame)
        self.assertEqual(found["x"].tolist(), [1, 2, 3, 4])
        self.assertIn("left out: 'o' holds values of several types: row 3 has "
                      "the str 'a', and the rows before it int", text)
        self.assertIn("left out: 'z' holds complex numbers", text)
        found, _ = batch_of(self.frame, {"y": "x"}, where="x < 3")
        self.assertEqual(found["y"].tolist(), [[1], [2]])

    def test_one_that_is_used_names_the_row(self):
        row = "row 3 has the str 'a'"
        refused = {"kind": penstock.RequestError}
        self.refused(self.frame, "column 'o'", row, ".astype(str)",
                     fields=["x", "o"], **refused)
        self.refused(self.frame, row, fields={"y": {
            "category": {"column": "o"}}}, **refused)
        self.refused(self.frame, row, fields=["x"], weights="o", **refused)
        self.refused(self.frame, row, fields=["x"], where="o > 1", **refused)
        self.refused(self.frame, "complex", "numpy.real", fields=["z"],
                     **refused)

    def test_values_that_arrow_has_not_are_told_by_column_and_row(self):
        import pandas
        frame = pandas.DataFrame({
            "i": [2, 2**70], "f": [1.0, 2.0],
            "t": pandas.Series([("a",), ("\ud800",)], dtype=object),
            "s": pandas.arrays.SparseArray([0.0, 1.0])})
        for read in (frame, frame[["i", "f"]], frame[["f", "s"]],
                     frame[["t", "f"]]):
            found, text = batch_of(read)
            self.assertEqual(found["f"].tolist(), [1, 2])
            self.assertIn("left out: ", text)
        row = f"row 1 has the int {2**70}"
        self.assertIn(f"'i' cannot be a column of Arrow: {row}",
                      batch_of(frame)[1])
        refused = {"kind": penstock.RequestError}
        self.refused(frame, "column 'i'", row, fields=["i"], **refused)
        self.refused(frame, "column 't'", "row 1", fields=["t"], **refused)
        self.refused(frame, "column 's'", "df['s'].sparse.to_dense()",
                     fields=["s"], **refused)
        found, _ = batch_of(frame, ["f"])
        self.assertEqual(found["f"].ravel().tolist(), [1, 2])
        texts = pandas.DataFrame({"f": [1.0, 2.0]})
        texts["t"] = pandas.Series(["a", "\ud800"], dtype=object)
        self.assertEqual(batch_of(texts, ["f"])[0]["f"].ravel().tolist(),
                         [1, 2])
        self.assertIn("row 1 has the str '\\ud800'", batch_of(texts)[1])

    def test_numbers_in_the_other_byte_order_are_read(self):
        import pandas
        frame = pandas.DataFrame({
            "f": numpy.array([1.5, numpy.nan], ">f4"),
            "i": numpy.array([-7, 2**40], ">i8"),
            "u": numpy.array([7, 255], ">u2")})
        found, _ = batch_of(frame)
        self.assertEqual([found[name].dtype.str for name in found],
                         ["<f4", "<i8", "<u2"])
        numpy.testing.assert_array_equal(found["f"], [1.5, numpy.nan])
        self.assertEqual(found["i"].tolist(), [-7, 2**40])
        self.assertEqual(found["u"].tolist(), [7, 255])

    def test_a_frame_of_which_nothing_can_be_read_is_refused_with_reasons(self):
        import pandas
        sparse = pandas.arrays.SparseArray([0, 0, 1])
        for columns, why in (
                ({"z": [1j, 2]}, "'z' holds complex numbers"),
                ({"s": sparse}, "'s' is sparse: 's' becomes a column for "
                 "all readers with df['s'].sparse.to_dense()"),
                ({"s": sparse, "z": [1j, 2, 3]}, "'z' holds complex numbers")):
            for fields in (None, {"x": {"column": "other"}}):
                self.refused(pandas.DataFrame(columns), "can be read", why,
                             kind=penstock.RequestError, fields=fields)
        found, text = batch_of(pandas.DataFrame({"s": sparse, "k": [1, 2, 3]}))
        self.assertEqual(found["k"].tolist(), [1, 2, 3])
        self.assertIn("left out: 's' is sparse", text)

    def test_a_name_within_another_word_is_not_meant(self):
        frame = self.frame.rename(columns={"o": "n"})
        batch, text = batch_of(frame)
        self.assertIn("left out: 'n' holds values of several types", text)
        batch, _ = batch_of(frame, {"nx": "x"}, where="x > 1 AND x IS NOT NULL")
        self.assertEqual(batch["nx"].ravel().tolist(), [2, 3, 4])
        self.refused(frame, "'n'", kind=penstock.RequestError,
                     where="n IS NOT NULL")

    def test_two_columns_of_one_name(self):
        import pandas
        frame = pandas.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
        self.refused(frame, "several columns 'a'", "rename them",
                     kind=penstock.RequestError)

    def test_one_column_alone(self):
        self.refused(self.frame["x"], "one column", "x.to_frame")


class NearToTables(Refused):
    @needs("pandas", "pyarrow")
    def test_the_interchange_protocol(self):
        import pandas

        class Frame:
            def __init__(self, frame):
                self.frame = frame

            def __dataframe__(self, **arguments):
                return self.frame.__dataframe__(**arguments)

        frame = pandas.DataFrame({"x": [1.0, 2.0], "n": [3, 4]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas wants it to go
            found, _ = batch_of(Frame(frame))
        self.assertEqual(found["x"].tolist(), [1, 2])
        self.assertEqual(found["n"].tolist(), [3, 4])

    @needs("polars")
    def test_of_polars(self):
        import polars
        frame = polars.DataFrame({"x": [1.0]})
        self.refused(frame["x"], "one column", "x.to_frame")
        self.refused(frame.lazy(), "call collect()")

    @needs("datasets")
    def test_of_datasets(self):
        import datasets
        data = datasets.Dataset.from_dict({"x": [1.0]})
        self.refused(datasets.DatasetDict({"train": data, "test": data}),
                     "'train', 'test'", "data['train']")
        self.refused(data.to_iterable_dataset(), "streaming=True")

    @needs("pandas")
    def test_several_tables(self):
        import pandas
        frame = pandas.DataFrame({"x": [1.0]})
        self.refused({"a": frame, "b": frame}, "pick one, data['a']")
        self.refused([frame, frame], "sources[0] is a DataFrame",
                     "df.to_parquet")

    def test_conditions_of_arrays(self):
        arrays = {"a": numpy.zeros(3)}
        self.refused(arrays, "where is for files", "array[mask]",
                     where="a > 1")
        self.refused(arrays, "key is for files", key="a")
        self.refused(arrays, "query is for files", query="SELECT 1")


if __name__ == "__main__":
    unittest.main()
