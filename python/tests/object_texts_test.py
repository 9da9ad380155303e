"""Columns of objects of a data frame: texts of which few are different are read
as codes, with the batches of the same texts in a table of pyarrow."""

import importlib.util
import unittest

import numpy

import penstock
from alarm import listen, rings
from entry import main
from epochs import all_rows
from penstock import _engine
from penstock._rows import object_texts

HAVE = all(importlib.util.find_spec(name) is not None
           for name in ("pandas", "pyarrow"))
WORDS = ["b", "a", "cc", "\u00e9", "\U0001f600", ""]


@unittest.skipUnless(HAVE, "without pandas and pyarrow")
class ObjectTexts(unittest.TestCase):
    def frame(self, rows=70_000, **more):
        import pandas
        draw = numpy.random.default_rng(3)
        missing = [None, float("nan"), numpy.float64("nan"), pandas.NA,
                   pandas.NaT]
        columns = {
            "shared": [WORDS[at] for at in draw.integers(0, 6, rows)],
            "own": ["".join(["k", str(at)])
                    for at in draw.integers(0, 300, rows)],
            "gaps": [missing[at] if at < 5 else WORDS[at - 5]
                     for at in draw.integers(0, 11, rows)], **more}
        return pandas.DataFrame(
            {"x": numpy.arange(rows, dtype="float64"), **{
                name: pandas.Series(values, dtype=object)
                for name, values in columns.items()}})

    def plain(self, frame):
        import pyarrow
        return pyarrow.Table.from_pandas(frame, preserve_index=False)

    def both(self, frame, *arguments, **more):
        found = []
        for source in (frame, self.plain(frame)):
            with penstock.Loader(source, *arguments, **more) as loader:
                rows = all_rows(loader)
                found.append((rows, loader.statistics, repr(loader)))
        for name, array in found[1][0].items():
            numpy.testing.assert_array_equal(found[0][0][name], array)
            self.assertEqual(found[0][0][name].dtype, array.dtype)
        self.assertEqual(found[0][0].keys(), found[1][0].keys())
        return found

    def test_batches_are_those_of_a_table_of_the_same_texts(self):
        frame = self.frame()
        for workers in (0, 1, 2, 8):
            with self.subTest(workers=workers):
                ours, theirs = self.both(
                    frame, batch_size=999, shuffle=True, seed=5,
                    num_workers=workers)
                for name in ("shared", "own", "gaps"):
                    self.assertEqual(ours[1][name]["classes"],
                                     theirs[1][name]["classes"])
                self.assertEqual(len(ours[1]["own"]["classes"]), 300)
                self.assertEqual(ours[2].split("\n")[1:],
                                 theirs[2].split("\n")[1:])

    def test_of_many_rows_none_is_scanned_for_their_classes(self):
        frame = self.frame(400_000)
        with penstock.Loader(frame, batch_size=4000, num_workers=2) as loader:
            self.assertIn("while all samples are packed in memory",
                          " ".join(loader.plan["notes"]))
            for _ in range(3):
                found = all_rows(loader)
            unknown = len(loader.classes("gaps")) - 1
        words = numpy.array(sorted(WORDS), dtype=object)
        numpy.testing.assert_array_equal(words[found["shared"]],
                                         frame["shared"])
        numpy.testing.assert_array_equal(found["gaps"] == unknown,
                                         frame["gaps"].isna())

    def test_classes_are_those_of_the_train_side(self):
        frame = self.frame(2000)
        frame["rare"] = [f"r{at}" if at % 4 == 0 else "r" for at in
                         range(2000)]
        frame["rare"] = frame["rare"].astype(object)
        for side in ("train", "val"):
            for more in ({"split": {"train": 0.5, "val": 0.5, "seed": 3}},
                         {"limit": 150}):
                with self.subTest(side, **more):
                    if side == "val" and "limit" in more:
                        continue
                    ours, theirs = self.both(frame, batch_size=64, side=side,
                                             **more)
                    self.assertEqual(ours[1], theirs[1])

    def test_conditions_draws_and_other_fields_read_the_texts(self):
        frame = self.frame(3000)
        category = {"category": {"column": "shared"}}
        for fields, more in (
                (None, {"where": "shared = 'a' OR gaps IS NULL"}),
                (None, {"on_bad": "skip"}),
                (None, {"balance": "shared"}),
                ({"y": category, "x": "x"}, {"balance": "shared"}),
                ({"y": category, "t": {"text": {"column": "shared"}}}, {}),
                ({"y": {"category": {"column": "gaps", "min_count": 300}}},
                 {}),
                ({"y": {"category": {"column": "own",
                                     "order": "frequency"}}}, {}),
                ({"y": category, "z": {"category": {
                    "column": "own", "one_hot": 301}}}, {})):
            with self.subTest(fields=fields, **more):
                ours, theirs = self.both(frame, fields, batch_size=500,
                                         **more)
                self.assertEqual(ours[1].get("y", {}).get("classes"),
                                 theirs[1].get("y", {}).get("classes"))

    def test_a_missing_text_is_bad_where_an_unknown_one_is(self):
        fields = {"y": {"category": {"column": "gaps", "unknown": "error"}}}
        for source in (self.frame(600), self.plain(self.frame(600))):
            with self.assertRaises(penstock.TransformError) as caught:
                with penstock.Loader(source, fields, batch_size=600) as loader:
                    next(iter(loader))
            self.assertIn("gaps", str(caught.exception))
            self.assertIn("NULL", str(caught.exception))

    def test_many_different_texts_are_no_field_by_themselves(self):
        many = [f"n{at}" for at in range(3000)]
        ours, theirs = self.both(self.frame(3000, many=many), batch_size=500)
        for text in (ours[2], theirs[2]):
            self.assertIn("left out: 'many' holds more than 1000 different "
                          "texts", text)
        ours, theirs = self.both(
            self.frame(3000, many=many),
            {"y": {"category": {"column": "many"}}}, batch_size=500)
        self.assertEqual(ours[1]["y"]["classes"], sorted(many))

    def test_a_job_may_split_and_draw_by_what_is_no_field(self):
        frame = self.frame(3000, many=[f"n{at // 2}" for at in range(3000)])
        found = []
        for source in (frame, self.plain(frame)):
            with penstock.open({"source": source,
                                "split": {"val": 0.3, "by": "many"}},
                               loader__batch_size=500,
                               loader__balance="shared") as loader:
                found.append(all_rows(loader)["x"])
        self.assertGreater(len(found[0]), 1000)
        numpy.testing.assert_array_equal(*found)

    def test_a_frame_of_nothing_else_says_why_there_is_no_field(self):
        import pandas
        frame = pandas.DataFrame(
            {"id": pandas.Series([f"n{at}" for at in range(3000)],
                                 dtype=object)})
        with self.assertRaises(penstock.RequestError) as caught:
            penstock.Loader(frame)
        self.assertEqual(caught.exception.code, "fields.none")
        self.assertIn("'id' holds more than 1000", str(caught.exception))

    def test_an_object_of_another_type_is_named_by_its_row(self):
        for words in (WORDS[:2], [f"n{at}" for at in range(2500)]):
            mixed = [words[at % len(words)] for at in range(3000)]
            mixed[2700] = 7
            with penstock.Loader(self.frame(3000, mixed=mixed),
                                 batch_size=9) as loader:
                self.assertIn("'mixed' holds values of several types: row 2700 "
                              "has the int 7, and the rows before it str",
                              repr(loader))
            with self.assertRaises(penstock.RequestError) as caught:
                penstock.Loader(
                    self.frame(3000, mixed=mixed),
                    {"y": {"category": {"column": "mixed"}}})
            self.assertIn("row 2700", str(caught.exception))

    def test_other_layouts_and_types_of_texts(self):
        import pandas
        words = numpy.array([WORDS[at % 5] for at in range(900)], dtype=object)
        several = numpy.asfortranarray(
            numpy.stack([words, words[::-1], words], 1))
        frames = {
            "a row of it is contiguous": pandas.DataFrame(
                numpy.ascontiguousarray(several), columns=list("abc")),
            "a column of it is": pandas.DataFrame(several,
                                                  columns=list("abc")),
            "every third row": pandas.DataFrame({"a": words})[::3],
            "subclasses": pandas.DataFrame({"a": pandas.Series(
                [numpy.str_(word) for word in words], dtype=object)}),
            "texts of pandas": pandas.DataFrame({
                "a": pandas.array(words, dtype="string[python]")}),
            "all missing": pandas.DataFrame({
                "a": pandas.Series([None] * 90, dtype=object),
                "b": numpy.arange(90)})}
        for name, frame in frames.items():
            with self.subTest(name):
                self.both(frame, batch_size=77)

    def test_a_state_goes_on_with_the_same_frame(self):
        with penstock.Loader(self.frame(500), batch_size=50, shuffle=True,
                             seed=1) as loader:
            batches = iter(loader)
            next(batches)
            state = loader.state_dict()
            rest = [batch.numpy()["x"].tolist() for batch in batches]
        with penstock.Loader(self.frame(500), batch_size=50, shuffle=True,
                             seed=1) as loader:
            loader.load_state_dict(state)
            self.assertEqual([batch.numpy()["x"].tolist() for batch in loader],
                             rest)
        changed = self.frame(500)
        changed.loc[0, "shared"] = "another"
        with penstock.Loader(changed, batch_size=50, shuffle=True,
                             seed=1) as loader, \
                self.assertRaises(penstock.RequestError):
            loader.load_state_dict(state)

    def test_ctrl_c_ends_the_walk(self):
        listen(self)
        rows = 60_000_000
        words = numpy.array(["a"], dtype=object)
        objects = numpy.broadcast_to(
            numpy.asarray(object_texts.Addresses(words)), rows)
        codes = numpy.empty(rows, "int16")
        self.assertTrue(rings(0.002, lambda: _engine.text_codes(
            objects, [], codes, 10)))


if __name__ == "__main__":
    main()
