"""Folders that cannot be written to, and disks that are full: an error that
names the folder, and every earlier run is still there."""
import resource
import shutil
import subprocess
import unittest

from penstock_cli import Answer, Case, PROGRAM, tree_of, without_roots_rights

SMALL_DISK = '''
mkdir small && mount -t tmpfs -o size="$1" none small || exit 99
[ -f fill ] && cp fill small/
shift
"$@"
code=$?
mkdir left && cp -a small/. left/
exit $code
'''


def on_small_disk(cwd, size, *arguments):
    """Runs the program where `small/` is a disk of that size, seen by nobody
    else; what was on it is afterwards in `left/`. None: not possible here."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SMALL_DISK, "sh", size, PROGRAM,
         *arguments], cwd=cwd, capture_output=True, text=True, timeout=60,
        check=False)
    possible = done.returncode not in (1, 99, 127)
    return Answer(done.returncode, done.stdout, done.stderr) if possible \
        else None


class OutputFolder(Case):
    def test_a_file_in_place_of_the_folder(self):
        self.good_start()
        (self.folder / "runs").write_text("mine")
        self.refuse("request", "file.write", "runs", "output.dir",
                    "a folder")
        self.assertEqual((self.folder / "runs").read_text(), "mine")

    def test_a_folder_that_may_not_be_written_to(self):
        prefix = without_roots_rights()
        if prefix is None:
            self.skipTest("root may write everywhere here")
        self.good_start()
        self.train()
        runs = self.folder / "runs"
        before = tree_of(runs)
        runs.chmod(0o555)
        self.addCleanup(runs.chmod, 0o755)
        answer = self.run_it("train", "job.json", "--json", prefix=prefix)
        self.refused(answer, "request", "file.write", "runs",
                     "Permission denied", "output.dir")
        self.assertEqual(tree_of(runs), before)

    def test_a_link_latest_that_cannot_be_replaced_leaves_no_half_run(self):
        self.good_start()
        (self.folder / "runs" / "latest").mkdir(parents=True)
        self.refuse("request", "file.write", "latest", "output.dir")
        self.assertEqual([path.name for path in
                          (self.folder / "runs").iterdir()], ["latest"])

    def test_a_file_named_latest_is_not_replaced(self):
        self.good_start()
        runs = self.folder / "runs"
        runs.mkdir()
        (runs / "latest").write_text("mine")
        self.refuse("request", "file.write", "latest", "not a link",
                    "output.dir")
        self.assertEqual((runs / "latest").read_text(), "mine")
        self.assertEqual([path.name for path in runs.iterdir()], ["latest"])

    def test_a_folder_is_made_with_its_parents(self):
        self.good_start(output={"dir": "a/b/c"})
        self.assertTrue(self.train()["run"].startswith("a/b/c/"))

    def test_batch_names_its_own_option(self):
        self.good_start()
        (self.folder / "out").write_text("mine")
        self.refuse("request", "file.write", "out", "--out",
                    arguments=["batch", "job.json", "--out", "out"])
        self.assertEqual((self.folder / "out").read_text(), "mine")


class FullDisk(Case):
    def test_no_room_for_the_first_file(self):
        self.good_start(output={"dir": "small/runs"})
        (self.folder / "fill").write_bytes(bytes(8192))
        answer = on_small_disk(self.folder, "8k", "train", "job.json",
                               "--json")
        if answer is None:
            self.skipTest("no mounts of our own here")
        self.refused(answer, "request", "file.write", "small/runs",
                     "No space left", "output.dir")
        self.assertEqual([p.name for p in (self.folder / "left").rglob("*")
                          if p.is_file()], ["fill"])

    def test_no_room_in_the_middle_of_the_run(self):
        self.good_start(output={"dir": "small/runs"},
                        device={"kind": "sim", "step_ms": 0},
                        train={"epochs": 100000})
        answer = on_small_disk(self.folder, "256k", "train", "job.json",
                               "--json")
        if answer is None:
            self.skipTest("no mounts of our own here")
        self.refused(answer, "request", "file.write", "small/runs",
                     "steps.jsonl", "No space left", "output.dir")
        [folder] = [p for p in (self.folder / "left" / "runs").iterdir()
                    if not p.is_symlink()]
        names = {path.name for path in folder.iterdir()}
        self.assertTrue({"run.json", "state.json", "statistics.json"} <= names)
        self.assertEqual([n for n in names if ".tmp." in n], [])

    def test_a_limit_on_the_size_of_files(self):
        """The same without a mount: a write fails in the middle of a file."""
        self.good_start()
        self.train()
        runs = self.folder / "runs"
        before = tree_of(runs)
        done = subprocess.run(
            [PROGRAM, "train", "job.json", "--json"], cwd=self.folder,
            capture_output=True, text=True, timeout=60, check=False,
            restore_signals=False,  # SIGXFSZ stays ignored: write() fails
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                  (600, 600)))
        answer = Answer(done.returncode, done.stdout, done.stderr)
        self.refused(answer, "request", "file.write", "run.json",
                     "File too large", "output.dir")
        self.assertEqual(tree_of(runs), before)

    def test_the_demo_leaves_nothing_behind(self):
        for size in ("4k", "16k", "64k", "256k"):
            with self.subTest(size=size):
                answer = on_small_disk(
                    self.folder, size, "demo", "positions", "--rows", "4000",
                    "--json", "--to", "sqlite:small/d.sqlite")
                if answer is None:
                    self.skipTest("no mounts of our own here")
                self.refused(answer, "source", "sqlite.disk_full", "d.sqlite")
                self.assertEqual(tree_of(self.folder / "left"), {})
                self.clear()

    def test_the_demo_leaves_the_old_table_and_no_journal(self):
        self.succeed("demo", "positions", "--rows", "100", "--to",
                     "sqlite:fill")
        before = tree_of(self.folder)
        for size in ("128k", "192k", "256k", "512k"):
            with self.subTest(size=size):
                answer = on_small_disk(
                    self.folder, size, "demo", "positions", "--rows", "4000",
                    "--json", "--replace", "--to", "sqlite:small/fill")
                if answer is None:
                    self.skipTest("no mounts of our own here")
                self.refused(answer, "source", "sqlite.disk_full", "fill")
                self.assertEqual(tree_of(self.folder / "left"), before)
                self.clear()

    def clear(self):
        for name in ("left", "small"):
            shutil.rmtree(self.folder / name)

    def test_batches_that_were_written_before_are_whole(self):
        self.good_start()
        answer = on_small_disk(self.folder, "24k", "batch", "job.json",
                               "--json", "--steps", "0:64", "--out", "small",
                               "--set", "loader.batch_size=1")
        if answer is None:
            self.skipTest("no mounts of our own here")
        self.assertEqual(answer.code, 2, answer.err)
        *lines, error = answer.lines()
        self.assertEqual(error["error"]["code"], "file.write")
        self.assertIn("--out", error["error"]["next"])
        left = sorted(p.name for p in (self.folder / "left").iterdir())
        self.assertEqual(len(left), len(lines))
        self.assertGreater(len(left), 0)


if __name__ == "__main__":
    unittest.main()
