"""The plugin for CUDA graphs, where the build has one: it exports one function, and
can be loaded without a driver where torch's CUDA packages are installed."""
import pathlib
import subprocess
import sys
import unittest

from penstock_cli import PROGRAM

PARTS = sorted((pathlib.Path(PROGRAM).resolve().parent.parent / "lib" /
                "penstock").glob("libpenstock_graphs_*.so"))
LOAD = """
import ctypes, os, sys
part = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
part.penstock_graph_part.restype = ctypes.c_void_p
assert part.penstock_graph_part()
"""
MISSING = "cannot open shared object file"


@unittest.skipUnless(PARTS, "no torch of this build has the headers of CUDA")
class GraphPart(unittest.TestCase):
    def test_is_loaded_without_a_driver(self):
        for part in PARTS:
            loaded = subprocess.run([sys.executable, "-c", LOAD, str(part)],
                                    capture_output=True, text=True, check=False)
            if MISSING in loaded.stderr and "libpenstock" not in \
                    loaded.stderr.split(MISSING)[0].splitlines()[-1]:
                self.skipTest("torch's CUDA packages are not installed: " +
                              loaded.stderr.splitlines()[-1])
            self.assertEqual(loaded.returncode, 0, loaded.stderr)

    def test_exports_one_function(self):
        for part in PARTS:
            names = subprocess.run(
                ["nm", "--dynamic", "--defined-only", "--demangle", str(part)],
                capture_output=True, text=True, check=True).stdout
            self.assertIn("penstock_graph_part", names)
            for line in names.splitlines():
                # What headers define for everybody is weak: V and W.
                self.assertNotRegex(line, r" [BDRT] (?!penstock_graph_part)")


if __name__ == "__main__":
    unittest.main()
