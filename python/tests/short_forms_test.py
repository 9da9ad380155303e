"""Fields and sources in their short forms mean the same in a loader's arguments
and in a job: a list of columns, a column by its name, a source as a URI."""

import importlib.util
import os
import tempfile
import unittest

import penstock

ROWS = "a,b,species\n1,0.5,x\n2,1.5,y\n3,2.5,x\n4,3.5,z\n"
SHORT = {"x": ["a", "b"], "y": "species", "n": "a"}
LONG = {"x": {"columns": ["a", "b"]},
        "y": {"category": {"column": "species"}}, "n": {"columns": ["a"]}}


class Flowers:
    columns = {"a": "int64", "species": "text"}

    def __len__(self):
        return 4

    def read(self, positions):
        return {"a": positions + 1,
                "species": [("x", "y", "x", "z")[at] for at in positions]}


class ShortForms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        with open("t.csv", "w", encoding="ascii") as file:
            file.write(ROWS)

    def batch(self, loader):
        found = {name: array.tolist() for name, array in
                 next(iter(loader)).host().items()}
        loader.close()
        return found

    def loaded(self, source, fields):
        return self.batch(penstock.Loader(source, fields, batch_size=4,
                                          device="cpu", num_workers=0))

    def test_a_column_of_text_by_its_name_is_a_category(self):
        found = self.loaded("t.csv", SHORT)
        self.assertEqual(found, self.loaded("t.csv", LONG))
        self.assertEqual(len(set(found["y"])), 3)
        self.assertEqual(found["n"], [[1], [2], [3], [4]])

    def test_a_job_takes_what_the_arguments_take(self):
        loader = {"batch_size": 4, "shuffle": False}
        long = penstock.open({
            "source": {"kind": "csv", "path": "t.csv"}, "fields": LONG,
            "loader": loader, "device": "cpu"})
        short = penstock.open({"source": "t.csv", "fields": SHORT,
                               "loader": loader, "device": "cpu"})
        self.assertEqual(self.batch(short), self.batch(long))

    def test_sources_that_are_mixed_take_them(self):
        mixed = [{"source": "t.csv", "fields": SHORT},
                 {"source": "t.csv", "fields": LONG}]
        self.assertEqual(set(self.loaded(mixed, None)),
                         {"x", "y", "n", "source"})

    @unittest.skipUnless(importlib.util.find_spec("pandas")
                         and importlib.util.find_spec("pyarrow"),
                         "without pandas and pyarrow")
    def test_rows_in_memory_take_them(self):
        import pandas
        frame = pandas.read_csv("t.csv")
        self.assertEqual(self.loaded(frame, SHORT), self.loaded(frame, LONG))

    def test_a_source_of_ones_own_takes_them(self):
        short = {"y": "species", "n": "a"}
        self.assertEqual(
            self.loaded(Flowers(), short),
            self.loaded(Flowers(), {name: LONG[name] for name in short}))

    def test_text_among_numbers_is_told_how_to_become_a_category(self):
        with self.assertRaises(penstock.RequestError) as caught:
            self.loaded("t.csv", {"x": ["a", "species"]})
        self.assertIn('{"category": {"column": "species"}}',
                      str(caught.exception))


if __name__ == "__main__":
    unittest.main()
