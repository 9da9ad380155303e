"""{"array": {"column": ...}} without a shape: that of the column, where its file
declares one."""
import contextlib
import pathlib
import tempfile
import unittest

import numpy as np

import penstock
from entry import main
from positions import has


class OwnShapes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)

    def check(self, file, column="x"):
        """Both ways to open it give the rows in their own shape."""
        fields = {"x": {"array": {"column": column}}}
        kind = {"npz": "npy", "h5": "hdf5"}.get(file[-3:].strip("."),
                                                file.rpartition(".")[2])
        job = {"source": {"kind": kind, "path": str(self.folder / file)},
               "fields": fields, "loader": {"batch_size": 4, "shuffle": False}}
        with contextlib.closing(penstock.open(job)) as loader, \
                penstock.Loader(self.folder / file, fields,
                                batch_size=4) as same:
            np.testing.assert_array_equal(loader.peek().host()["x"],
                                          self.values)
            np.testing.assert_array_equal(same.peek().host()["x"], self.values)

    def test_of_arrays_of_numpy(self):
        np.savez(self.folder / "a.npz", x=self.values, y=np.arange(4))
        self.check("a.npz")

    @unittest.skipUnless(has("h5py"), "h5py is not installed")
    def test_of_hdf5(self):
        import h5py
        with h5py.File(self.folder / "a.h5", "w") as file:
            file["x"] = self.values
        self.check("a.h5", "/x")

    def test_a_shape_that_is_given_counts(self):
        np.savez(self.folder / "a.npz", x=self.values)
        with penstock.Loader(
                self.folder / "a.npz",
                {"x": {"array": {"column": "x", "shape": [3, 2]}}},
                batch_size=4) as loader:
            np.testing.assert_array_equal(loader.peek().host()["x"],
                                          self.values.reshape(4, 3, 2))

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_of_tensors_and_lists_of_arrow(self):
        import pyarrow
        flat = pyarrow.FixedSizeListArray.from_arrays(
            pyarrow.array(self.values.ravel()), 6)
        tensors = pyarrow.ExtensionArray.from_storage(
            pyarrow.fixed_shape_tensor(pyarrow.float32(), (2, 3)), flat)
        self.write(pyarrow.table({"x": tensors}))
        for file in ("a.parquet", "a.arrow"):
            self.check(file)
            with penstock.Loader(self.folder / file, batch_size=4) as loader:
                np.testing.assert_array_equal(loader.peek().host()["x"],
                                              self.values)
        self.values = self.values.reshape(4, 6)
        self.write(pyarrow.table({"x": flat}))
        self.check("a.parquet")

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_of_array2d_of_hugging_face(self):
        """Whose files hold lists of lists, and the shape beside them."""
        import pyarrow
        field = pyarrow.field("x", pyarrow.list_(pyarrow.list_(
            pyarrow.float32())), metadata={
                "ARROW:extension:name":
                "datasets.features.features.Array2DExtensionType",
                "ARROW:extension:metadata": '[[2, 3], "float32"]'})
        self.write(pyarrow.table([self.values.tolist()],
                                 schema=pyarrow.schema([field])))
        for file in ("a.parquet", "a.arrow"):
            self.check(file)
            with penstock.Loader(self.folder / file, batch_size=4) as loader:
                np.testing.assert_array_equal(loader.peek().host()["x"],
                                              self.values)

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_of_tables_in_memory(self):
        """As data sets of Hugging Face are, of which Array2D is a type."""
        import pyarrow

        class Array2D(pyarrow.ExtensionType):
            shape, value_type = (2, 3), "float32"

            def __init__(self):
                super().__init__(
                    pyarrow.list_(pyarrow.list_(pyarrow.float32())),
                    "own.Array2D")

            def __arrow_ext_serialize__(self):
                return b""

        tensor = pyarrow.fixed_shape_tensor(pyarrow.float32(), (2, 3))
        for kind, storage in (
                (Array2D(), pyarrow.array(self.values.tolist(),
                                          Array2D().storage_type)),
                (tensor, pyarrow.FixedSizeListArray.from_arrays(
                    pyarrow.array(self.values.ravel()), 6))):
            table = pyarrow.table({
                "x": pyarrow.ExtensionArray.from_storage(kind, storage),
                "y": list(range(4))})
            for fields in (None, {"x": {"array": {"column": "x"}}}):
                with penstock.Loader(table, fields, batch_size=4) as loader:
                    np.testing.assert_array_equal(loader.peek().host()["x"],
                                                  self.values)

    def write(self, table):
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(table, self.folder / "a.parquet")
        with pyarrow.ipc.new_file(self.folder / "a.arrow",
                                  table.schema) as file:
            file.write(table)


if __name__ == "__main__":
    main()
