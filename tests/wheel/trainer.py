"""Built-in models with the wheel, and the libraries of each torch that is
installed somewhere: run by the Python of an environment that holds the wheel.

    trainer.py TORCH...    folders that hold torch/
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

from penstock import program


def newest_trainer():
    """The release of torch that the wheel's newest trainer is for: "2.15"."""
    parts = program.path().parents[1] / "lib/penstock"
    releases = [part.stem.rpartition("_")[2]
                for part in parts.glob("libpenstock_trainer_*.so")]
    return max(releases, key=lambda release: list(map(int, release.split("."))))


class Trainer(unittest.TestCase):
    torches = []

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
             "--target", "label", "--out", f"{pathlib.Path(torch).name}.json",
             "--json"], cwd=self.folder, text=True,
            capture_output=True, check=False,
            env={**os.environ, "PENSTOCK_TORCH_DIR": str(torch)})
        return done, json.loads(done.stdout[done.stdout.index("{"):])

    def test_trains_by_the_libraries_of_each_torch(self):
        first = None
        for torch in self.torches:
            with self.subTest(torch):
                done, report = self.train(torch)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("accuracy", report["metrics"]["val"])
                losses = [epoch["val_loss"] for epoch in report["epochs"]]
                print(torch, losses[-1])
                first = first or losses
                for one, other in zip(first, losses, strict=True):
                    self.assertAlmostEqual(one, other, delta=1e-5)

    def test_says_what_to_install_where_there_is_no_torch(self):
        _, said = self.train("/nowhere")
        self.assertEqual(said["error"]["code"], "trainer.part_missing")
        self.assertIn(f"torch=={newest_trainer()}.*", said["error"]["next"])
        self.assertIn("4 GB", said["error"]["next"])

    def test_names_the_releases_that_fit_where_another_is_installed(self):
        torch = self.folder / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "lib/libtorch_cpu.so").touch()
        (torch / "version.py").write_text("__version__ = '2.99.0+cu132'\n")
        _, said = self.train(self.folder)
        self.assertEqual(said["error"]["code"], "trainer.torch")
        self.assertIn("2.99.0", said["error"]["why"])
        self.assertIn(f"torch=={newest_trainer()}.*", said["error"]["next"])


if __name__ == "__main__":
    Trainer.torches = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
