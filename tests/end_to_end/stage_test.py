"""Files that are copied before they are read (source.stage): the rows, their
order and their stores stay what they are, and what is killed goes on."""
import os
import pathlib
import unittest

from penstock_cli import Case


def out_of_memory(path):
    """The system no longer keeps the file in memory."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def is_in_memory(folder):
    """Whether files of this folder are always in memory (tmpfs)."""
    place = str(pathlib.Path(folder).resolve())
    kinds = [(mount, kind) for _, mount, kind, *_ in (
        line.split() for line in
        pathlib.Path("/proc/mounts").read_text().splitlines())
        if mount == "/" or place == mount or place.startswith(mount + "/")]
    # In a chroot there may be none.
    return max(kinds, key=lambda entry: len(entry[0]), default=("", ""))[1] == "tmpfs"


class Staged(Case):
    def setUp(self):
        super().setUp()
        if is_in_memory(self.folder):
            self.skipTest("the folder for temporary files is in memory")
        self.good_start()
        self.stage = ["--set", "source.stage=copies"]

    def copies(self):
        return sorted((self.folder / "copies").glob("*/0/d.sqlite"))

    def test_the_rows_and_their_order_are_those_of_the_original(self):
        plain = self.batches("--steps", "0:8")
        out_of_memory(self.folder / "d.sqlite")
        answer = self.succeed("batch", "job.json", "--steps", "0:8",
                              *self.stage)
        self.assertEqual(answer.lines(), plain)
        [copy] = self.copies()
        self.assertEqual(copy.read_bytes(),
                         (self.folder / "d.sqlite").read_bytes())
        # Later runs read it, wherever the original is kept.
        before = copy.stat().st_mtime_ns, copy.stat().st_ino
        self.assertEqual(self.batches("--steps", "0:8", *self.stage), plain)
        self.assertEqual((copy.stat().st_mtime_ns, copy.stat().st_ino), before)

    def test_what_is_in_memory_already_is_not_copied(self):
        (self.folder / "d.sqlite").read_bytes()
        self.train(*self.stage)
        self.assertEqual(self.copies(), [])

    def test_a_store_is_found_with_and_without_the_copy(self):
        kept = ["--set", "loader.cache=disk",
                "--set", "loader.cache_dir=stores", *self.stage]
        out_of_memory(self.folder / "d.sqlite")
        first = self.train(*kept)
        self.assertEqual(len(self.copies()), 1)
        self.succeed("cache", "prune", "--stage", "--dir", "copies",
                     "--unused-days", "0", "--yes")
        self.assertEqual(self.copies(), [])
        why = self.succeed("cache", "why", "job.json", "--json", *kept).json()
        self.assertTrue(why["hit"], why)
        second = self.train(*kept)
        self.assertNotIn("scan", second["plan"])
        self.assertEqual(second["dataset"], first["dataset"])

    def test_a_run_is_resumed_without_the_copy(self):
        out_of_memory(self.folder / "d.sqlite")
        self.train(*self.stage, "--set", "train.max_steps=3")
        self.succeed("cache", "prune", "--stage", "--dir", "copies",
                     "--unused-days", "0", "--yes")
        report = self.succeed("train", "--resume", "runs/latest", "--json",
                              "--set", "train.max_steps=4").json()
        self.assertEqual(report["steps"], 1)

    def test_the_plan_says_what_it_takes(self):
        out_of_memory(self.folder / "d.sqlite")
        answer = self.succeed("train", "job.json", "--plan", *self.stage)
        self.assertIn("source.stage: 1 of 1 files", answer.out + answer.err)
        self.assertEqual(self.copies(), [])

    def test_another_users_folder_and_an_open_database_are_refused(self):
        (self.folder / "d.sqlite-wal").write_bytes(b"abc")
        self.refused(self.run_it("train", "job.json", "--json", *self.stage),
                     "request", "source.stage", "source.stage")


if __name__ == "__main__":
    unittest.main()
