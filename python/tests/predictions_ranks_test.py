"""Predictions of a user's own module by several ranks: each predicts a part of
the rows, and rank 0 writes all of them in their order."""
import json
import math
import pathlib
import subprocess
import sys
import unittest

from entry import main
from own_model import needs_torch
from own_ranks import NET, PATIENCE_S, RanksCase, environment
from penstock import program

# What each rank prints of predictions that a script of the user's makes.
SCRIPT = """
import json, sys
import torch
import penstock

if "group" in sys.argv:
    torch.distributed.init_process_group("gloo")
answers = penstock.predict("out", "new.csv", ranks="alone" not in sys.argv)
measures = penstock.evaluate("out", "new.csv", ranks="alone" not in sys.argv)
print(json.dumps({"rows": answers.rows, "columns": answers.columns,
                  "measures": measures}))
"""


class Predicting(RanksCase):
    def setUp(self):
        super().setUp()
        self.write_job()
        self.alone("--output", "out")

    def rows(self, count, spoil=None):
        lines = [f"{i % 7},{i % 11},{'uvw'[i % 3]},{i % 7 - 2 * (i % 11)},"
                 f"{int(i % 7 > 3)}" for i in range(count)]
        if spoil is not None:
            lines[spoil] = "abc,1,u,0,0"
        return self.write("new.csv",
                          "\n".join(["a,b,kind,y,big", *lines]) + "\n")

    def by_one(self, verb, *arguments):
        """What the program prints that no launcher has started."""
        done = subprocess.run(
            [str(program.path()), verb, "out", *map(str, arguments)],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env=environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def by_ranks(self, world, verb, *arguments):
        return self.ended(self.started(
            world, *arguments, command=(str(program.path()), verb, "out")))

    def of_ranks(self, world, verb, *arguments):
        """What rank 0 prints. The other ranks print nothing."""
        ended = self.by_ranks(world, verb, *arguments)
        for code, out, err in ended:
            self.assertEqual(code, 0, out + err)
        self.assertEqual({out for _, out, _ in ended[1:]}, {""})
        return ended[0][1]

    def assert_same_measures(self, some, others):
        self.assertEqual(some.keys(), others.keys())
        for name, value in others.items():
            self.assertTrue(math.isclose(some[name], value, rel_tol=1e-9),
                            (name, some[name], value))


@needs_torch
class Threads(Predicting):
    def test_are_the_share_of_each_rank(self):
        self.note_threads()
        self.write_job(train={"threads": None, "max_steps": 2})
        self.alone("--output", "out")
        source = self.rows(70_000)
        self.by_one("predict", source, "--out", "one.csv")
        self.of_ranks(2, "predict", source, "--out", "two.csv")
        self.assert_threads_are_shared(2)


@needs_torch
class Rows(Predicting):
    def test_are_those_of_one_process_in_their_order(self):
        for count in (70_000, 3):
            source = self.rows(count)
            alone = json.loads(self.by_one("predict", source, "--out",
                                           "one.csv", "--json"))
            expected = pathlib.Path("one.csv").read_bytes()
            for world in (2, 3):
                with self.subTest(count, world=world):
                    told = json.loads(self.of_ranks(
                        world, "predict", source, "--out", "all.csv",
                        "--json"))
                    self.assertEqual(told["rows"], count)
                    self.assert_same_measures(told["metrics"],
                                              alone["metrics"])
                    self.assertEqual(pathlib.Path("all.csv").read_bytes(),
                                     expected)

    def test_a_table_without_rows(self):
        source = 'csv:' + self.rows(0) + '?columns={"a":"float64","b":"float64"}'
        self.by_one("predict", source, "--out", "one.csv")
        self.of_ranks(2, "predict", source, "--out", "all.csv")
        self.assertEqual(pathlib.Path("one.csv").read_text(), "key,y\n")
        self.assertEqual(pathlib.Path("all.csv").read_text(), "key,y\n")

    def test_option_starts_the_ranks(self):
        source = self.rows(3000)
        self.assertEqual(self.by_one("predict", source, "--ranks", 2),
                         self.by_one("predict", source))
        self.assert_same_measures(
            json.loads(self.by_one("evaluate", source, "--json", "--ranks", 3))
            ["metrics"],
            json.loads(self.by_one("evaluate", source, "--json"))["metrics"])

    def test_measures_of_classes(self):
        self.write("net.py", NET.replace("Linear(width, 1)",
                                         "Linear(width, 3)")
                   .replace("def __init__(self, kind,", "def __init__(self,")
                   .replace("len(kind.classes)", "3")
                   .replace("def forward(self, x, kind):\n",
                            "def forward(self, x):\n        kind = (x[:, 0] > 0)"
                            ".long()\n"))
        self.write_job(model={"target": "kind"})
        self.alone("--output", "out")
        source = self.rows(9000)
        self.assert_same_measures(
            json.loads(self.of_ranks(3, "evaluate", source, "--json"))
            ["metrics"],
            json.loads(self.by_one("evaluate", source, "--json"))["metrics"])

    def test_bad_rows_are_left_out_once(self):
        source = f'csv:{self.rows(3000, 1700)}?columns={{"a":"float64"}}'
        told = json.loads(self.of_ranks(
            2, "predict", source + "&on_bad=skip", "--out", "all.csv",
            "--json"))
        self.assertEqual((told["rows"], told["bad"]), (2999, 1))
        for code, out, err in self.by_ranks(2, "predict", source, "--out",
                                            "bad.csv", "--json"):
            self.assertNotEqual(code, 0)
            self.assertIn("abc", out + err)
        self.assertFalse(pathlib.Path("bad.csv").exists())


@needs_torch
class Ends(Predicting):
    def failing(self, line):
        """Rows on which rank 1 fails; the others go on to wait for it."""
        text = NET.replace("import torch\n", "import os\nimport torch\n")
        self.write("net.py", text.replace(
            "        at = self.first",
            "        if os.path.exists('fails') and os.environ['RANK'] == '1':\n"
            f"            {line}\n"
            "        at = self.first"))
        self.alone("--output", "out")
        self.write("fails", "")
        return self.rows(9000)

    def test_a_module_that_fails_on_one_rank(self):
        source = self.failing("raise ValueError('of rank 1')")
        ended = self.by_ranks(3, "predict", source, "--out", "all.csv",
                              "--json")
        self.assertIn("of rank 1", self.error_of(ended[1], "model.raised")
                      ["why"])
        for at in (0, 2):
            self.assertIn("of rank 1", json.dumps(
                self.error_of(ended[at], "ranks.failed")))
        self.assertFalse(pathlib.Path("all.csv").exists())

    def test_a_rank_that_is_killed_is_named(self):
        source = self.failing("os.kill(os.getpid(), 9)")
        ended = self.by_ranks(3, "predict", source, "--out", "all.csv",
                              "--json")
        self.assertEqual(ended[1][0], -9)
        for at in (0, 2):
            self.assertIn("rank 1",
                          self.error_of(ended[at], "ranks.lost")["where"])
        self.assertFalse(pathlib.Path("all.csv").exists())


@needs_torch
class Scripts(Predicting):
    def setUp(self):
        super().setUp()
        self.rows(3000)
        self.write("script.py", SCRIPT)

    def printed(self, world, *words):
        ended = self.ended(self.started(world, *words, command=(
            sys.executable, "script.py")))
        for code, out, err in ended:
            self.assertEqual(code, 0, out + err)
        return [json.loads(out) for _, out, _ in ended]

    def test_rank_0_has_the_predictions(self):
        alone, = self.printed(1)
        for words in ((), ("group",)):
            first, other = self.printed(2, *words)
            self.assertEqual(first["columns"], alone["columns"])
            self.assert_same_measures(first["measures"], alone["measures"])
            self.assertEqual(other, {"rows": 0, "columns": {}, "measures": {}})

    def test_each_process_by_itself(self):
        alone, = self.printed(1)
        for words in (("alone",), ("alone", "group")):
            self.assertEqual(self.printed(2, *words), [alone, alone])


if __name__ == "__main__":
    main()
