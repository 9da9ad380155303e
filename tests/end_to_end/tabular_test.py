"""A table file, one command, a validated model: `penstock train --init`."""
import csv
import random
import sqlite3
import unittest

from penstock_cli import Case, has_part

TRAINS = has_part("trainer")


def penguins(rows=400):
    """Three species, told apart by bill and body; a tenth of the masses and of
    the sexes are missing, and so is the species of five birds."""
    draw = random.Random(3)
    table = []
    for number in range(rows):
        kind = draw.choice(["Adelie", "Chinstrap", "Gentoo"])
        length = {"Adelie": 39, "Chinstrap": 49, "Gentoo": 47}[kind]
        mass = {"Adelie": 3700, "Chinstrap": 3730, "Gentoo": 5070}[kind]
        island = {"Adelie": draw.choice(["Biscoe", "Dream", "Torgersen"]),
                  "Chinstrap": "Dream", "Gentoo": "Biscoe"}[kind]
        table.append({
            "row": number + 1,
            "species": "" if number % 80 == 7 else kind,
            "island": island,
            "bill_length": f"{draw.gauss(length, 2):.1f}",
            "body_mass": "" if draw.random() < 0.1
            else round(draw.gauss(mass, 300)),
            "sex": draw.choice(["male", "female", ""]),
            "remark": f"seen at {draw.random():.6f}"})
    return table


# Quick on a busy machine: one thread, and one checkpoint.
QUICK = ["--json", "--set", "device=cpu", "--set", "train.threads=1",
         "--set", "train.epochs=20", "--set",
         "train.checkpoint_every_steps=100000"]


@unittest.skipUnless(has_part("csv"), "the part that reads CSV was not built")
class Init(Case):
    def write_table(self, rows, name="penguins.csv"):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return name

    @unittest.skipUnless(TRAINS, "the trainer was not built")
    def test_one_command_takes_a_table_to_a_validated_model(self):
        table = penguins()
        self.write_table(table)
        answer = self.succeed("train", "--init", "penguins.csv", "--target",
                              "species", *QUICK)
        report = answer.json()
        # The most frequent species is right in a little more than a third.
        measured = report["metrics"]["val"]
        self.assertGreater(measured["accuracy"], 0.9)
        self.assertGreater(measured["macro_f1"], 0.9)
        self.assertEqual(report["epochs"][-1]["val_accuracy"],
                         measured["accuracy"])
        self.assertEqual(report["metrics"]["train"]["loss"],
                         report["epochs"][-1]["train_loss"])
        self.assertEqual(report["dataset"]["classes"]["species"],
                         ["Adelie", "Chinstrap", "Gentoo"])
        self.assertEqual(report["dataset"]["rows"],
                         sum(row["species"] != "" for row in table))
        self.assertIn("wrote penguins.json", answer.err)
        self.assertIn("val accuracy", answer.err)
        # The file that was written gives the same model again.
        again = self.succeed("train", "penguins.json", *QUICK).json()
        self.assertEqual(again["metrics"], report["metrics"])

    @unittest.skipUnless(TRAINS, "the trainer was not built")
    def test_a_number_is_predicted_in_its_own_unit(self):
        self.write_table(penguins())
        report = self.succeed("train", "--init", "penguins.csv", "--target",
                              "body_mass", "--out", "mass.json",
                              *QUICK).json()
        measured = report["metrics"]["val"]
        # Of the three species together the deviation is about 700 g.
        self.assertLess(measured["rmse"], 500)
        self.assertGreater(measured["rmse"], 100)
        self.assertLess(measured["mae"], measured["rmse"])

    def written(self, *arguments):
        """The job file, whether or not it could be run."""
        self.run_it("train", "--init", "penguins.csv", "--set", "device=sim",
                    *arguments)
        return (self.folder / "penguins.json").read_text(encoding="utf-8")

    def test_the_job_file_says_what_it_does_and_why(self):
        self.write_table(penguins())
        text = self.written("--target", "species")
        for part in ("// Written by", '"where": "\\"species\\" IS NOT NULL"',
                     '"columns": ["bill_length", "body_mass"]',
                     '"missing": "mask"', '"row" (row numbers', '"remark" (400',
                     "3 classes"):
            self.assertIn(part, text)

    def test_the_job_is_written_also_where_it_cannot_be_trained(self):
        self.write_table(penguins())
        answer = self.run_it("train", "--init", "penguins.csv", "--target",
                             "species", "--json", "--set", "device=sim")
        self.refused(answer, "request", "model.on_sim")
        self.assertTrue((self.folder / "penguins.json").exists())

    @unittest.skipUnless(TRAINS, "the trainer was not built")
    def test_a_plan_ends_with_what_would_end_the_run(self):
        self.write_table(penguins())
        self.written("--target", "species")
        plan = ("train", "penguins.json", "--plan", "--json")
        told = self.succeed(*plan, "--set", "device=cpu", "--set",
                            "train.max_steps=7", "--set", "train.warmup_steps=50")
        self.assertIn("warm-up is longer than the run", told.err)
        self.assertIn("checkpoints: ", told.err)
        for code, setting in (("model.on_sim", "device=sim"),
                              ("model.one_class",
                               "source.where=species = 'Adelie'"),
                              ("file.write", "output.dir=penguins.csv/runs")):
            answer = self.run_it(*plan, "--set", "device=cpu", "--set", setting)
            self.refused(answer, "request", code)
        self.assertFalse((self.folder / "runs").exists())

    @unittest.skipIf(TRAINS, "the trainer was built")
    def test_without_the_trainer_the_error_says_so_after_the_job(self):
        self.write_table(penguins())
        answer = self.run_it("train", "--init", "penguins.csv", "--target",
                             "species", "--json")
        self.refused(answer, "request", "trainer.part_missing")
        self.assertTrue((self.folder / "penguins.json").exists())

    def test_a_query_with_gaps_and_a_table_with_bad_cells_make_jobs(self):
        self.database([(i, f"k{i % 2}" if i % 9 else None, i / 2)
                       for i in range(100)],
                      "id INTEGER PRIMARY KEY, kind TEXT, x REAL")
        query = "sqlite:d.sqlite?query=SELECT * FROM t ORDER BY id"
        self.write_table([{**row, "body_mass": "?" if row["row"] == 200
                           else row["body_mass"]} for row in penguins()])
        bad_cells = 'csv:penguins.csv?columns={"body_mass":"float64"}' \
            "&on_bad=skip"
        for source, target in (query, "kind"), (bad_cells, "species"):
            self.run_it("train", "--init", source, "--target", target,
                        "--out", "made.json", "--set", "device=cpu",
                        "--set", "train.max_steps=1")
            found = self.run_it("check", "made.json", "--json").json()
            self.assertGreater(found["val"], 0)
            (self.folder / "made.json").unlink()

    def test_what_a_job_cannot_open_leaves_no_file(self):
        self.database([(1, 2.0)], "id INTEGER PRIMARY KEY, x REAL")
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("CREATE VIEW v AS SELECT * FROM t")
        base.close()
        self.refuse("request", "source.no_key", "v",
                    arguments=["train", "--init", "sqlite:d.sqlite#v",
                               "--target", "x"])
        self.assertEqual(list(self.folder.glob("*.json")), [])

    def test_a_file_that_is_there_is_never_written_over(self):
        self.write_table(penguins())
        (self.folder / "penguins.json").write_text("mine")
        self.refuse("request", "init.exists", "penguins.json",
                    arguments=["train", "--init", "penguins.csv", "--target",
                               "species"])
        self.assertEqual((self.folder / "penguins.json").read_text(), "mine")

    def test_a_target_that_is_not_there_is_named(self):
        self.write_table(penguins())
        self.refuse("request", "init.target", "specie",
                    "did you mean 'species'?",
                    arguments=["train", "--init", "penguins.csv", "--target",
                               "specie"])
        self.assertFalse((self.folder / "penguins.json").exists())

    def test_what_must_stand_together_is_said(self):
        for arguments in (["--target", "y"], ["--base", "folder"],
                          ["--out", "j.json"], ["job.json", "--out", "j.json"],
                          ["job.json", "--init", "t.csv", "--target", "y"]):
            self.refuse("request", "cli.arguments",
                        arguments=["train", *arguments])


if __name__ == "__main__":
    unittest.main()
