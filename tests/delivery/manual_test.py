#!/usr/bin/env python3
"""The man pages and completions say what the program's help says.

    PENSTOCK=build/bin/penstock manual_test.py
"""
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["PENSTOCK"]


def said(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.write(cls.folder / "share")
        cls.man = {file.name.split(".")[0]: gzip.decompress(
            file.read_bytes()).decode().replace(r"\-", "-")
            for file in (cls.folder / "share").glob("man/*/*.gz")}

    @staticmethod
    def write(folder):
        subprocess.run(
            [sys.executable, ROOT / "tools/write_manual.py", PROGRAM, folder],
            check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})

    def words(self, *line):
        """What bash offers for the last word of a line."""
        script = (f"source {self.folder}/share/bash-completion/completions/"
                  "penstock\nCOMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n"
                  "_penstock\nprintf '%s\\n' \"${COMPREPLY[@]}\"")
        return said("bash", "-c", script, "bash", *line).split()

    def test_every_verb_has_a_page_with_all_its_options(self):
        listed = said(PROGRAM, "--help").partition("Subcommands:")[2]
        verbs = re.findall(r"^  ([a-z-]+)  ", listed, re.M)
        self.assertGreater(len(verbs), 15)
        for verb in verbs:
            page = self.man[f"penstock-{verb}"]
            for flag in re.findall(r"^  (--[a-z-]+)", said(
                    PROGRAM, verb, "--help"), re.M):
                self.assertIn(rf"\fB{flag}\fR", page, verb)
        self.assertIn("penstock-cache-why", self.man)

    def test_the_page_of_the_job_file_has_its_settings(self):
        page = self.man["penstock-job"]
        for setting in ("source.path", "fields.NAME.columns", "split.train",
                        "loader.batch_size", "train.epochs", "output.dir"):
            self.assertRegex(page, rf"(?m)^\\fB{re.escape(setting)}\\fR$")

    def test_the_date_of_a_page_is_that_of_the_sources(self):
        self.assertIn("1970-01-02", self.man["penstock"].splitlines()[0])

    def test_the_same_program_gives_the_same_bytes(self):
        self.write(self.folder / "again")
        for file in (self.folder / "share").rglob("*"):
            if file.is_file():
                other = self.folder / "again" / file.relative_to(
                    self.folder / "share")
                self.assertEqual(file.read_bytes(), other.read_bytes(), file)

    def test_bash_completes_verbs_options_and_choices(self):
        self.assertEqual(self.words("penstock", "quick"), ["quickstart"])
        self.assertEqual(self.words("penstock", "doctor", "--qu"),
                         ["--quick-train"])
        self.assertEqual(self.words("penstock", "cache", "w"), ["why"])
        self.assertEqual(self.words("penstock", "cache", "why", "--s"),
                         ["--set"])
        self.assertEqual(self.words("penstock", "batch", "--split", ""),
                         ["train", "val", "test"])


if __name__ == "__main__":
    unittest.main()
