"""`penstock predict` and `penstock evaluate`: rows of any source, by the model of
a run or by what --output left."""
import csv
import json
import pathlib
import shutil
import sqlite3
import tempfile
import unittest

import init_test
import models_test
from penstock_cli import Case, has_library, has_part

TRAINED = has_part("csv") and has_part("trainer")
ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIES = ("Adelie", "Chinstrap", "Gentoo")


class Predicting(Case):
    def write_csv(self, name, rows):
        with open(self.folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return name

    def read_csv(self, name):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def predict(self, source, *arguments, run="out", out="answers.csv"):
        """The document, and the rows that were written."""
        told = self.succeed("predict", run, source, "--out", out, "--json",
                            *arguments).json()
        return told, self.read_csv(out)


@unittest.skipUnless(has_library("penstock_images") and has_part("trainer"),
                     "built without libjpeg, libpng or libwebp, or the trainer")
class Pictures(Predicting):
    def test_need_no_class(self):
        for at in range(12):
            of = self.folder / "photos" / ("cat", "dog")[at % 2]
            of.mkdir(parents=True, exist_ok=True)
            (of / f"{at}.png").write_bytes(init_test.png(20 * at, side=32))
        self.succeed("train", "--init", "images:photos", "--out", "new.json",
                     "--json", "--output", "out", "--set", "device=cpu",
                     "--set", "fields.image.image.size=32",
                     "--set", "train.max_steps=2")
        told, known = self.predict("images:photos")
        self.assertIn("accuracy", told["metrics"])
        (self.folder / "new").mkdir()
        for each in self.folder.glob("photos/*/*.png"):
            shutil.copy(each, self.folder / "new")
        (self.folder / "list.csv").write_text(
            "path\n" + "".join(f"{row['key']}\n" for row in known))
        for source, kept in (("images:new", lambda key: key.split("/")[1]),
                             ("images:photos?labels=list.csv", str)):
            told, rows = self.predict(source)
            self.assertEqual((told["rows"], told["bad"]), (12, 0))
            self.assertNotIn("metrics", told)
            self.assertEqual({row["key"]: row["prediction"] for row in rows},
                             {kept(row["key"]): row["prediction"]
                              for row in known})
            self.refused(self.run_it("evaluate", "out", source, "--json"),
                         "source", "images.none", "class")
        # Some have one.
        (self.folder / "list.csv").write_text(
            "path,class\n" + "".join(
                f"{row['key']},{row['prediction'] if at else ''}\n"
                for at, row in enumerate(known)))
        told, rows = self.predict("images:photos?labels=list.csv")
        self.assertEqual(rows, known)
        self.assertNotIn("metrics", told)
        self.assertIn(f"row '{known[0]['key']}', column 'class': is NULL",
                      told["not_measured"])
        # A class without a picture is measured like any other.
        (self.folder / "photos" / "bird").mkdir()
        (self.folder / "photos" / "loose.png").write_bytes(
            init_test.png(7, side=32))
        answer = self.succeed("predict", "out", "images:photos", "--out",
                              "answers.csv", "--json")
        self.assertIn("accuracy", answer.json()["metrics"])
        self.assertEqual(self.read_csv("answers.csv"), known)
        self.assertEqual(answer.err.count("1 picture is not read"), 1)
        self.succeed("evaluate", "out", "images:photos")


@unittest.skipUnless(TRAINED, "the parts for CSV or models were not built")
class Kinds(Predicting, models_test.ModelJobs):
    """Each kind of model with each target that it trains on."""

    @staticmethod
    def columns_of(target):
        return {"category": ["prediction", "p_a", "p_b", "p_c"],
                "multi_hot": ["prediction", "p_a", "p_b", "p_c", "p_d"],
                "number": ["y"],
                "yes_or_no": ["prediction", "p_false", "p_true"],
                "place": ["lat", "lon", "within_90_km"],
                "tokens": ["loss_per_token"]}[target]

    def test_each_measures_held_out_rows_as_its_run_did_bit_for_bit(self):
        for kind, target in sorted(models_test.TRAINS):
            with self.subTest(kind=kind, target=target):
                self.model_job(kind, target)
                report = self.succeed("train", "job.json", "--json",
                                      "--output", "out").json()
                epoch = report["epochs"][-1]
                held_out = self.held_out_rows()
                told, rows = self.predict(held_out)
                self.assertEqual(
                    told["metrics"],
                    {name[4:]: value for name, value in epoch.items()
                     if name.startswith("val_")})
                self.assertEqual(list(rows[0]),
                                 ["key", *self.columns_of(target)])
                again = self.succeed("evaluate", report["run"], held_out,
                                     "--json").json()
                self.assertEqual(again["metrics"], told["metrics"])
                shutil.rmtree(self.folder / "out")

    def held_out_rows(self):
        """The rows of the side val, in the order in which it has them."""
        steps = self.batches("--split", "val", "--steps", "0:1", "--set",
                             "loader.tail=exact", "--set",
                             "loader.val_batch_size=1000")
        table, keys = self.read_csv("rows.csv"), steps[0]["keys"]
        return self.write_csv("held_out.csv", [table[key] for key in keys])


@unittest.skipUnless(TRAINED, "the parts for CSV or models were not built")
class Texts(Predicting, models_test.ModelJobs):
    """A language model continues the text of each row."""

    def texts(self, *arguments):
        return [row["text"] for row in
                self.predict("rows.csv", "--max-tokens", 6, *arguments)[1]]

    def test_tokens_without_a_tokenizer_are_lists(self):
        self.model_job("causal_lm", "tokens")
        self.train("--output", "out")
        rows = self.predict("rows.csv", "--max-tokens", "6")[1]
        self.assertEqual(list(rows[0]), ["key", "loss_per_token", "text"])
        for row in rows:
            ids = json.loads(row["text"])
            self.assertEqual(len(ids), 6)
            self.assertLess(max(ids), 20)
        likeliest = self.texts()
        self.assertEqual(self.texts("--seed", 5), likeliest)
        drawn = self.texts("--temperature", 1, "--seed", 5)
        self.assertNotEqual(drawn, likeliest)
        self.assertEqual(self.texts("--temperature", 1, "--seed", 5), drawn)
        self.assertNotEqual(self.texts("--temperature", 1, "--seed", 6), drawn)
        self.assertEqual(self.texts("--temperature", 1, "--top-p", 0),
                         likeliest)

    def test_a_tokenizer_goes_with_its_run_and_makes_text(self):
        example = ROOT / "examples" / "text"
        for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
            shutil.copy(example / name, self.folder)
        self.write_csv("lines.csv", [{"line": "the cat sat on the mat " * 3}
                                     for _ in range(24)])
        self.write_job({
            "source": "csv:lines.csv",
            "fields": {"line": {"tokens": {
                "column": "line", "tokenizer": "tokenizer.json", "eos": True,
                "max_length": 64}}},
            "split": {"val": 0.25}, "loader": {"batch_size": 2, "seed": 3},
            "device": "cpu",
            "model": {"kind": "causal_lm", "config": "config.json"},
            "train": {"epochs": 1, "warmup_steps": 2, "threads": 1}})
        self.succeed("train", "job.json", "--output", "out")
        for name in ("tokenizer.json", "tokenizer_config.json", "config.json",
                     "job.json"):
            (self.folder / name).unlink()
        told, rows = self.predict("lines.csv", "--max-tokens", "5")
        self.assertEqual(told["rows"], 24)
        self.assertEqual(len({row["text"] for row in rows}), 1)
        self.assertGreater(float(rows[0]["loss_per_token"]), 0)

    def test_a_model_of_classes_makes_no_text(self):
        self.model_job("tabular", "category")
        self.train("--output", "out")
        self.refused(self.run_it("predict", "out", "rows.csv", "--max-tokens",
                                 5, "--json"), "request", "predict.no_text")


@unittest.skipUnless(TRAINED, "the parts for CSV or models were not built")
class Table(Predicting):
    """A classifier of three species, trained for an epoch."""

    kept = None  # the folder of a run, made once

    def setUp(self):
        super().setUp()
        if Table.kept is None:
            Table.kept = pathlib.Path(tempfile.mkdtemp(prefix="penstock-e2e-"))
            self.addClassCleanup(shutil.rmtree, Table.kept, True)
            self.train_once()
            shutil.copytree(self.folder, Table.kept, symlinks=True,
                            dirs_exist_ok=True)
        else:
            shutil.copytree(Table.kept, self.folder, symlinks=True,
                            dirs_exist_ok=True)

    def train_once(self):
        self.write_csv("birds.csv", birds())
        self.write_job({
            "source": "csv:birds.csv",
            "fields": {"x": {"columns": ["bill", "mass"], "standardize": True},
                       "island": {"category": {"column": "island"}},
                       "species": {"category": {"column": "species",
                                                "unknown": "error"}}},
            "split": {"val": 0.25}, "loader": {"batch_size": 16, "seed": 3},
            "device": "cpu",
            "model": {"kind": "tabular", "target": "species", "width": 16,
                      "depth": 1},
            "train": {"epochs": 2, "warmup_steps": 2, "threads": 1}})
        self.succeed("train", "job.json", "--output", "out")

    def without(self, column, name="new.csv"):
        return self.write_csv(name, [
            {key: value for key, value in row.items() if key != column}
            for row in birds()])

    def test_rows_without_the_target_are_predicted(self):
        told, rows = self.predict(self.without("species"))
        self.assertEqual((told["rows"], told["bad"], told["out"]),
                         (200, 0, "answers.csv"))
        self.assertNotIn("metrics", told)
        self.assertEqual([int(row["key"]) for row in rows], list(range(200)))
        for row in rows:
            shares = [float(row["p_" + name]) for name in SPECIES]
            self.assertAlmostEqual(sum(shares), 1, places=5)
            self.assertEqual(row["prediction"],
                             SPECIES[shares.index(max(shares))])
        right = sum(row["prediction"] == bird["species"]
                    for row, bird in zip(rows, birds()))
        self.assertGreater(right, 120)

    def test_both_folders_answer_alike_whatever_the_workers(self):
        new = self.without("species")
        wanted = None
        for run in ("out", "runs/latest"):
            for workers in (0, 1, 2, 8):
                document = json.loads(
                    (self.folder / run / "run.json").read_text())
                document["job"]["loader"]["workers"] = workers
                (self.folder / run / "run.json").write_text(
                    json.dumps(document))
                self.predict(new, run=run)
                found = (self.folder / "answers.csv").read_bytes()
                wanted = wanted or found
                self.assertEqual(found, wanted, (run, workers))

    def test_the_folder_of_weights_can_be_moved(self):
        new = self.without("species")
        self.predict(new)
        wanted = (self.folder / "answers.csv").read_bytes()
        (self.folder / "out").rename(self.folder / "elsewhere")
        for gone in ("birds.csv", "job.json"):
            (self.folder / gone).unlink()
        shutil.rmtree(self.folder / "runs")
        self.predict(new, run="elsewhere")
        self.assertEqual((self.folder / "answers.csv").read_bytes(), wanted)

    def test_the_weights_of_the_run_folder_come_before_its_checkpoint(self):
        weights = self.folder / "runs" / "latest" / "weights"
        weights.mkdir(exist_ok=True)
        answers = self.predict(self.without("species"))[1]
        for name in ("last", "best"):
            shutil.copy(self.folder / "out" / "model.safetensors",
                        weights / f"{name}.safetensors")
            self.assertEqual(self.predict(self.without("species"),
                                          run="runs/latest")[1], answers)
        (weights / "best.safetensors").write_bytes(b"nonsense")
        self.assertNotEqual(
            self.run_it("predict", "runs/latest", "new.csv").code, 0)

    def test_without_a_file_a_pipe_gets_csv(self):
        answer = self.succeed("predict", "out", self.without("species"))
        self.predict("new.csv")
        self.assertEqual(answer.out, (self.folder / "answers.csv").read_text())
        self.assertIn("200 rows predicted", answer.err)

    def test_each_format_holds_the_same_rows(self):
        self.without("species")
        rows = self.predict("new.csv")[1]
        self.predict_to("answers.jsonl")
        lines = [json.loads(line) for line in
                 (self.folder / "answers.jsonl").read_text().splitlines()]
        for row, line in zip(rows, lines, strict=True):
            self.assertEqual(row, {key: str(value)
                                   for key, value in line.items()})
        self.predict_to("answers.tsv")
        self.assertIn("\t", (self.folder / "answers.tsv").read_text())
        if not has_part("parquet"):
            return
        for name in ("answers.parquet", "answers.arrow"):
            self.predict_to(name)
            seen = self.succeed("peek", name, "--json").json()
            self.assertEqual(seen["rows"], 200)
            self.assertEqual([column["name"] for column in seen["columns"]],
                             list(rows[0]))
            self.assertEqual(seen["first"][0]["prediction"],
                             rows[0]["prediction"])

    def predict_to(self, out):
        self.succeed("predict", "out", "new.csv", "--out", out)

    def test_rows_of_a_database_keep_their_keys(self):
        with sqlite3.connect(self.folder / "b.sqlite") as base:
            base.execute("CREATE TABLE b (id TEXT PRIMARY KEY, island TEXT, "
                         "bill REAL, mass REAL)")
            for i, row in enumerate(birds()):
                base.execute("INSERT INTO b VALUES (?, ?, ?, ?)",
                             (f"bird {i:03}", row["island"], row["bill"],
                              row["mass"]))
        base.close()
        told, rows = self.predict("sqlite:b.sqlite#b")
        self.assertEqual(told["rows"], 200)
        self.assertEqual([row["key"] for row in rows],
                         [f"bird {i:03}" for i in range(200)])

    def test_conditions_of_the_job_do_not_apply(self):
        path = self.folder / "out" / "run.json"
        document = json.loads(path.read_text())
        document["job"]["source"] = {"kind": "csv", "path": "birds.csv",
                                     "where": "island = 'Dream'"}
        document["job"]["loader"]["limit"] = 10
        path.write_text(json.dumps(document))
        self.assertEqual(self.predict("birds.csv")[0]["rows"], 200)

    def test_an_empty_source_gives_a_heading(self):
        (self.folder / "none.csv").write_text("island,bill,mass\n")
        told, rows = self.predict("none.csv")
        self.assertEqual((told["rows"], rows), (0, []))
        self.assertEqual((self.folder / "answers.csv").read_text(),
                         "key,prediction,p_Adelie,p_Chinstrap,p_Gentoo\n")

    def test_bad_rows_stop_or_are_left_out_and_counted(self):
        rows = birds()
        for row in rows:
            row.pop("species")
        rows[7]["mass"] = "heavy"
        self.write_csv("bad.csv", rows)
        # One word would make the column one of texts in a file by itself.
        self.refused(self.run_it("predict", "out", "bad.csv", "--out", "a.csv",
                                 "--json"),
                     "transform", "data.bad_rows", "row 7", "mass", "heavy")
        self.assertFalse((self.folder / "a.csv").exists())
        for run in "out", "runs/latest":
            told, found = self.predict("csv:bad.csv?on_bad=skip", run=run)
            self.assertEqual((told["rows"], told["bad"]), (199, 1))
            self.assertNotIn("7", [row["key"] for row in found])

    def test_a_type_that_the_source_names_counts(self):
        source = f"csv:{self.without('species')}"
        self.refused(self.run_it("predict", "out", source +
                                 '?columns={"mass":"text"}', "--json"),
                     "transform", "data.bad_rows", "mass")

    def test_classes_that_training_has_not_seen(self):
        rows = birds()
        for row in rows:
            row["island"] = "Atlantis"
        self.write_csv("new.csv", rows)
        self.assertEqual(self.predict("new.csv")[0]["bad"], 0)
        for row in rows:
            row["species"] = "Emperor"
        self.write_csv("new.csv", rows)
        self.refused(self.run_it("evaluate", "out", "new.csv", "--json"),
                     "transform", "data.bad_rows", "Emperor")

    def test_rows_whose_target_is_not_known_are_predicted_and_not_measured(self):
        rows = birds()
        wanted = self.predict(self.without("species"))[1]
        for wrong in "", "Emperor":
            rows[7]["species"] = wrong
            self.write_csv("new.csv", rows)
            for source in "new.csv", "csv:new.csv?on_bad=skip":
                told, found = self.predict(source)
                self.assertEqual((told["rows"], told["bad"]), (200, 0))
                self.assertNotIn("metrics", told)
                self.assertIn("row 7, column 'species'", told["not_measured"])
                self.assertEqual(found, wanted)
        answer = self.succeed("predict", "out", "new.csv")
        self.assertEqual(len(answer.out.splitlines()), 201)
        self.assertIn("not measured", answer.err)

    def test_evaluate_needs_the_target(self):
        self.refused(self.run_it("evaluate", "out", self.without("species"),
                                 "--json"),
                     "request", "source.unknown_column", "species")

    def test_a_missing_column_is_named_with_the_nearest(self):
        rows = [{"island": row["island"], "bill": row["bill"],
                 "masss": row["mass"]} for row in birds()]
        self.write_csv("new.csv", rows)
        self.refused(self.run_it("predict", "out", "new.csv", "--json"),
                     "request", "source.unknown_column", "'mass'",
                     "did you mean 'masss'?")

    def test_a_column_of_another_type_is_refused(self):
        rows = birds()
        for row in rows:
            row["mass"] = "heavy"
        self.write_csv("new.csv", rows)
        answer = self.run_it("predict", "out", "new.csv", "--json")
        self.refused(answer, "transform", "data.bad_rows", "'mass'", "'heavy'",
                     "new.csv:2")

    def test_what_is_no_run(self):
        (self.folder / "empty").mkdir()
        for run in ("empty", "nowhere", "birds.csv"):
            self.refused(self.run_it("predict", run, "birds.csv", "--json"),
                         "request", "predict.no_run", run)
        path = self.folder / "out" / "run.json"
        document = json.loads(path.read_text())
        document["job"]["model"] = "none"
        path.write_text(json.dumps(document))
        self.refused(self.run_it("predict", "out", "birds.csv", "--json"),
                     "request", "predict.no_model")

    def test_a_run_without_weights(self):
        (self.folder / "out" / "model.safetensors").unlink()
        self.refused(self.run_it("predict", "out", "birds.csv", "--json"),
                     "request", "predict.no_weights", "out")

    def test_weights_of_another_model(self):
        path = self.folder / "out" / "run.json"
        document = json.loads(path.read_text())
        document["job"]["model"]["width"] = 24
        path.write_text(json.dumps(document))
        self.refused(self.run_it("predict", "out", "birds.csv", "--json"),
                     "request", "predict.other_model", "model.safetensors")

    def test_files_that_cannot_take_predictions(self):
        (self.folder / "folder.csv").mkdir()
        for out, code in (("a.txt", "predict.out_format"),
                          ("a", "predict.out_format"),
                          ("folder.csv", "predict.out_folder"),
                          ("birds.csv", "predict.out_is_source")):
            self.refused(self.run_it("predict", "out", "birds.csv", "--out",
                                     out, "--json"), "request", code, out)

    def test_what_was_there_stays_until_the_last_row(self):
        (self.folder / "answers.csv").write_text("of yesterday")
        rows = birds()
        rows[150]["mass"] = "heavy"
        self.write_csv("new.csv", rows)
        self.assertNotEqual(
            self.run_it("predict", "out",
                        'csv:new.csv?columns={"mass":"float64"}', "--out",
                        "answers.csv").code, 0)
        self.assertEqual((self.folder / "answers.csv").read_text(),
                         "of yesterday")


def birds(count=200):
    """Told apart by bill and mass, one after the other."""
    return [{"species": SPECIES[i % 3],
             "island": ("Biscoe", "Dream", "Torgersen")[i * 7 % 3],
             "bill": (39, 49, 47)[i % 3] + (i * 37 % 11 - 5) / 4,
             "mass": (3700, 3730, 5070)[i % 3] + (i * 53 % 17 - 8) * 30}
            for i in range(count)]


if __name__ == "__main__":
    unittest.main()
