"""Data sets of h5py that are handed in: the section that opens them by their
path. Stand-ins have what is asked of h5py's own."""
import pathlib
import types
import unittest

import numpy

from penstock.errors import RequestError, SourceError
from penstock._rows.hdf5 import section_of


class Dataset:
    """As h5py.Dataset looks from outside."""

    def __init__(self, name, values, path="/data/a.h5", mode="r",
                 driver="sec2"):
        self.name, self.dtype = name, numpy.asarray(values).dtype
        self.shape, self.ndim = numpy.shape(values), numpy.ndim(values)
        self.size, self.attrs = numpy.size(values), {}
        self.file = types.SimpleNamespace(filename=path, mode=mode,
                                          driver=driver)


class Group(dict):
    """As h5py.File looks from outside."""

    def __init__(self, path, sets):
        super().__init__(sets)
        self.name = "/"
        self.file = Dataset("/", 0, path).file

    def __bool__(self):
        return True

    def get(self, name, getlink):
        return type("HardLink", (), {})()


Group.__module__ = "h5py._hl.group"
Dataset.__module__ = "h5py._hl.dataset"

REFUSED = (pathlib.Path(__file__).resolve().parents[2]
           / "tests/data/hdf5/refused.h5")
X = numpy.zeros((9, 2, 3), "float32")
Y = numpy.zeros(9, "int16")


class DataSets(unittest.TestCase):
    def test_of_a_file_are_opened_by_its_path(self):
        section, fields, _ = section_of({"x": Dataset("/x", X),
                                         "y": Dataset("/in/y", Y)})
        self.assertEqual(section["kind"], "hdf5")
        self.assertEqual(section["path"], "/data/a.h5")
        self.assertEqual(fields, {
            "x": {"array": {"column": "/x", "shape": [2, 3],
                            "dtype": "float32", "finite": False}},
            "y": {"column": "/in/y", "dtype": "int16"}})

    def test_one_by_itself_is_x(self):
        self.assertEqual(list(section_of(Dataset("/a", X))[1]), ["x"])

    def test_keep_their_dtype_where_a_tensor_has_it(self):
        for given, made in (("float16", "float32"), ("bool", "bool"),
                            ("float64", "float64"), ("uint64", "int64")):
            fields = section_of(Dataset("/a", numpy.zeros(3, given)))[1]
            self.assertEqual(fields["x"]["dtype"], made)
        halves = section_of(Dataset("/a", numpy.zeros((3, 2), "float16")))[1]
        self.assertEqual(halves["x"]["array"]["dtype"], "float16")

    def test_of_texts_are_categories(self):
        fields = section_of(Dataset("/t", numpy.array([b"a", b"b"])))[1]
        self.assertEqual(fields["x"], {"category": {"column": "/t"}})

    def test_anything_else_is_none(self):
        for other in ("a.h5", {"x": X}, X, {}, None):
            self.assertIsNone(section_of(other))

    def test_beside_arrays_in_memory_are_refused_with_a_way_out(self):
        with self.assertRaises(RequestError) as caught:
            section_of({"x": Dataset("/x", X), "y": Y})
        self.assertEqual(caught.exception.code, "hdf5.h5py")
        for said in ("'y' is an array in memory", "'x' is in a file",
                     "write y to the file", "x[:]"):
            self.assertIn(said, str(caught.exception))

    def test_of_a_group_that_cannot_be_read_are_left_out_with_the_reason(self):
        rows = numpy.zeros(20)
        group = Group(str(REFUSED), {
            name[1:]: Dataset(name, rows, REFUSED)
            for name in ("/again", "/away", "/x")})
        try:
            section, fields, left_out = section_of(group)
        except SourceError as error:
            if error.code != "source.part_missing":
                raise
            self.skipTest("built without HDF5")
        self.assertEqual(section["path"], str(REFUSED))
        self.assertEqual(sorted(fields), ["again", "x"])
        self.assertEqual(len(left_out), 1)
        self.assertIn("'away': ", left_out[0])

    def test_that_have_no_path_are_refused_with_the_reason(self):
        for bad, why in (
                (Dataset("/x", X, mode="r+"), "open for writing"),
                (Dataset("/x", X, driver="core"), "driver 'core'"),
                ({"x": Dataset("/x", X),
                  "y": Dataset("/y", Y, path="/data/b.h5")}, "several files"),
                (Dataset("/x", numpy.zeros(3, "i4,f8")), "no rows")):
            with self.assertRaises(RequestError) as caught:
                section_of(bad)
            self.assertIn(why, str(caught.exception))
            self.assertEqual(caught.exception.code, "hdf5.h5py")


if __name__ == "__main__":
    unittest.main()
