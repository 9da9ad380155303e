"""The package itself: what importing it costs, the program, stubs, doctests."""
import ast
import doctest
import graphlib
import importlib
import pathlib
import pkgutil
import subprocess
import sys
import textwrap
import unittest

import penstock
from penstock import dataloader, program
from entry import main
from positions import Case, has, run_python

PACKAGE = pathlib.Path(penstock.__file__).parent


class Importing(unittest.TestCase):
    def test_starts_no_thread_and_imports_neither_numpy_nor_torch(self):
        done = run_python(
            "import sys, os, penstock\n"
            "print(len(os.listdir('/proc/self/task')), *sorted({'numpy', "
            "'torch', 'jax', 'logging'} & set(sys.modules)))")
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))

    def test_opening_and_iterating_needs_neither(self):
        class Told(Case):
            pass
        Told.setUpClass()
        self.addCleanup(Told.doClassCleanups)
        done = run_python(
            f"import sys, penstock\nfor batch in penstock.open("
            f"{str(Told.path)!r}): batch.target.shape, dict(batch)\n"
            "print(*sorted({'numpy', 'torch', 'jax'} & set(sys.modules)))")
        self.assertEqual((done.stdout, done.stderr), ("\n", ""))


    def test_the_drop_in_is_imported_when_it_is_asked_for(self):
        for ask in ("penstock.DataLoader", "penstock.get_worker_info",
                    "from penstock import DataLoader",
                    "from penstock import *"):
            with self.subTest(ask):
                done = run_python(
                    "import sys, penstock\n"
                    "print('penstock.dataloader' in sys.modules)\n"
                    f"{ask}\nprint('penstock.dataloader' in sys.modules)")
                self.assertEqual(done.stdout, "False\nTrue\n", done.stderr)
        self.assertIs(penstock.DataLoader, dataloader.DataLoader)
        self.assertIs(penstock.get_worker_info, dataloader.get_worker_info)
        self.assertLessEqual(set(penstock.__all__), set(dir(penstock)))

    def test_a_name_that_is_none_is_told(self):
        with self.assertRaisesRegex(AttributeError,
                                    "'penstock' has no attribute 'Dataloader'"):
            penstock.Dataloader


def imported_by(path):
    """The modules of the package that a file imports, wherever in it."""
    package = PACKAGE if path.parent == PACKAGE else path.parent
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = PACKAGE if node.level == 2 else package
        if node.module:
            folder = folder / node.module.replace(".", "/")
        names = [folder, *(folder / alias.name for alias in node.names)]
        yield from {name.with_suffix(".py") for name in names} & MODULES


# What a package's own __init__.py shows is no module of its own.
MODULES = {path for path in PACKAGE.rglob("*.py") if path.stem != "__init__"}


class Modules(unittest.TestCase):
    def test_none_imports_one_that_imports_it(self):
        imports = {path: set(imported_by(path)) for path in MODULES}
        self.assertGreater(sum(map(len, imports.values())), 50)
        graphlib.TopologicalSorter(imports).prepare()  # raises CycleError


class Program(unittest.TestCase):
    def test_comes_with_the_package(self):
        told = subprocess.run([program.path(), "--version"],
                              capture_output=True, text=True, check=True)
        self.assertEqual(told.stdout.strip(),
                         "penstock " + penstock.__version__)

    def test_is_what_the_module_runs(self):
        done = run_python("import sys, runpy; sys.argv[1:] = ['--version']; "
                          "runpy.run_module('penstock', run_name='__main__')")
        self.assertEqual((done.returncode, done.stdout.strip()),
                         (0, "penstock " + penstock.__version__))

    def test_keeps_its_exit_codes(self):
        done = run_python("import sys; from penstock.program import main; "
                          "sys.argv[1:] = ['train', '/nowhere.json']; main()")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read the job file", done.stderr)

    def test_finds_its_parts(self):
        done = run_python("import sys; from penstock.program import main; "
                          "sys.argv[1:] = ['doctor']; main()")
        self.assertIn(" ok  sqlite", done.stdout.lower())


class Typing(unittest.TestCase):
    EXAMPLE = """\
        import numpy as np
        import penstock

        def train(path: str) -> float:
            with penstock.open(path, loader__batch_size=64) as loader:
                total = 0.0
                for batch in loader:
                    arrays = batch.numpy()
                    total += float(np.sum(arrays["x"]))
                    rows: int = batch["x"].shape[0]
                    assert rows == len(batch.x)
                state = loader.state_dict()
                loader.load_state_dict(state)
                print(loader.explain().limit, state["epoch"])
            return total

        def words(source: str) -> list[int | str | None]:
            loader = penstock.Loader(source, fields={"x": ["a"]},
                                     batch_size=8, shuffle=True)
            keys: list[int | str | None] = []
            for batch in loader.batches(steps=4):
                keys += batch.row_keys
            try:
                return keys
            except penstock.SourceError as error:
                print(error.code, error.next)
                raise

        class Squares:
            def __len__(self) -> int:
                return 9

            def __getitem__(self, index: int) -> float:
                return index ** 2

        class Mine(penstock.DataLoader[float]):
            pass

        def kinds() -> penstock.DataLoader[float]:
            texts: penstock.DataLoader[str] = penstock.DataLoader(["a", "b"])
            pairs = penstock.DataLoader(iter([(1, "a")]))
            print(len(texts), len(pairs))
            return Mine(Squares(), batch_size=2)

        def items(rows: list[int]) -> list[object]:
            info = penstock.get_worker_info()
            if info is not None:
                print(info.id + info.seed)
            with penstock.DataLoader(rows, batch_size=4) as loader:
                state: dict[str, object] = loader.state_dict()
                loader.load_state_dict(state)
                return [batch for batch in loader]
        """
    WRONG = {
        "x: int = penstock.open('a').state_dict()":
            "Incompatible types in assignment",
        "penstock.Dataloader([1])": 'Module has no attribute "Dataloader"',
        "penstock.DataLoader([1], batchsize=3)":
            'Unexpected keyword argument "batchsize"',
        "y: str = penstock.DataLoader([1]).num_workers":
            "Incompatible types in assignment",
        "z: penstock.DataLoader[str] = penstock.DataLoader([1])":
            "List item 0 has incompatible type"}

    def mypy(self, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-incremental",
             "--cache-dir=/dev/null", *arguments],
            cwd=PACKAGE.parent, capture_output=True, text=True, check=False)

    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_the_package_is_typed_strictly(self):
        told = self.mypy("-p", "penstock")
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)

    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_a_typed_program_finds_the_types_and_a_wrong_one_is_told(self):
        told = self.mypy("-c", textwrap.dedent(self.EXAMPLE))
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        told = self.mypy("-c", "\n".join(["import penstock", *self.WRONG]))
        for line, expected in enumerate(self.WRONG.values(), 2):
            self.assertRegex(told.stdout, f"<string>:{line}: error: {expected}")

    def test_it_says_that_it_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())
        self.assertTrue((PACKAGE / "_engine.pyi").exists())


class Examples(unittest.TestCase):
    def test_in_docstrings_hold(self):
        held, seen = 0, set()
        for found in pkgutil.walk_packages(penstock.__path__, "penstock."):
            if found.name == "penstock.__main__":
                continue  # it is the program
            result = doctest.testmod(importlib.import_module(found.name))
            self.assertEqual(result.failed, 0, found.name)
            held += result.attempted
            seen.add(found.name)
        self.assertGreater(held, 5)
        self.assertLessEqual({"penstock.loader", "penstock.dataloader",
                              "penstock._dataloader.server"}, seen)

    def test_everything_public_says_what_it_is(self):
        for name in penstock.__all__:
            thing = getattr(penstock, name)
            if name != "__version__":
                self.assertTrue(thing.__doc__, name)
        for kind in (penstock.Loader, penstock.Batch, penstock.Field,
                     penstock.DataLoader):
            for name in dir(kind):
                if not name.startswith("_"):
                    self.assertTrue(getattr(kind, name).__doc__,
                                    f"{kind.__name__}.{name}")


if __name__ == "__main__":
    main()
