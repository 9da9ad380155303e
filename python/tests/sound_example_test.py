"""examples/sound: its events are made, trained on by the command line, and are the
same as spectrograms in HDF5 and as sounds."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import penstock
from entry import main
from penstock import program
from penstock.job_sections import without_comments
from positions import has, run_program

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/sound"


def parts():
    """Of the program; "decoder" is what decodes sounds."""
    there = {part["part"] for part in
             json.loads(run_program("doctor", "--json"))["parts"]
             if part["there"]}
    libraries = pathlib.Path(program.path()).resolve().parents[1] / "lib"
    if any(libraries.rglob("libpenstock_audio.so")):
        there.add("decoder")
    return there


PARTS = parts()


class Example(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "job.json").write_text((EXAMPLE / "job.json").read_text())

    def make(self, to, events):
        done = subprocess.run(
            [sys.executable, "-B", EXAMPLE / "make_events.py", to, str(events)],
            cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{events} events", done.stdout)

    def rows_of(self, job, path, kind):
        """All rows in their order, without what is drawn."""
        job = json.loads(without_comments((EXAMPLE / job).read_text()))
        del job["fields"]["x"][kind]["augment"], job["split"]
        job["source"]["path"] = str(self.folder / path)
        job.update(device="cpu", loader={"batch_size": 20, "shuffle": False})
        with penstock.open(job) as loader:
            return {name: array.copy() for name, array
                    in loader.peek().numpy().items()}

    @unittest.skipUnless(has("h5py"), "h5py is not installed")
    @unittest.skipUnless({"trainer", "hdf5"} <= PARTS,
                         "the trainer or the part for HDF5 was not built")
    def test_trains_to_more_than_95_percent_of_held_out_events(self):
        self.make("events.h5", 1500)
        report = json.loads(run_program("train", "job.json", "--json",
                                        cwd=self.folder))
        last = report["epochs"][-1]
        self.assertGreater(last["val_accuracy"], 0.95)
        self.assertGreater(last["val_least_recall"], 0.8)

    @unittest.skipUnless(has("h5py"), "h5py is not installed")
    @unittest.skipUnless({"audio", "decoder", "hdf5"} <= PARTS,
                         "the part for sounds or for HDF5 was not built")
    def test_spectrograms_are_those_of_the_sounds(self):
        self.make("events.h5", 20)
        self.make("events/", 20)
        kept = self.rows_of("job.json", "events.h5", "array")
        made = self.rows_of("sounds.json", "events", "audio")
        numbers = [int(path.stem) for path in
                   sorted((self.folder / "events").rglob("*.wav"))]
        self.assertEqual(made["x"].shape, (20, 1, 32, 63))
        # In decibels, where 16 bits round by less than 0.04.
        numpy.testing.assert_allclose(kept["x"][numbers], made["x"][:, 0],
                                      atol=0.05)
        numpy.testing.assert_array_equal(kept["y"][numbers], made["y"])


if __name__ == "__main__":
    main()
