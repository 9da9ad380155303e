"""Files, groups and data sets of h5py, arrays and groups of zarr, memory maps and
files of arrays: handed to a loader they are read by the engine, and the batches are
what the libraries themselves read."""
import json
import os
import pathlib
import struct
import tempfile
import unittest

import numpy

import penstock
from entry import main
from positions import WORKERS, has, rows_of

RANDOM = numpy.random.default_rng(1)
X = RANDOM.normal(size=(50, 4, 3)).astype("float32")
Y = numpy.arange(50, dtype="int16")
HALF = RANDOM.normal(size=(50, 6)).astype("float16")
NAMES = ["hum", "chirp", "click", "hum", "noise"] * 10


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def all_of(self, source, caches=("auto", "none"), **arguments):
        """The rows in their order, by field; the same for any number of
        workers and where none are kept."""
        found = None
        for workers in WORKERS:
            for cache in caches:
                with penstock.Loader(source, batch_size=8, num_workers=workers,
                                     cache=cache, device="cpu",
                                     **arguments) as loader:
                    names = list(loader.peek().keys())
                    rows = {name: rows_of(loader, name) for name in names}
                if found is not None:
                    for name in names:
                        numpy.testing.assert_array_equal(rows[name],
                                                         found[name])
                found = rows
        return found

    def refused(self, source, code, *texts):
        with self.assertRaises(penstock.RequestError) as caught:
            penstock.Loader(source, batch_size=8)
        self.assertEqual(caught.exception.code, code)
        for text in texts:
            self.assertIn(text, str(caught.exception))


@unittest.skipUnless(has("h5py"), "h5py is not installed")
class OfH5py(Folder):
    def setUp(self):
        super().setUp()
        import h5py

        self.h5py = h5py
        self.path = self.folder / "a.h5"
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=X, chunks=(8, 4, 3), shuffle=True,
                                compression="gzip")
            file["in/y"] = Y
            file.create_dataset("half", data=HALF, chunks=(16, 6),
                                compression="gzip")
            file.create_dataset("names", data=NAMES,
                                dtype=h5py.string_dtype())
            file["short"] = Y[:7]
            file["single"] = 3
            lists = file.create_dataset("lists", (50,),
                                        h5py.vlen_dtype("int32"))
            for row in range(50):
                lists[row] = numpy.arange(row % 4)
            file["refs"] = numpy.array([file["x"].ref] * 50,
                                       dtype=h5py.ref_dtype)

    def open(self, mode="r", **how):
        file = self.h5py.File(self.path, mode, **how)
        self.addCleanup(file.close)
        return file

    def test_data_sets_are_the_rows_that_h5py_reads(self):
        file = self.open()
        found = self.all_of({"x": file["x"], "y": file["in/y"],
                             "half": file["half"], "name": file["names"]})
        numpy.testing.assert_array_equal(found["x"], file["x"][:])
        numpy.testing.assert_array_equal(found["y"], file["in/y"][:])
        self.assertEqual(found["y"].dtype, "int16")
        self.assertEqual(found["half"].dtype, "float16")
        numpy.testing.assert_array_equal(found["half"], file["half"][:])
        self.assertEqual([sorted(set(NAMES))[at] for at in found["name"]],
                         NAMES)

    def test_data_sets_of_another_length_than_the_largest_can_be_named(self):
        with self.h5py.File(self.path, "a") as file:
            file["also"] = (Y[:7] - 4).astype("int8")
            file["also"].attrs["_Unsigned"] = "true"
        file = self.open()
        with penstock.Loader({"a": file["short"], "b": file["also"]},
                             batch_size=7, shuffle=False) as loader:
            batch = loader.peek().numpy()
        numpy.testing.assert_array_equal(batch["a"], Y[:7])
        numpy.testing.assert_array_equal(batch["b"],
                                         (Y[:7] - 4).astype("uint8"))
        with self.assertRaisesRegex(penstock.SourceError,
                                    "50 rows: '/x'; 7 rows: '/short'"):
            penstock.Loader({"x": file["x"], "y": file["short"]},
                            batch_size=7)

    def test_a_file_and_a_group_give_all_that_belongs_together(self):
        file = self.open()
        with penstock.Loader(file, batch_size=50) as loader:
            batch = loader.peek().numpy()
            self.assertRegex(repr(loader), "'short'.* has 7 rows")
            self.assertIn("left out: 'refs'", repr(loader))
        numpy.testing.assert_array_equal(batch["x"], X)
        numpy.testing.assert_array_equal(batch["in_y"], Y)
        numpy.testing.assert_array_equal(batch["half"], HALF)
        self.assertEqual(batch["lists"].shape, (50, 3))
        numpy.testing.assert_array_equal(batch["lists_lengths"],
                                         numpy.arange(50) % 4)
        self.assertNotIn("single", batch)
        with penstock.Loader(file["in"], batch_size=50) as loader:
            batch = loader.peek().numpy()
        self.assertEqual(list(batch), ["y"])
        numpy.testing.assert_array_equal(batch["y"], Y)

    def test_fields_say_what_becomes_of_them(self):
        file = self.open()
        found = self.all_of(file, fields={"w": {"array": {
            "column": "/in/y", "shape": [], "dtype": "float16",
            "window": {"length": 20, "stride": 10}}}})
        numpy.testing.assert_array_equal(
            found["w"],
            [Y[at:at + 20].astype("float16") for at in (0, 10, 20, 30)])

    def test_of_a_job_they_are_its_source(self):
        file = self.open()
        with penstock.open({"source": file["x"], "device": "cpu",
                            "loader": {"batch_size": 50, "shuffle": False}}
                           ) as loader:
            numpy.testing.assert_array_equal(rows_of(loader, "x"), X)

    def test_that_have_no_path_are_refused_with_the_reason(self):
        in_memory = self.h5py.File("memory", "w", driver="core",
                                   backing_store=False)
        self.addCleanup(in_memory.close)
        in_memory["x"] = X
        self.refused(in_memory["x"], "hdf5.h5py", "driver 'core'",
                     "data_set[:]")
        self.refused(in_memory, "hdf5.h5py", "driver 'core'")
        file = self.open()
        self.refused(file["refs"], "hdf5.h5py", "no rows")
        closed = file["x"]
        file.close()
        self.refused(closed, "hdf5.h5py", "closed")
        self.refused(self.open("r+")["x"], "hdf5.h5py", "open for writing")


@unittest.skipUnless(has("zarr"), "zarr is not installed")
class OfZarr(Folder):
    def group(self, version):
        import zarr

        group = zarr.open_group(str(self.folder / f"{version}.zarr"), mode="w",
                                zarr_format=version)
        for name, values, chunks in (("x", X, (8, 4, 3)), ("y", Y, (20,)),
                                     ("in/half", HALF, (16, 6)),
                                     ("flat", HALF[:, 0], (16,)),
                                     ("short", Y[:7], (7,))):
            array = group.create_array(name, shape=values.shape,
                                       dtype=values.dtype, chunks=chunks)
            array[...] = values
        scaled = group.create_array("scaled", shape=(50,), dtype="int16",
                                    chunks=(16,))
        scaled[...] = Y
        scaled.attrs.update({"scale_factor": 0.5, "add_offset": 1.0})
        return zarr.open_group(str(self.folder / f"{version}.zarr"), mode="r")

    def test_numbers_that_attributes_pack_are_those_that_xarray_reads(self):
        import zarr

        packed = {"listed": (Y, {"scale_factor": [0.5], "add_offset": 1}),
                  "missing": (Y, {"missing_value": -5}),
                  "unsigned": ((Y - 4).astype("int8"), {"_Unsigned": "true"})}
        expected = {"listed": Y * 0.5 + 1, "missing": Y.astype("float32"),
                    "unsigned": (Y - 4).astype("uint8")}
        group = zarr.open_group(str(self.folder / "packed.zarr"), mode="w")
        for name, (values, attributes) in packed.items():
            array = group.create_array(name, shape=values.shape,
                                       dtype=values.dtype, chunks=(20,))
            array[...] = values
            array.attrs.update(attributes)
        found = self.all_of({name: group[name] for name in packed})
        for name, values in expected.items():
            self.assertEqual(found[name].dtype, values.dtype)
            numpy.testing.assert_array_equal(found[name], values)

    def test_arrays_are_the_rows_that_zarr_reads(self):
        for version in (2, 3):
            group = self.group(version)
            found = self.all_of({"x": group["x"], "y": group["y"],
                                 "half": group["in/half"],
                                 "flat": group["flat"],
                                 "scaled": group["scaled"]})
            numpy.testing.assert_array_equal(found["x"], group["x"][:])
            numpy.testing.assert_array_equal(found["y"], Y)
            self.assertEqual(found["half"].dtype, "float16")
            numpy.testing.assert_array_equal(found["half"], HALF)
            self.assertEqual(found["flat"].dtype, "float16")
            numpy.testing.assert_array_equal(found["flat"], HALF[:, 0])
            numpy.testing.assert_array_equal(found["scaled"], Y * 0.5 + 1)

    def test_a_group_gives_all_that_belongs_together(self):
        for version in (2, 3):
            group = self.group(version)
            with penstock.Loader(group, batch_size=50) as loader:
                batch = loader.peek().numpy()
                self.assertRegex(repr(loader), "'short'.* has 7 rows")
            self.assertEqual(set(batch),
                             {"x", "y", "in_half", "flat", "scaled"})
            numpy.testing.assert_array_equal(batch["in_half"], HALF)
            with penstock.Loader(group["in"], batch_size=50) as loader:
                batch = loader.peek().numpy()
            self.assertEqual(list(batch), ["half"])

    def test_an_array_that_is_a_store_by_itself(self):
        import zarr

        array = zarr.create_array(str(self.folder / "one.zarr"), shape=Y.shape,
                                  dtype=Y.dtype, chunks=(20,))
        array[...] = Y
        found = self.all_of({"y": array})
        numpy.testing.assert_array_equal(found["y"], Y)

    def test_that_have_no_path_are_refused_with_the_reason(self):
        import zarr

        group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
        group.create_array("x", shape=(3,), dtype="int32")
        self.refused(group["x"], "zarr.store", "MemoryStore", "array[:]")
        self.refused(group, "zarr.store", "MemoryStore")
        other = self.group(3)
        self.refused({"x": other["x"], "z": group["x"]}, "zarr.store")


class OfFiles(Folder):
    """By their paths, and as memory maps of numpy, which are used where they
    lie."""

    def test_a_memory_map(self):
        numpy.save(self.folder / "x.npy", X)
        HALF.tofile(self.folder / "half.bin")
        found = self.all_of({
            "x": numpy.load(self.folder / "x.npy", mmap_mode="r"),
            "half": numpy.memmap(self.folder / "half.bin", "float16", "r",
                                 shape=HALF.shape)}, caches=("auto",))
        numpy.testing.assert_array_equal(found["x"], X)
        numpy.testing.assert_array_equal(found["half"], HALF)

    def test_members_of_one_name_are_refused(self):
        import io
        import warnings
        import zipfile
        with zipfile.ZipFile(self.folder / "x.npz", "w") as file, \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's, of the second one
            for first in 0, 10:
                held = io.BytesIO()
                numpy.save(held, numpy.arange(first, first + 3))
                file.writestr("a.npy", held.getvalue())
        with self.assertRaisesRegex(penstock.SourceError,
                                    "members 1 and 2 have this name"):
            penstock.Loader(self.folder / "x.npz")

    def test_files_of_arrays_by_their_paths(self):
        numpy.save(self.folder / "x.npy", HALF)
        numpy.savez(self.folder / "x.npz", array=HALF)
        header = json.dumps({"array": {
            "dtype": "F16", "shape": list(HALF.shape),
            "data_offsets": [0, HALF.nbytes]}}).encode()
        (self.folder / "x.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + HALF.tobytes())
        for name in ("x.npy", "x.npz", "x.safetensors"):
            for source in (self.folder / name,
                           f"npy:{os.fspath(self.folder / name)}"):
                found = self.all_of(source, fields={"x": {"array": {
                    "column": "array", "shape": [6], "dtype": "float16"}}})
                self.assertEqual(found["x"].dtype, "float16")
                numpy.testing.assert_array_equal(found["x"], HALF)


if __name__ == "__main__":
    main()
