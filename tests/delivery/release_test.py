#!/usr/bin/env python3
"""tools/release says what a version lacks before it makes anything."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c",
       "commit.gpgsign=false", "-c", "tag.gpgsign=false")


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tools").mkdir()
        shutil.copy(ROOT / "tools/release", self.folder / "tools")
        self.write("CMakeLists.txt", "project(penstock VERSION 1.2.3)\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## 1.2.3\n\n- New.\n")
        self.git("init", "--quiet")
        self.commit()

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def git(self, *arguments):
        subprocess.run([*GIT, *arguments], cwd=self.folder, check=True)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "a")

    def problems(self):
        done = subprocess.run(["bash", "tools/release"], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        first, *problems = done.stdout.splitlines()
        self.assertEqual(first, "version 1.2.3 is not ready to be released:")
        return [problem.strip() for problem in problems]

    def test_a_commit_without_the_tag_is_refused(self):
        self.assertEqual(self.problems(), ["HEAD has no tag v1.2.3"])

    def test_all_problems_are_told_at_once(self):
        self.write("CHANGELOG.md", "# Changelog\n\n## 1.2.2\n\n- Old.\n")
        self.assertEqual(self.problems(), [
            "the tree has changes that are not committed",
            "HEAD has no tag v1.2.3",
            "CHANGELOG.md has no section '## 1.2.3'"])

    def test_a_version_that_is_called_unreleased_is_refused(self):
        self.write("CHANGELOG.md", "## 1.2.3 (unreleased)\n\n- New.\n")
        self.commit()
        self.git("tag", "v1.2.3")
        self.assertEqual(self.problems(),
                         ["CHANGELOG.md calls 1.2.3 unreleased"])


if __name__ == "__main__":
    unittest.main()
