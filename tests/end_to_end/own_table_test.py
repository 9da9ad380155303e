"""The commands of docs/tutorials/own_table.md, run in a clean folder."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from penstock_cli import PROGRAM, Case, has_part

ROOT = pathlib.Path(__file__).resolve().parents[2]


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the part that reads CSV, or the trainer, was not built")
class OwnTable(Case):
    def test_the_page_does_what_it_says(self):
        blocks = re.findall(r"^```(\w+)\n(.*?)^```",
                            (ROOT / "docs/tutorials/own_table.md").read_text(),
                            re.M | re.S)
        path = os.pathsep.join(
            [str(pathlib.Path(PROGRAM).parent), os.environ["PATH"]])
        said = ""
        for language, text in blocks:
            if language == "python":  # tested with the Python package
                break
            if language == "text":
                for line in text.splitlines():
                    self.assertIn(line, said)
                continue
            done = subprocess.run(
                ["sh", "-euc", text], cwd=self.folder, capture_output=True,
                text=True, timeout=200, check=False,
                env={**os.environ, "PATH": path,
                     "PENSTOCK_EXAMPLES": str(ROOT / "examples")})
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, 0, text + said)
        report = json.loads(
            (self.folder / "runs/latest/report.json").read_text())
        self.assertGreater(report["metrics"]["val"]["accuracy"], 0.8)
        self.assertEqual(report["settings"]["loader"]["balance"], "species")


if __name__ == "__main__":
    unittest.main()
