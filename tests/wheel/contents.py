"""What the wheel holds, against what docs/how-to/wheel.md says of it.

    contents.py WHEEL     needs pyelftools; tools/make_wheel runs it
"""
import pathlib
import posixpath
import re
import sys
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from wheel_contents import LIBRARIES, SYSTEM, Contents  # noqa: E402

ENGINE = "penstock/_engine.abi3.so"
PROGRAM = "penstock/bin/penstock"
PARTS = "penstock/lib/penstock/libpenstock_"
CORE = PARTS + "core.so"
CUDA = PARTS + "device_cuda.so"
POSTGRES = PARTS + "source_postgres.so"
SQLITE = PARTS + "source_sqlite.so"
HDF5 = {PARTS + "source_hdf5.so", "penstock/lib/penstock/penstock_hdf5_index"}
# Readers of files, which need nothing that is not bundled but the one for
# Parquet, which needs pyarrow's libraries; and what makes fields of their rows.
ARROW = {release: PARTS + f"source_arrow_{release}.so"
         for release in ("2400", "2500", "2600")}
STORES = {release: PARTS + f"object_store_{release}.so" for release in ARROW}
# tools/make_wheel --torch may leave some of them out.
TRAINERS = {PARTS + f"trainer_2.{minor}.so" for minor in range(11, 16)}
GRAPHS = {PARTS + f"graphs_2.{minor}.so" for minor in range(11, 16)}
FILES = {PARTS + f"source_{kind}.so" for kind in (
    "images", "npy", "text", "tfrecord", "token_store", "zarr")}
FIELDS = {PARTS + "audio.so", PARTS + "images.so"}
BESIDE = {
    **{path: {f"libarrow.so.{release}", f"libparquet.so.{release}"}
       for release, path in ARROW.items()},
    **{path: {f"libarrow.so.{release}", f"libarrow_s3.so.{release}"}
       for release, path in STORES.items()},
    **{path: {"libc10.so", "libtorch_cpu.so"} for path in TRAINERS},
    **{path: {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so",
              "libtorch_cuda.so"} for path in GRAPHS}}
MOST_BYTES, MOST_BYTES_WITH_CUDA = 50_000_000, 60_000_000
# RHEL 9 and its like have these, and so has everything after them.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}


class Wheel(unittest.TestCase):
    wheel = pathlib.Path()

    @classmethod
    def setUpClass(cls):
        cls.contents = Contents(cls.wheel)
        cls.said = (ROOT / "docs/how-to/wheel.md").read_text(encoding="utf-8")

    def test_is_for_every_python_from_3_10_on_and_glibc_from_2_34_on(self):
        self.assertRegex(self.wheel.name, "^penstock-[0-9.]+-cp310-abi3-"
                                          "manylinux_2_34_x86_64[.]whl$")

    def test_is_as_small_as_is_said(self):
        most = MOST_BYTES_WITH_CUDA if CUDA in self.contents.binaries else \
            MOST_BYTES
        self.assertLessEqual(self.wheel.stat().st_size, most)

    def test_holds_the_module_the_program_and_both_kinds_of_source(self):
        ours = {binary.path for binary in self.contents.ours()}
        self.assertTrue(ours & TRAINERS)
        self.assertEqual(ours - {CUDA} - TRAINERS - GRAPHS, {
            ENGINE, PROGRAM, CORE, SQLITE, POSTGRES,
            *ARROW.values(), *STORES.values()} | HDF5 | FILES | FIELDS)

    def test_finds_its_core_in_the_wheel(self):
        for binary in self.contents.ours():
            if "libpenstock_core.so" in binary.needs:
                with self.subTest(binary.path):
                    folder = posixpath.dirname(binary.path)
                    self.assertIn(posixpath.dirname(CORE), {
                        posixpath.normpath(place.replace("$ORIGIN", folder))
                        for place in binary.search})

    def test_needs_nothing_newer_than_its_tag_says(self):
        for binary in self.contents.binaries.values():
            for kind, newest in NEWEST.items():
                with self.subTest(binary.path, kind=kind):
                    self.assertLessEqual(binary.versions.get(kind, ()), newest)

    def test_finds_every_library_in_itself_or_on_every_system(self):
        bundled = {binary.name for binary in self.contents.bundled()}
        for binary in self.contents.binaries.values():
            with self.subTest(binary.path):
                self.assertLessEqual(set(binary.needs), bundled | SYSTEM |
                                     {"libpenstock_core.so"} |
                                     BESIDE.get(binary.path, set()))
                for folder in binary.search:
                    self.assertRegex(folder, r"^\$ORIGIN(/|$)")
                if set(binary.needs) & bundled:
                    up = "../" * (binary.path.count("/"))
                    place = {"$ORIGIN/" + up + LIBRARIES.rstrip("/")}
                    if binary.path.startswith(LIBRARIES):
                        place = {"$ORIGIN"}
                    self.assertLessEqual(place, set(binary.search))

    def test_loads_a_database_s_library_with_its_part_alone(self):
        def brought(path):
            return {name.split("-")[0].split(".")[0]
                    for name in self.contents.brought_by(path)}
        self.assertEqual(brought(CORE), {"libsimdjson", "libyaml"})
        self.assertEqual(brought(ENGINE), set())
        self.assertEqual(brought(PROGRAM), set())
        self.assertEqual(brought(SQLITE), {"libsqlite3"})
        for path in (*ARROW.values(), *STORES.values(),
                     *(TRAINERS | GRAPHS) & self.contents.binaries.keys()):
            self.assertEqual(brought(path), set())
        self.assertLessEqual({"libpq", "libssl", "libcrypto"},
                             brought(POSTGRES))
        if CUDA in self.contents.binaries:
            self.assertEqual(brought(CUDA), set())

    def test_names_no_folder_of_the_machine_that_it_was_built_on(self):
        # Where the service listens is on the machine that it runs on.
        for binary in self.contents.ours():
            named = binary.bytes.replace(b"/tmp/penstock-UID", b"")
            for folder in (str(ROOT).encode() + b"/", b"/tmp/"):
                with self.subTest(binary.path, folder=folder):
                    self.assertFalse(folder in named, "it is named")

    def test_keeps_the_program_executable(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertEqual(wheel.getinfo(PROGRAM).external_attr >> 16 & 0o111,
                             0o111)

    def test_brings_the_licence_of_every_library(self):
        licences = [name.split("/")[-1] for name in self.contents.packed
                    if "/licenses/bundled/" in name]
        for package in ("libpq5_", "libssl3_", "libgnutls30_", "libsqlite3-0_",
                        "libsimdjson", "libyaml-0-2_", "nlohmann-json3-dev_",
                        "libcli11-dev_", "LGPL-2.1.txt", "LGPL-3.txt", "GPL-3.txt"):
            with self.subTest(package):
                self.assertTrue([name for name in licences
                                 if name.startswith(package)])
        self.assertGreaterEqual(len(licences), len(self.contents.bundled()))

    def test_is_told_in_the_documentation(self):
        _, _, inside = self.said.partition("## What is inside")
        table = set(re.findall(r"`(lib[A-Za-z0-9_+-]+)`",
                               inside.partition("\n## ")[0]))
        names = {re.split(r"-[0-9]|[.]", binary.plain_name)[0]
                 for binary in self.contents.bundled()}
        self.assertEqual(table, names)


if __name__ == "__main__":
    Wheel.wheel = pathlib.Path(sys.argv.pop(1))
    unittest.main()
