"""Classes in Python: numbered from 0, the unknown one the last, and named."""

import pathlib
import tempfile
import unittest

import numpy

import penstock
from positions import has
from penstock import images

ROWS = ["cat", "dog", "", "owl", "dog"] * 8


class Classes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "t.csv"
        self.path.write_text("a,b,kind\n" + "".join(
            f"{at},{at % 2},{kind}\n" for at, kind in enumerate(ROWS)))

    def open(self, **kind):
        return penstock.Loader(
            self.path, {"x": ["a"], "y": {"category": {"column": "kind", **kind}}},
            batch_size=len(ROWS))

    def test_numbers_are_places_in_the_list_of_names(self):
        with self.assertLogs("penstock"), self.open() as loader:
            names = loader.classes("y")
            self.assertEqual(names, ["cat", "dog", "owl", None])
            found = [names[number] for number in loader.peek()["y"].numpy()]
            self.assertEqual(found, [kind or None for kind in ROWS])

    def test_of_integers_and_booleans_and_without_an_unknown_class(self):
        with penstock.Loader(self.path, {
                "y": {"category": {"column": "b", "unknown": "error"}}}
        ) as loader:
            self.assertEqual(loader.classes("y"), [0, 1])
        with penstock.Loader({"x": numpy.arange(4)}) as loader, \
                self.assertRaises(penstock.RequestError) as caught:
            loader.classes("x")
        self.assertEqual(caught.exception.code, "fields.no_classes")

    def test_the_unknown_class_has_the_last_place_of_one_hot(self):
        with self.open(one_hot=4) as loader:
            rows = loader.peek()["y"].numpy()
            self.assertEqual(rows[2].tolist(), [0, 0, 0, 1])
            self.assertEqual(rows.argmax(1)[:2].tolist(), [0, 1])

    def test_rows_of_the_unknown_class_are_told_once(self):
        with self.assertLogs("penstock", "WARNING") as told, self.open():
            pass
        self.assertEqual(len(told.output), 1)
        for text in ("'y' (class 3: 8 train rows)", "ignore_index=3",
                     '"unknown": "error"'):
            self.assertIn(text, told.output[0])
        with self.assertNoLogs("penstock", "WARNING"), penstock.Loader(
                self.path, {"x": ["a"]}):
            pass

    def test_a_state_of_the_old_numbering_is_refused_with_the_reason(self):
        with self.assertLogs("penstock"), self.open() as loader:
            state = loader.state_dict()
            loader.load_state_dict(state)
            old = {"epoch": 0, "step": 0, "steps_taken": 0, "fingerprint":
                   loader.stats()["dataset"]["fingerprint"], "order": {},
                   "fields": {"x": {"columns": ["a"], "dtype": "float32",
                                    "standardize": False},
                              "y": {"category": {
                                  "column": "kind", "min_count": 1,
                                  "unknown": "class", "order": "sorted"}}}}
            with self.assertRaises(penstock.RequestError) as caught:
                loader.load_state_dict(old)
        self.assertEqual(caught.exception.code, "resume.other_fields")
        self.assertIn("the run numbered its classes from 1", str(caught.exception))

    def test_the_names_of_folders_are_a_list_that_can_be_called(self):
        names = images.ClassNames(lambda field: [field], ["cat", "dog"])
        self.assertEqual(names, ["cat", "dog"])
        self.assertEqual(names("label"), ["label"])
        self.assertEqual(images._caption(
            {"label": numpy.array([1, 2])}, "image", 1, ["a", "b", None]),
            "label unknown")

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_cross_entropy_of_torch_ignores_what_is_unknown(self):
        import torch

        with self.assertLogs("penstock"), self.open() as loader:
            truth = loader.peek().torch()["y"]
            classes = loader.classes("y")
        answers = torch.zeros(len(truth), len(classes) - 1)
        loss = torch.nn.functional.cross_entropy(
            answers, truth, ignore_index=len(classes) - 1)
        self.assertAlmostEqual(float(loss), numpy.log(3), 5)


@unittest.skipUnless(has("torch"), "torch is not installed")
class OwnModels(unittest.TestCase):
    def objective(self, name="auto"):
        import torch

        from penstock._training.module import Field
        from penstock._training.objective import Named
        field = Field("y", "int64", (), {"classes": ["a", "b"]}, True)
        self.assertEqual(field.classes, ["a", "b", None])
        return Named(torch, name, field, 0.0), torch

    def test_the_unknown_class_weighs_nothing_with_a_number_for_it_or_not(self):
        for width in (2, 3):
            objective, torch = self.objective()
            answers = torch.zeros(4, width)
            answers[:, width - 1] = 1.0  # it guesses the last
            batch = {"y": torch.tensor([0, 1, 2, 2])}
            objective.look(answers, batch)
            seen = objective.seen()
            expected = torch.nn.functional.cross_entropy(
                answers[:2], batch["y"][:2])
            self.assertAlmostEqual(seen["val_loss"], float(expected), 5)
            self.assertEqual(seen["val_accuracy"], 0.5)
            self.assertAlmostEqual(float(objective.loss(answers, batch)),
                                   float(expected), 5)

    def test_a_last_layer_that_lacks_a_known_class_is_refused(self):
        objective, torch = self.objective()
        with self.assertRaises(penstock.RequestError) as caught:
            objective.loss(torch.zeros(4, 1), {"y": torch.tensor([0, 1, 2, 2])})
        self.assertIn("has 2", str(caught.exception))

    def test_of_one_number_for_two_classes(self):
        objective, torch = self.objective("binary_cross_entropy")
        loss = objective.loss(torch.zeros(4), {"y": torch.tensor([0, 1, 2, 2])})
        self.assertAlmostEqual(float(loss), numpy.log(2), 5)


if __name__ == "__main__":
    unittest.main()
