"""What a run shows of the held-out rows, for each kind of model: in report.json
and on the page of the run."""
import base64
import json
import struct
import unittest

import init_test
import models_test
from penstock_cli import Case, has_library, has_part

LEAST_SIDE, MOST_SIDE = 1, 40
MOST_PICTURE = 8 * 1024  # bytes of a thumbnail in report.json


@unittest.skipUnless(has_part("csv") and has_part("trainer"),
                     "the parts for CSV or models were not built")
class Details(models_test.ModelJobs):
    def report(self, kind, target, *sets):
        self.model_job(kind, target)
        report = self.succeed("train", "job.json", "--json", *(
            part for one in sets for part in ("--set", one))).json()
        self.page = (self.folder / report["run"] / "report.html").read_text()
        return report

    def check_worst(self, report, measure="loss"):
        """Keys of held-out rows, those of the highest `measure` first."""
        worst = report["worst_rows"]
        measured = [row[measure] for row in worst]
        self.assertEqual(measured, sorted(measured, reverse=True))
        self.assertEqual(len({str(row["key"]) for row in worst}), len(worst))
        self.assertLessEqual(len(worst), 20)
        self.assertIn("The rows it is most wrong about", self.page)
        return worst

    def test_places_show_their_distances_and_the_mean_place(self):
        report = self.report("set_position", "place")
        for row in self.check_worst(report, "km"):
            self.assertEqual(len(row["truth"]), 2)
            self.assertEqual(len(row["guess"]), 2)
            self.assertTrue(50 <= row["truth"][0] <= 51, row)
            self.assertTrue(8 <= row["truth"][1] <= 9, row)
        validated = report["metrics"]["val"]
        self.assertAlmostEqual(report["residuals"]["mean"],
                               validated["mean_km"], places=6)
        self.assertEqual(report["residuals"]["unit"], "km")
        self.assertEqual(sum(report["residuals"]["histogram"]["counts"]),
                         report["dataset"]["val"])
        # Of places that are drawn from a square of 111 x 71 km.
        self.assertTrue(10 < report["baseline"]["val_median_km"] < 80)
        self.assertIn("How far its places are off", self.page)
        self.assertIn("km (median)", self.page)

    def test_texts_show_the_worst_rows_and_what_the_model_writes(self):
        report = self.report("causal_lm", "tokens", "train.epochs=2")
        for row in self.check_worst(report):
            self.assertGreater(row["tokens"], 0)
        first, last = report["texts"]
        self.assertEqual([first["epoch"], last["epoch"]], [0, 1])
        self.assertLess(first["step"], last["step"])
        self.assertEqual(len(last["texts"]), 3)
        for one, again in zip(first["texts"], last["texts"]):
            self.assertEqual((one["key"], one["prompt"]),
                             (again["key"], again["prompt"]))
            # Rows of 4 to 11 tokens, by the ids that the column holds.
            self.assertIn(len(json.loads(one["prompt"])), range(2, 7))
            self.assertEqual(len(json.loads(one["text"])), 32)
        self.assertIn("What it writes", self.page)
        self.assertIn(last["texts"][0]["text"], self.page)

    def test_how_many_texts_and_how_long_the_job_says(self):
        sets = ["model.sample_texts=1", "model.sample_tokens=5"]
        one = self.report("causal_lm", "tokens", *sets)["texts"]
        self.assertEqual([len(each["texts"]) for each in one], [1])
        self.assertEqual(len(json.loads(one[0]["texts"][0]["text"])), 5)
        again = self.report("causal_lm", "tokens", *sets)["texts"]
        self.assertEqual(again, one)
        without = self.report("causal_lm", "tokens", "model.sample_texts=0")
        self.assertNotIn("texts", without)
        self.assertNotIn("What it writes", self.page)

    def test_other_kinds_write_no_text(self):
        self.assertNotIn("texts", self.report("tabular", "category"))
        self.refuse("request", "settings.unknown_key", "sample_texts",
                    sets=["model.sample_texts=1"])

    def test_pictures_of_the_worst_rows_are_small(self):
        for target in ("category", "multi_hot"):
            with self.subTest(target=target):
                report = self.report("image_classifier", target)
                for row in self.check_worst(report):
                    self.check_picture(row["thumbnail"])
                    self.assertIn(row["thumbnail"], self.page)

    def check_picture(self, uri):
        head = "data:image/png;base64,"
        self.assertTrue(uri.startswith(head))
        self.assertLess(len(uri), MOST_PICTURE)
        data = base64.b64decode(uri[len(head):], validate=True)
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        for side in struct.unpack(">2I", data[16:24]):
            self.assertTrue(LEAST_SIDE <= side <= MOST_SIDE, side)


@unittest.skipUnless(has_library("penstock_images") and has_part("trainer"),
                     "built without libjpeg, libpng or libwebp, or the trainer")
class Pictures(Case):
    def test_of_files_thumbnails_have_their_colours(self):
        for at in range(12):
            of = self.folder / "photos" / ("cat", "dog")[at % 2]
            of.mkdir(parents=True, exist_ok=True)
            (of / f"{at}.png").write_bytes(init_test.png(20 * at, side=64))
        report = self.succeed(
            "train", "--init", "images:photos", "--out", "new.json", "--json",
            "--set", "device=cpu", "--set", "fields.image.image.size=64",
            "--set", "train.max_steps=2").json()
        for row in report["worst_rows"]:
            # One colour, as the file has it.
            data = base64.b64decode(row["thumbnail"].partition(",")[2])
            pixels = data[data.index(b"IDAT") + 12:]
            name = int(str(row["key"]).rpartition("/")[2].split(".")[0])
            self.assertEqual(tuple(pixels[:3]), (20 * name, 40, 80))


if __name__ == "__main__":
    unittest.main()
