"""`penstock predict` and `penstock evaluate` as several ranks: each predicts a
part of the rows, and rank 0 writes all of them in their order."""
import math
import unittest

import train_ranks_test


class PredictRanks(train_ranks_test.RanksCase):
    def setUp(self):
        super().setUp()
        self.succeed("train", "job.json", "--output", "out")

    def rows(self, count, spoil=None):
        """More rows of the table than one rank takes at once."""
        lines = train_ranks_test.table(count).splitlines()
        if spoil is not None:
            lines[spoil + 1] = "abc,0.5,x"
        (self.folder / "new.csv").write_text("\n".join(lines) + "\n")
        return "new.csv"

    def ranks_of(self, verb, world, *arguments, folder_of=None):
        return self.answers(self.started_ranks(
            world, lambda _: [verb, "out", *arguments, "--json"], folder_of))

    def assert_same_measures(self, some, others):
        self.assertEqual(some.keys(), others.keys())
        for name, value in some.items():
            self.assertTrue(math.isclose(value, others[name], rel_tol=1e-9),
                            (name, value, others[name]))

    def test_rows_are_those_of_one_process_in_their_order(self):
        for count in (70_000, 900, 3):
            source = self.rows(count)
            alone = self.succeed("predict", "out", source, "--out", "one.csv",
                                 "--json").json()
            expected = (self.folder / "one.csv").read_bytes()
            for world in (2, 3):
                with self.subTest(count, world=world):
                    first, *others = self.ranks_of("predict", world, source,
                                                   "--out", "all.csv")
                    self.assertEqual(first.code, 0, first.err)
                    for other in others:
                        self.assertEqual((other.code, other.out), (0, ""))
                    document = first.json()
                    self.assertEqual(document["rows"], count)
                    self.assert_same_measures(alone["metrics"],
                                              document["metrics"])
                    self.assertEqual(
                        (self.folder / "all.csv").read_bytes(), expected)

    def test_option_starts_the_ranks(self):
        source = self.rows(3000)
        alone = self.succeed("evaluate", "out", source, "--json").json()
        both = self.succeed("evaluate", "out", source, "--json", "--ranks", 2)
        self.assert_same_measures(alone["metrics"], both.json()["metrics"])
        piped = self.succeed("predict", "out", source)
        self.assertEqual(
            self.succeed("predict", "out", source, "--ranks", 3).out, piped.out)

    def test_bad_rows_are_left_out_once(self):
        source = f'csv:{self.rows(3000, spoil=1700)}?columns={{"a":"float64"}}'
        first, *_ = self.ranks_of("predict", 2, source + "&on_bad=skip",
                                  "--out", "all.csv")
        self.assertEqual(first.code, 0, first.err)
        self.assertEqual((first.json()["rows"], first.json()["bad"]), (2999, 1))
        for answer in self.ranks_of("predict", 2, source, "--out", "bad.csv"):
            self.assertNotEqual(answer.code, 0)
            self.assertIn("abc", answer.out + answer.err)
        self.assertFalse((self.folder / "bad.csv").exists())

    def test_ranks_with_other_weights_are_refused(self):
        source = self.rows(300)
        other = self.folder / "other"
        other.mkdir()
        (other / source).write_bytes((self.folder / source).read_bytes())
        self.succeed("train", "job.json", "--set", "train.lr=0.5", "--output",
                     "other/out")
        for answer in self.ranks_of(
                "predict", 2, source, "--out", "all.csv",
                folder_of=lambda rank: other if rank else self.folder):
            self.refused(answer, "request", "ranks.settings", "weights")

    def test_ranks_with_other_rows_are_refused(self):
        source = self.rows(300)
        other = self.folder / "other"
        other.mkdir()
        (other / "out").symlink_to(self.folder / "out")
        text = (self.folder / source).read_text()
        (other / source).write_text(text[:text.rindex("\n", 0, -1) + 1])
        for answer in self.ranks_of(
                "predict", 2, source, "--out", "all.csv",
                folder_of=lambda rank: other if rank else self.folder):
            self.refused(answer, "source", "ranks.data", "299", "300")

    def test_refusals(self):
        source = self.rows(10)
        answer = self.run_it("predict", "out", source, "--ranks", "2",
                             RANK="0", WORLD_SIZE="2")
        self.assertEqual(answer.code, 2)
        self.assertIn("leave out --ranks", answer.err)


if __name__ == "__main__":
    unittest.main()
