"""The plugin for NCCL, where the build has one: it can be loaded without a driver,
and takes all of NCCL and gloo from torch."""
import pathlib
import subprocess
import sys
import unittest

from penstock_cli import PROGRAM

PARTS = sorted((pathlib.Path(PROGRAM).resolve().parent.parent / "lib" /
                "penstock").glob("libpenstock_nccl_*.so"))
LOAD = """
import ctypes, os, sys
part = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
part.penstock_nccl_part.restype = ctypes.c_void_p
assert part.penstock_nccl_part()
"""


@unittest.skipUnless(PARTS, "no torch of this build has the headers of NCCL")
class NcclPart(unittest.TestCase):
    def test_is_loaded_without_a_driver(self):
        for part in PARTS:
            loaded = subprocess.run([sys.executable, "-c", LOAD, str(part)],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(loaded.returncode, 0, loaded.stderr)

    def test_defines_nothing_of_nccl(self):
        for part in PARTS:
            names = subprocess.run(
                ["nm", "--dynamic", "--defined-only", "--demangle", str(part)],
                capture_output=True, text=True, check=True).stdout
            self.assertIn("penstock_nccl_part", names)
            for line in names.splitlines():
                # What headers define for everybody is weak: V and W.
                self.assertNotRegex(line, r" [BDRT] (nccl[A-Z]|gloo::|c10d::)")


if __name__ == "__main__":
    unittest.main()
