"""The notebook of examples/own_table: its cells run one after the other, and
what they show can be shown."""
import ast
import contextlib
import io
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import penstock

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/own_table"


def run_cell(text, names):
    """As a notebook does: the value of the last expression, None: no
    expression."""
    tree = ast.parse(text)
    last = None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(last, "cell", "eval"), names)


def shown(value):
    if hasattr(value, "_repr_html_"):
        return value._repr_html_()
    return repr(value)


class Notebook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        shutil.copy(FOLDER / "make_penguins.py", folder.name)
        os.chdir(folder.name)
        try:
            penstock.Loader("csv:none.csv", {"x": "x"})
        except penstock.SourceError as error:
            if error.code == "source.part_missing":
                self.skipTest("built without the part that reads CSV")

    def test_its_cells_run_and_it_was_saved_without_outputs(self):
        book = json.loads((FOLDER / "own_table.ipynb").read_text())
        names, said, values = {}, io.StringIO(), []
        for cell in book["cells"]:
            if cell["cell_type"] != "code":
                continue
            self.assertEqual(cell["outputs"], [])
            with contextlib.redirect_stdout(said):
                values.append(shown(run_cell("".join(cell["source"]), names)))
        self.assertIn("species,island,bill_mm", said.getvalue())
        self.assertGreater(names["accuracy"], 0.8)
        self.assertTrue(any("<table" in value for value in values), values)


if __name__ == "__main__":
    unittest.main()
