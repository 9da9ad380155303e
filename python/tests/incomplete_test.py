"""A package that lacks its library, or has that of another build."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import penstock

FAILS = "raise ImportError({!r})\n"
MISSING = ("libpenstock_core.so: cannot open shared object file: "
           "No such file or directory")
OTHER = ("/x/_engine.abi3.so: undefined symbol: "
         "_ZN8penstock9own_buildEv")


class Incomplete(unittest.TestCase):
    def error(self, why):
        """What importing says where the engine cannot be loaded for a reason."""
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "penstock"
            package.mkdir()
            for file in pathlib.Path(penstock.__file__).parent.glob("*.py"):
                shutil.copy(file, package)
            (package / "_engine.py").write_text(FAILS.format(why))
            done = subprocess.run([sys.executable, "-c", "import penstock"],
                                  env={"PYTHONPATH": folder}, text=True,
                                  capture_output=True)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr.splitlines()[-1]

    def test_says_what_is_missing_and_what_to_do(self):
        for why in (MISSING, OTHER):
            with self.subTest(why=why):
                error = self.error(why)
                self.assertIn(why, error)
                self.assertIn("pip install --force-reinstall penstock", error)

    def test_other_errors_stay_as_they_are(self):
        self.assertEqual(self.error("libz.so.1: cannot open"),
                         "ImportError: libz.so.1: cannot open")


if __name__ == "__main__":
    unittest.main()
