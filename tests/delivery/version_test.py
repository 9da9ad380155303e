#!/usr/bin/env python3
"""The version is written once, in CMakeLists.txt: the program, the package and
the change log say the same.

    PENSTOCK=build/bin/penstock [PYTHONPATH=build/python] version_test.py
"""
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def line_of(name, pattern):
    return re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)


class Version(unittest.TestCase):
    version = line_of("CMakeLists.txt", r"^project\(penstock VERSION ([\d.]+)")[1]

    def test_is_what_the_program_says(self):
        said = subprocess.run([os.environ["PENSTOCK"], "--version"], text=True,
                              check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(said, f"penstock {self.version}\n")

    @unittest.skipUnless(os.environ.get("PYTHONPATH"), "no Python package")
    def test_is_what_the_package_says(self):
        said = subprocess.run(
            [sys.executable, "-c", "import penstock\n"
             "print(penstock.__version__)"], text=True, check=True,
            stdout=subprocess.PIPE).stdout
        self.assertEqual(said, f"{self.version}\n")

    def test_is_read_by_the_wheel_from_the_same_line(self):
        with open(ROOT / "pyproject.toml", "rb") as file:
            settings = tomllib.load(file)
        self.assertNotIn("version", settings["project"])
        read = settings["tool"]["scikit-build"]["metadata"]["version"]
        text = (ROOT / read["input"]).read_text(encoding="utf-8")
        self.assertEqual(re.search(read["regex"], text)["value"], self.version)

    def test_is_the_newest_of_the_change_log(self):
        newest = line_of("CHANGELOG.md", r"^## (\S+)")[1]
        self.assertEqual(newest, self.version)


if __name__ == "__main__":
    unittest.main()
