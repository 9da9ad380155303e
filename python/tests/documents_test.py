"""The examples of the documentation run as they stand."""
import contextlib
import io
import json
import os
import pathlib
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy

import penstock
from dataloader_sets import Rows
from entry import main
from positions import has, run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 1024


def blocks(document, language="python"):
    """The code blocks of a document in that language."""
    text = (ROOT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


class Folder(unittest.TestCase):
    """What the examples find where they run: a table and a job over it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        with sqlite3.connect("train.sqlite") as base:
            base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a REAL, "
                         "b REAL, label REAL)")
            base.executemany("INSERT INTO rows VALUES (?, ?, 1, 2)",
                             ((i, i) for i in range(ROWS)))
        base.close()
        pathlib.Path("job.json").write_text(json.dumps({
            "source": {"kind": "sqlite", "path": "train.sqlite",
                       "table": "rows"},
            "fields": {"x": {"columns": ["a", "b"]},
                       "y": {"columns": ["label"]}},
            "loader": {"batch_size": 256}, "device": "cpu"}))


class Tables(unittest.TestCase):
    def test_each_behaviour_of_torchs_loader_has_tests_that_are_there(self):
        text = (ROOT / "docs/reference/dataloader_tests.md").read_text()
        rows = re.findall(r"^\| .* \|$", text[text.index(
            "## Behaviours that torch's"):], re.M)[1:]
        self.assertGreater(len(rows), 40)
        there = set()
        for file in (ROOT / "python/tests").glob("dataloader_*_test.py"):
            name = file.stem[len("dataloader_"):-len("_test")]
            for case, body in re.findall(r"^class (\w+).*?$(.*?)(?=^\S)",
                                         file.read_text(), re.M | re.S):
                there |= {f"{name}.{case}.{test}" for test in
                          re.findall(r"    def (test_\w+)", body)}
        for row in rows:
            named = re.findall(r"`(\w+\.\w+\.test_\w+)`", row)
            self.assertTrue(named, row)
            self.assertLessEqual(set(named), there)


class Examples(Folder):
    def test_of_the_guide_to_the_main_job(self):
        (lines,) = blocks("docs/tutorials/positions.md", "sh")
        demo, train = lines.replace("\\\n", " ").split("penstock ")[1:]
        os.symlink(ROOT / "examples", "examples")
        run_program(*demo.split())
        told = json.loads(run_program(
            *train.split(), "--json", "--set", "device.step_ms=1",
            "--set", "source.round_trip_ms=0.1", "--set", "train.max_steps=3"))
        self.assertEqual((told["steps"], told["verdict"]["limit"]), (3, "data"))

    def test_of_a_table_of_ones_own(self):
        table, *_ = blocks("docs/tutorials/own_table.md", "sh")
        subprocess.run(["sh", "-euc", table], check=True)
        made = subprocess.run(
            [sys.executable, ROOT / "examples/own_table/make_penguins.py",
             "same.csv"], capture_output=True, text=True, check=True)
        self.assertIn("344 birds", made.stdout)
        self.assertEqual(pathlib.Path("penguins.csv").read_text(),
                         pathlib.Path("same.csv").read_text())
        (example,) = blocks("docs/tutorials/own_table.md")
        *_, said = blocks("docs/tutorials/own_table.md", "text")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(example, {})
        self.assertEqual(printed.getvalue(), said)

    def test_of_the_readme(self):
        table, loop = blocks("README.md")
        exec(table, {})
        (commands,) = blocks("README.md", "sh")
        parts = {part["part"]: part["there"] for part in json.loads(
            run_program("doctor", "--parts", "--json"))["parts"]}
        for command in commands.splitlines():
            if "train" not in command.split()[1] or parts["trainer"]:
                run_program(*shlex.split(command, comments=True)[1:])
        if not has("torch"):
            self.skipTest("the README's loop needs torch, which is not "
                          "installed")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(loop, {})
        self.assertIn("accelerator utilisation", printed.getvalue())

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_of_coming_from_pandas(self):
        pathlib.Path("train.csv").write_text("a,b,label\n" + "".join(
            f"{i},{'' if i % 10 == 0 else i / 2},{'xyz'[i % 3]}\n"
            for i in range(100)))
        by_hand, ours, _ = blocks("docs/how-to/coming_from.md")
        theirs, found = {}, {}
        exec(by_hand, theirs)
        exec(ours, found)
        self.assertEqual(theirs["x"].shape, (90, 2))
        seen = 0
        for batch in found["loader"]:
            x, present, y = batch.host().values()
            self.assertEqual((x.shape, y.dtype), (present.shape, "int64"))
            numpy.testing.assert_array_equal(
                present[:, 1] == 0, batch.ids % 10 == 0)
            seen += len(y)
        self.assertEqual(seen, 100)
        found["loader"].close()

    def test_of_coming_from_hugging_face(self):
        parts = json.loads(run_program("doctor", "--parts", "--json"))["parts"]
        if not any(part["part"] == "hf" and part["there"] for part in parts):
            self.skipTest("the part that reads Arrow was not built")
        *_, example = blocks("docs/how-to/coming_from.md")
        folder = str(ROOT / "tests/data/files/saved")
        example = example.replace("FOLDER", folder).replace(
            '{"x": ["a", "b"], "y": "label"}', '{"x": "id"}')
        exec(example, found := {})
        with found["loader"] as loader:
            self.assertGreater(len(next(iter(loader)).host()["x"]), 0)

    def test_of_a_source_by_position(self):
        pathlib.Path("points.jsonl").write_text(
            '[{"x": 1, "y": 2}]\n[{"x": 3, "y": 4}, {"x": 5, "y": 6}]\n'
            '[{"x": 7, "y": 8}]\n')
        example = ROOT / "examples/own_source/own_source.py"
        text = example.read_text()
        self.assertLess(len(text.splitlines()), 100)
        for block in blocks("docs/how-to/own_source.md"):
            for line in block.splitlines():
                self.assertIn(line, text)
        done = subprocess.run([sys.executable, example], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stderr, "")
        batches = [re.fullmatch(r"(\[.*\]) (\(.*\)) (\[.*\])", line).groups()
                   for line in done.stdout.splitlines()]
        rows = {row: bytes for ids, _, sizes in batches
                for row, bytes in zip(json.loads(ids), json.loads(sizes))}
        self.assertEqual(rows, {0: 18, 1: 36, 2: 18})
        self.assertEqual([shape for _, shape, _ in batches],
                         ["(2, 3, 2)", "(1, 3, 2)"])

    def test_of_the_drop_in(self):
        warnings.filterwarnings("ignore", message=".* workers on .* process")
        examples = blocks("docs/how-to/dataloader.md")
        self.assertEqual(len(examples), 2)
        names = {"dataset": Rows(ROWS)}
        for example in examples:
            exec(compile(example, "docs/how-to/dataloader.md", "exec"), names)
            loader = names.get("later", names["loader"])
            taken = [int(i) for _, ids in loader for i in ids]
            self.assertEqual(sorted(taken), list(range(ROWS)))
            loader.close()


@unittest.skipUnless(has("torch"), "torch is not installed")
class TwoLines(Folder):
    def test_the_loop_of_the_diff_runs(self):
        (diff,) = blocks("docs/how-to/loader.md", "diff")
        after = [line[1:] for line in diff.splitlines()
                 if line.startswith(("+", " "))]
        names = {}
        exec(compile("\n".join(after).replace("range(10)", "range(2)"),
                     "docs/how-to/loader.md", "exec"), names)
        self.assertEqual((names["x"].shape, names["y"].shape),
                         ((256, 2), (256, 1)))
        names["loader"].close()

    def test_the_example_trains(self):
        run_program("demo", "positions", "--rows", 600, "--seed", 1, "--to",
                    "sqlite:positions.sqlite")
        done = subprocess.run(
            [sys.executable, ROOT / "examples/two_lines.py",
             ROOT / "examples/positions/job.json", "positions.sqlite"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)",
                                                     done.stdout)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    main()
