"""Built-in models with the wheel, and the libraries of a torch that is installed
somewhere: run by the Python of an environment that holds the wheel.

    trainer.py TORCH [unittest's arguments]    TORCH: a folder that holds torch/
"""
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest


class Trainer(unittest.TestCase):
    torch = ""

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        draw = random.Random(1)
        with open(self.folder / "train.csv", "w", newline="",
                  encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["width", "height", "label"])
            for _ in range(500):
                width, height = draw.random(), draw.random()
                rows.writerow([width, height, int(width > height)])

    def train(self, torch):
        done = subprocess.run(
            [sys.executable, "-m", "penstock", "train", "--init", "train.csv",
             "--target", "label", "--json"], cwd=self.folder, text=True,
            capture_output=True, check=False,
            env={**os.environ, "PENSTOCK_TORCH_DIR": str(torch)})
        return done, json.loads(done.stdout[done.stdout.index("{"):])

    def test_trains_by_the_libraries_of_torch(self):
        done, report = self.train(self.torch)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("accuracy", report["metrics"]["val"])

    def test_says_what_to_install_where_there_is_no_torch(self):
        _, said = self.train("/nowhere")
        self.assertEqual(said["error"]["code"], "trainer.part_missing")
        self.assertIn("torch==2.11", said["error"]["next"])
        self.assertIn("4 GB", said["error"]["next"])

    def test_names_the_release_that_fits_where_another_is_installed(self):
        torch = self.folder / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "lib/libtorch_cpu.so").touch()
        (torch / "version.py").write_text("__version__ = '2.15.0+cu132'\n")
        _, said = self.train(self.folder)
        self.assertEqual(said["error"]["code"], "trainer.torch")
        self.assertIn("2.15.0", said["error"]["why"])
        self.assertIn("2.11", said["error"]["next"])


if __name__ == "__main__":
    Trainer.torch = sys.argv.pop(1)
    unittest.main()
