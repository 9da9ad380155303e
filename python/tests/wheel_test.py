"""The wheel: what it holds, and that it works without the build folder.

PENSTOCK_WHEEL_BUILD names the folder that it is built in.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

from entry import main
from positions import has

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "python/penstock"
MOST_BYTES = 15_000_000


@unittest.skipUnless(has("build") and has("scikit_build_core"),
                     "build and scikit-build-core are not installed")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        place = os.environ.get("PENSTOCK_WHEEL_BUILD")
        done = subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation",
             *([f"-Cbuild-dir={place}"] if place else []),
             "-Ccmake.define.PENSTOCK_WARNINGS_AS_ERRORS=ON", "--outdir",
             folder.name, str(ROOT)], capture_output=True, text=True,
            check=False)
        if done.returncode:
            raise AssertionError(done.stdout[-4000:] + done.stderr[-4000:])
        (cls.wheel,) = cls.folder.glob("*.whl")
        with zipfile.ZipFile(cls.wheel) as wheel:
            cls.names = set(wheel.namelist())

    def test_is_for_every_python_from_3_10_on(self):
        self.assertIn("-cp310-abi3-linux_", self.wheel.name)
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)

    def test_holds_the_package_the_program_and_its_parts(self):
        python = {"penstock/" + str(file.relative_to(SOURCE))
                  for file in SOURCE.rglob("*.py")}
        self.assertIn("penstock/_dataloader/server.py", python)
        self.assertEqual({name for name in self.names
                          if name.endswith(".py")}, python)
        self.assertLessEqual({
            "penstock/_engine.abi3.so", "penstock/_engine.pyi",
            "penstock/py.typed", "penstock/bin/penstock",
            "penstock/lib/penstock/libpenstock_source_sqlite.so"}, self.names)
        self.assertFalse({name for name in self.names if "test" in name})

    def test_works_from_where_it_is_installed(self):
        site = self.folder / "site"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
             "--no-index", "--target", str(site), str(self.wheel)], check=True)
        base = self.folder / "d.sqlite"
        text = """
import subprocess, sys
import penstock
from penstock import program
print(penstock.__file__)
done = subprocess.run([program.path(), "demo", "positions", "--rows", "100",
                       "--seed", "1", "--to", f"sqlite:{sys.argv[1]}"],
                      check=True, capture_output=True)
loader = penstock.Loader(f"sqlite:{sys.argv[1]}#measurements", ["tx_lat"], 10)
print(sum(len(batch.tx_lat.numpy()) for batch in loader))
print(sum(len(b) for b in penstock.DataLoader(range(100), 10, num_workers=1)))
"""
        done = subprocess.run([sys.executable, "-c", text, str(base)],
                              env={**os.environ, "PYTHONPATH": str(site)},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines(), [
            str(site / "penstock/__init__.py"), "100", "100"], done.stderr)


if __name__ == "__main__":
    main()
