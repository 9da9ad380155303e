"""penstock.predict() and penstock.evaluate(): of modules of your own, and of
the kinds that the program has."""
import csv
import json
import os
import pathlib
import pty
import shutil
import sqlite3
import subprocess
import sys
import unittest
import unittest.mock

import penstock
from entry import main
from free_port import free_port
from own_model import NET, Case, needs_torch
from own_ranks import environment
from penstock import program


class Predicting(Case):
    def held_out(self, folder):
        """The rows of the side val as a table, in the order of their keys."""
        with penstock.open(self.job(), side="val") as loader:
            keys = [key for batch in loader for key in batch.ids.tolist()]
        with sqlite3.connect("train.sqlite") as base:
            base.execute("CREATE TABLE held_out AS SELECT * FROM rows WHERE id "
                         f"IN ({','.join(map(str, keys))}) ORDER BY id")
        base.close()
        return "sqlite:train.sqlite?key=id&query=SELECT * FROM held_out " \
            "ORDER BY id"


@needs_torch
class Own(Predicting):
    def test_numbers_are_in_the_unit_of_the_target(self):
        job = self.job()
        job["fields"]["y"]["standardize"] = True
        trained = self.train(job, output="left")
        for run in (trained.folder, "runs/latest", "left"):
            found = penstock.predict(run, "sqlite:train.sqlite#rows")
            self.assertEqual(list(found.columns), ["key", "y"])
            self.assertEqual((len(found), found.bad, found.out), (200, 0, None))
            self.assertEqual(found.columns["key"], list(range(200)))
            truth = [i % 7 - 2 * (i % 11) for i in range(200)]
            error = sum((y - t) ** 2 for y, t in
                        zip(found.columns["y"], truth)) / 200
            self.assertAlmostEqual(error ** 0.5, found.metrics["rmse"], places=3)

    def test_held_out_rows_are_measured_as_the_run_did_bit_for_bit(self):
        trained = self.train(self.job())
        self.assertEqual(
            penstock.evaluate(trained.folder, self.held_out(trained.folder)),
            trained.report["metrics"]["val"])

    def test_rows_need_no_target(self):
        self.train(self.job(), output="left")
        self.write("new.csv", "a,b,kind,big\n1,2,u,0\n3,4,unseen,1\n")
        found = penstock.predict("left", "new.csv")
        self.assertEqual((found.rows, found.metrics), (2, {}))
        with self.refused("request", "source.unknown_column", "y"):
            penstock.evaluate("left", "new.csv")

    def test_classes_have_their_names(self):
        self.write("net.py", NET.replace("width, 1", "width, len(big.classes)")
                   .replace("kind, width", "kind, big, width"))
        self.train(self.job(model={"target": "big"}), output="left")
        found = penstock.predict("left", "sqlite:train.sqlite#rows")
        self.assertEqual(list(found.columns), ["key", "prediction", "p_0",
                                               "p_1"])
        self.assertLessEqual(set(found.columns["prediction"]), {0, 1})
        for no, yes in zip(found.columns["p_0"], found.columns["p_1"]):
            self.assertAlmostEqual(no + yes, 1, places=5)

    def test_a_file_is_written_and_nothing_kept(self):
        self.train(self.job(), output="left")
        found = penstock.predict("left", "sqlite:train.sqlite#rows",
                                 out="answers.csv")
        self.assertEqual((found.columns, found.out), ({}, "answers.csv"))
        with open("answers.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 200)
        kept = penstock.predict("left", "sqlite:train.sqlite#rows")
        self.assertEqual([float(row["y"]) for row in rows], kept.columns["y"])

    def test_a_module_that_has_changed_is_refused_and_a_copy_is_kept(self):
        self.train(self.job(), output="left")
        wanted = penstock.predict("left", "sqlite:train.sqlite#rows").columns
        with open("net.py", "a") as file:
            file.write("# changed\n")
        with self.refused("request", "predict.module_changed",
                          "net.py", "left/files"):
            penstock.predict("left", "sqlite:train.sqlite#rows")
        os.remove("net.py")
        self.assertEqual(penstock.predict(
            "left", "sqlite:train.sqlite#rows").columns, wanted)

    def test_a_model_that_gives_its_loss_predicts_nothing(self):
        self.write("net.py", NET.replace("kind):\n        return", "kind, y):\n"
                                         "        return ((y -")
                   .replace("(x, kind)", "(x, kind)")
                   .replace("], 1)))", "], 1)))[:, 0]) ** 2).mean()"))
        self.train(self.job(model={"target": None}), output="left")
        with self.refused("request", "predict.no_target"):
            penstock.predict("left", "sqlite:train.sqlite#rows")

    def test_weights_of_another_module_are_refused(self):
        self.train(self.job(), output="left")
        path = pathlib.Path("left/run.json")
        document = json.loads(path.read_text())
        document["job"]["model"]["arguments"] = {"width": 9}
        path.write_text(json.dumps(document))
        with self.refused("request", "predict.other_model"):
            penstock.predict("left", "sqlite:train.sqlite#rows")

    def test_the_program_becomes_this_python(self):
        # What the module prints does not get among the rows.
        self.write("net.py", NET.replace("        return self.layers",
                                         "        print('forward')\n"
                                         "        return self.layers"))
        self.train(self.job(), output="left")
        done = self.predict_by_program(stdout=subprocess.PIPE)
        self.assertEqual(len(done.stdout.splitlines()), 201)
        self.assertNotIn("forward", done.stdout)
        self.assertIn("forward", done.stderr)
        self.assertRegex(done.stderr, r"200 rows predicted, loss \d")

    def predict_by_program(self, source="sqlite:train.sqlite#rows", code=0,
                           **how):
        package = str(pathlib.Path(penstock.__file__).parent.parent)
        done = subprocess.run(
            [str(program.path()), "predict", "left", source],
            stderr=subprocess.PIPE, text=True, timeout=120, check=False, env={
                **os.environ, "PYTHONPATH": package,
                "PENSTOCK_PYTHON": sys.executable}, **how)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_terminal_shows_the_first_rows(self):
        self.train(self.job(), output="left")
        ours, theirs = pty.openpty()
        self.predict_by_program(stdout=theirs)
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal:
            shown = terminal.read(65536).decode()
        self.assertEqual(len(shown.splitlines()), 12, shown)
        self.assertIn("... and 190 more rows; --out FILE writes all", shown)

    def test_a_reader_that_has_read_enough_is_no_error(self):
        self.train(self.job(), output="left")
        ends, begins = os.pipe()
        os.close(ends)
        done = self.predict_by_program(stdout=begins, code=141)
        os.close(begins)
        self.assertEqual(done.stderr, "")

    def test_a_pipe_that_breaks_in_the_module_is_an_error(self):
        self.write("net.py", NET.replace(
            "        return self.layers",
            "        if __import__('os').environ.get('BREAKS'):\n"
            "            raise BrokenPipeError('of the module')\n"
            "        return self.layers"))
        self.train(self.job(), output="left")
        with unittest.mock.patch.dict(os.environ, {"BREAKS": "yes"}):
            done = self.predict_by_program(stdout=subprocess.PIPE, code=2)
        self.assertIn("BrokenPipeError: of the module", done.stderr)
        self.assertIn("penstock: ", done.stderr)

    def test_rows_that_are_left_out_are_named(self):
        self.train(self.job(), output="left")
        with sqlite3.connect("train.sqlite") as base:
            base.execute("CREATE TABLE some AS SELECT * FROM rows WHERE id < 9")
            base.execute("UPDATE some SET a = 'heavy' WHERE id = 7")
        base.close()
        done = self.predict_by_program(
            "sqlite:train.sqlite?key=id&on_bad=skip&query=SELECT * FROM some",
            stdout=subprocess.PIPE)
        self.assertIn("left out row 7, column 'a': ", done.stderr)


class OfTheProgram(Predicting):
    """A built-in kind: the program trains it, and predicts for Python."""

    def setUp(self):
        super().setUp()
        job = self.job()
        job["model"] = {"kind": "tabular", "target": "big", "width": 8,
                        "depth": 1}
        self.write("job.json", json.dumps(job))
        done = subprocess.run(
            [str(program.path()), "train", "job.json", "--output", "left"],
            capture_output=True, text=True, timeout=120, check=False)
        if "trainer.part_missing" in done.stderr or "plugin" in done.stderr:
            self.skipTest("the trainer was not built")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_rows_are_predicted_and_measured(self):
        found = penstock.predict("left", "sqlite:train.sqlite#rows")
        self.assertEqual(list(found.columns), ["key", "prediction", "p_0",
                                               "p_1"])
        self.assertEqual(found.rows, 200)
        self.assertEqual(penstock.evaluate("left", "sqlite:train.sqlite#rows"),
                         found.metrics)
        written = penstock.predict("left", "sqlite:train.sqlite#rows",
                                   out="answers.csv")
        self.assertEqual((written.columns, written.out), ({}, "answers.csv"))

    def test_ranks_share_the_rows_where_they_are_asked_to(self):
        for ranks, rows in ((True, [200, 0]), (False, [200, 200])):
            script = ("import penstock; print(penstock.predict('left', "
                      f"'sqlite:train.sqlite#rows', ranks={ranks}).rows)")
            port = free_port()
            started = [subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE,
                text=True, env=environment(rank, 2, port))
                for rank in range(2)]
            self.assertEqual([int(one.communicate(timeout=120)[0])
                              for one in started], rows)

    def test_its_errors_are_those_of_the_package(self):
        shutil.rmtree("left/nothing", ignore_errors=True)
        with self.refused("request", "predict.out_format", "a.txt"):
            penstock.predict("left", "sqlite:train.sqlite#rows", out="a.txt")
        with self.refused("request", "predict.no_run", "nowhere"):
            penstock.predict("nowhere", "sqlite:train.sqlite#rows")


if __name__ == "__main__":
    main()
