"""Every code block of the documentation runs, or its page says why not.

Above a block may be one comment: <!-- not run: REASON -->, <!-- run by: TEST -->
or <!-- needs: LIBRARY -->. Blocks of a page run in their order, in one
folder with the files of `fill()`; those of `json` are jobs, or parts of one,
which the program has to understand. Blocks of `text` are what is printed.

    document_blocks_test.py --count     how many blocks there are, and why some
                                        are not run
"""
import collections
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import types
import unittest

import numpy

from entry import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages whose blocks other tests run, which know what has to come of them.
TESTED = {
    "README.md": "documents_test",
    "docs/how-to/coming_from.md": "documents_test",
    "docs/how-to/dataloader.md": "documents_test",
    "docs/how-to/own_source.md": "documents_test, check_rooms.py",
    "docs/how-to/own_field.md": "check_rooms.py",
    "docs/how-to/own_model.md": "training_program_test",
    "docs/tutorials/own_table.md": "documents_test, own_table_test",
    "docs/tutorials/positions.md": "documents_test"}
OUTPUT = {"text", "pycon"}
# Pages whose blocks of text are, to the letter, what the block above prints.
PRINTED = {"docs/tutorials/text_model.md"}
COMMENT = r"^ *<!-- (?P<word>not run|run by|needs): (?P<why>.*?) -->\n"
BLOCK = re.compile(rf"(?:{COMMENT})?^(?P<indent> *)```(?P<language>\w*)\n"
                   r"(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
# What makes long runs short: what is shown is a step of 20 ms.
QUICK = ((r"device\.step_ms=\d+", "device.step_ms=1"),
         (r"round_trip_ms=40", "round_trip_ms=2"),
         (r"--rows 20000", "--rows 2000"))


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    word: str = ""
    why: str = ""


def pages():
    """All pages of docs/ that a user reads, and the README."""
    yield ROOT / "README.md"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.relative_to(ROOT).parts[1] not in ("rooms", "decisions",
                                                   "rooms.md"):
            yield page


def blocks():
    for page in pages():
        text = page.read_text()
        for found in BLOCK.finditer(text):
            indent = found["indent"]
            yield Block(
                str(page.relative_to(ROOT)), text.count("\n", 0, found.start())
                + 1, found["language"],
                re.sub(f"^{indent}", "", found["text"], flags=re.M),
                found["word"] or "", found["why"] or "")


def is_run(block):
    return block.word != "not run"


def fill(folder):
    """What the pages find where they run."""
    with sqlite3.connect(folder / "train.sqlite") as base:
        base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a REAL, "
                     "b REAL, label REAL, session INTEGER)")
        base.executemany("INSERT INTO rows VALUES (?, ?, 1, 2, ?)",
                         ((i, i, i % 50) for i in range(1000)))
    base.close()
    (folder / "train.csv").write_text("a,b,label\n" + "".join(
        f"{i},{'' if i % 10 == 0 else i / 2},{'xyz'[i % 3]}\n"
        for i in range(200)))
    (folder / "job.json").write_text(json.dumps({
        "source": {"kind": "sqlite", "path": "train.sqlite", "table": "rows"},
        "fields": {"x": {"columns": ["a", "b"]}, "y": {"columns": ["label"]}},
        "loader": {"batch_size": 64}, "device": "cpu"}))


def fill_shapes(folder):
    """A folder of pictures for each of two classes, and a job over them."""
    pictures = ROOT / "tests/data/images"
    for name, files in (("one", ("420_p.jpg", "444_p.jpg")),
                        ("two", ("420_b.jpg", "444_b.jpg"))):
        (folder / "shapes" / name).mkdir(parents=True)
        for file in files * 8:
            (folder / "shapes" / name / f"{file}").write_bytes(
                (pictures / file).read_bytes())
    (folder / "job.json").write_text(json.dumps({
        "source": "images:shapes", "fields": {
            "image": {"image": {"size": 32}},
            "label": {"category": {"column": "class", "unknown": "error"}}},
        "loader": {"batch_size": 4}, "device": "cpu"}))


def fill_hdf5(folder):
    if there("h5py"):
        import h5py
        with h5py.File(folder / "sounds.h5", "w") as file:
            file["x"] = numpy.zeros((20, 64, 64), "float32")
            file["y"] = numpy.arange(20) % 4


def fill_zarr(folder):
    if there("zarr"):
        import zarr
        group = zarr.open_group(str(folder / "data.zarr"), mode="w")
        for name in ("x", "in/y"):
            group.create_array(name, data=numpy.zeros((20, 4), "float32"),
                               chunks=(5, 4))


FILL = {"docs/how-to/images.md": fill_shapes,
        "docs/how-to/hdf5.md": fill_hdf5,
        "docs/how-to/arrays.md": fill_zarr}


def there(what):
    """Whether a library of Python, or a part of the program, is there."""
    import importlib.util

    from positions import run_program
    parts = {part["part"]: part["there"] for part in json.loads(
        run_program("doctor", "--parts", "--json"))["parts"]}
    return parts[what] if what in parts else \
        importlib.util.find_spec(what) is not None


class Bar:
    """What the pages use of tqdm."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __iter__(self):
        yield from self.iterable

    def set_postfix_str(self, text, refresh=True):
        """Shows nothing."""


class Blocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        fill(self.folder)

    def test_each_has_a_language_and_runs_or_says_why_not(self):
        for block in blocks():
            with self.subTest(page=block.page, line=block.line):
                self.assertIn(block.language, OUTPUT | {
                    "python", "sh", "json", "cpp", "diff"})
                if block.language == "cpp":
                    self.assertIn(block.page, TESTED)
                if block.language == "diff":
                    self.assertEqual(block.word, "run by")

    def run_shell(self, text):
        from penstock import program
        for pattern, quick in QUICK:
            text = re.sub(pattern, quick, text)
        path = os.pathsep.join([str(program.path().parent),
                                os.environ["PATH"]])
        done = subprocess.run(
            ["sh", "-euc", text], capture_output=True, text=True, check=False,
            timeout=300, env={
                **os.environ, "PATH": path, "XDG_CACHE_HOME": str(
                    self.folder / "cache"),
                "PENSTOCK_EXAMPLES": str(ROOT / "examples")})
        self.assertEqual(done.returncode, 0, text + done.stdout + done.stderr)
        return done.stdout

    def run_page(self, page):
        names, printed = {}, ""
        for block in page:
            if block.word == "needs" and not there(block.why):
                continue
            if not is_run(block):
                continue
            with self.subTest(page=block.page, line=block.line):
                if block.language == "sh":
                    printed = self.run_shell(block.text)
                elif block.language == "python":
                    with contextlib.redirect_stdout(io.StringIO()) as said:
                        exec(compile(block.text, block.page, "exec"), names)
                    printed = said.getvalue()
                elif block.language in OUTPUT and block.page in PRINTED:
                    self.assertIn(block.text, printed)
        for thing in names.values():
            if hasattr(thing, "close") and hasattr(thing, "state_dict"):
                thing.close()

    def test_what_is_run_runs(self):
        of_pages = collections.defaultdict(list)
        for block in blocks():
            if block.page not in TESTED:
                of_pages[block.page].append(block)
        tqdm = types.ModuleType("tqdm")
        tqdm.tqdm = Bar
        self.addCleanup(sys.modules.pop, "tqdm", None)
        sys.modules["tqdm"] = tqdm
        for page, found in of_pages.items():
            with tempfile.TemporaryDirectory() as folder:
                self.folder = pathlib.Path(folder)
                os.chdir(folder)
                fill(self.folder)
                if page in FILL:
                    FILL[page](self.folder)
                self.run_page(found)
                os.chdir(ROOT)

    def jobs_of(self, text, sections):
        """A job of each thing that a block of JSON may show."""
        shown = json.loads(text)
        whole = {"source": "sqlite:train.sqlite#rows", "fields": {"z": ["a"]}}
        if isinstance(shown, list):
            return [{**whole, "source": source} for source in shown]
        if not shown.keys() <= sections:
            return [{**whole, "fields": shown}]
        if "sources" in shown:
            del whole["source"]
        return [{**whole, **shown}]

    def test_jobs_are_understood(self):
        from penstock import program
        schema = json.loads(subprocess.run(
            [str(program.path()), "schema"], capture_output=True, text=True,
            check=True).stdout)
        for block in blocks():
            if block.language != "json" or not is_run(block):
                continue
            for job in self.jobs_of(block.text, schema["properties"].keys()):
                with self.subTest(page=block.page, line=block.line):
                    self.check_job(str(program.path()), job)

    def check_job(self, program, job):
        """Its settings are right; what it names need not be there."""
        pathlib.Path("shown.json").write_text(json.dumps(job))
        done = subprocess.run(
            [program, "batch", "shown.json", "--steps", "0:0", "--json"],
            capture_output=True, text=True, check=False)
        if done.returncode:
            error = json.loads(done.stdout)["error"]
            self.assertFalse(error["code"].startswith(("settings.", "json.")),
                             done.stdout)


def count():
    of_kind, why = collections.Counter(), collections.Counter()
    for block in blocks():
        kind = "printed" if block.language in OUTPUT else \
            "run" if is_run(block) else "not run"
        of_kind[kind] += 1
        if kind == "not run":
            why[block.why] += 1
    print(dict(of_kind))
    for reason, number in why.most_common():
        print(f"{number:4} {reason}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        count()
    else:
        main()
