"""The order of the drop-in is the engine's order."""
import hashlib
import json
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

from dataloader_case import Case, all_numbers
from dataloader_sets import Numbers
from entry import main
from penstock import program
from penstock._dataloader.fetching import Fetcher, Settings
from penstock._dataloader.seeds import base_seed, batch_seeds
from penstock._engine import Order

# What the drop-in gave when it worked out its order, its random numbers and
# its verdict by itself, in Python.
KNOWN = json.loads((pathlib.Path(__file__).parent
                    / "dataloader_known.json").read_text())


class KnownValues(unittest.TestCase):
    def test_a_permutation_is_a_bijection(self):
        for n in (1, 2, 3, 63, 64, 65, 1000, 4097):
            with self.subTest(n=n):
                self.assertEqual(sorted(Order(n, n, 5, True).ids(0, 0)),
                                 list(range(n)))

    def test_orders_are_those_of_before(self):
        for known in KNOWN["orders"]:
            with self.subTest(known):
                order = Order(known["samples"], known["batch_size"],
                              known["seed"], known["shuffle"],
                              known["drop_last"])
                self.assertEqual(order.steps(), known["steps"])
                ids = [order.ids(known["epoch"], step)
                       for step in range(order.steps())]
                self.assertEqual(ids[0][:6], known["first"])
                self.assertEqual(known["sha256"], hashlib.sha256(
                    json.dumps(ids).encode()).hexdigest())

    def test_seeds_are_those_of_before(self):
        for known in KNOWN["seeds"]:
            with self.subTest(known):
                seed, epoch = known["seed"], known["epoch"]
                self.assertEqual(base_seed(seed, epoch), known["workers"])
                self.assertEqual(batch_seeds(seed, epoch, known["step"]),
                                 known["tasks"])

    def test_substitutes_are_those_of_before(self):
        class Broken:
            """Only the last sample that is drawn can be had."""

            def __getitem__(self, index):
                self.asked.append(index)
                if len(self.asked) < 5:
                    raise ValueError("broken")
                return index

        for known in KNOWN["seeds"]:
            fetcher = Fetcher(Broken(), None, Settings(
                True, False, "substitute", 1000, known["seed"], False))
            for index, drawn in known["substitutes"].items():
                fetcher.dataset.asked = []
                fetcher.items([int(index)])
                self.assertEqual(fetcher.dataset.asked, [int(index), *drawn])

    def test_a_position_alone_has_the_same_sample(self):
        together = Order(10**9, 100, 7, True).ids(0, 500_000)
        alone = Order(10**9, 1, 7, True)
        self.assertEqual([alone.ids(0, 50_000_000 + i)[0]
                          for i in range(100)], together)

    def test_another_seed_or_epoch_is_another_order(self):
        orders = {tuple(Order(1000, 100, seed, True).ids(epoch, 3))
                  for seed in (1, 2) for epoch in (0, 1)}
        self.assertEqual(len(orders), 4)

    def test_steps_do_not_depend_on_what_was_asked_before(self):
        forwards, backwards = Order(9999, 7, 4, True), Order(9999, 7, 4, True)
        asked = {step: forwards.ids(2, step) for step in range(1428)}
        for step in reversed(range(1428)):
            self.assertEqual(backwards.ids(2, step), asked[step])

    def test_large_steps_are_whole(self):
        order = Order(20_000, 9000, 1, True)
        ids = [i for step in range(order.steps()) for i in order.ids(0, step)]
        self.assertEqual(sorted(ids), list(range(20_000)))

    def test_the_tail_is_dropped_or_short(self):
        self.assertEqual(Order(10, 4).steps(), 3)
        self.assertEqual(Order(10, 4).ids(0, 2), [8, 9])
        self.assertEqual(Order(10, 4, drop_last=True).steps(), 2)
        self.assertEqual(Order(3, 4, drop_last=True).steps(), 0)
        self.assertEqual(Order(0, 4).steps(), 0)
        with self.assertRaises(IndexError):
            Order(10, 4).ids(0, 3)


class AgainstTheProgram(Case):
    """`penstock batch` names the keys of a step; they are 0..n-1 here."""

    def keys(self, n, seed, epoch, batch_size):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            with sqlite3.connect(path / "d.sqlite") as table:
                table.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL)")
                table.executemany("INSERT INTO t VALUES (?, 1.0)",
                                  ((i,) for i in range(n)))
            table.close()
            (path / "job.json").write_text(json.dumps({
                "source": {"kind": "sqlite", "path": str(path / "d.sqlite"),
                           "table": "t"},
                "fields": {"x": {"columns": ["x"]}},
                "loader": {"batch_size": batch_size, "seed": seed,
                           "tail": "exact"},
                "device": "cpu", "model": "none"}))
            lines = subprocess.run(
                [program.path(), "batch", path / "job.json", "--epoch",
                 str(epoch), "--steps", "0:100000"], check=True,
                capture_output=True, text=True, cwd=folder).stdout.splitlines()
        return [json.loads(line)["keys"] for line in lines]

    def test_batches_are_those_of_the_engine(self):
        for n, seed, epoch, size in ((1, 0, 0, 4), (65, 1, 0, 8),
                                     (1000, 3, 7, 64),
                                     (4030, 2**63 - 1, 2, 256)):
            with self.subTest(n=n, seed=seed, epoch=epoch):
                order = Order(n, size, seed, True)
                self.assertEqual(
                    [order.ids(epoch, step) for step in range(order.steps())],
                    self.keys(n, seed, epoch, size))

    def test_the_loader_hands_out_the_engines_order(self):
        loader = self.loader(Numbers(300), batch_size=32, shuffle=True, seed=9)
        for epoch in range(3):
            self.assertEqual(all_numbers(loader),
                             sum(self.keys(300, 9, epoch, 32), []))


class OwnSampling(Case):
    def test_without_shuffling_items_come_as_they_are(self):
        self.assertEqual(all_numbers(self.loader(Numbers(10), batch_size=3)),
                         list(range(10)))

    def test_the_sampler_tells_the_ids_of_the_next_epoch(self):
        loader = self.loader(Numbers(50), batch_size=7, shuffle=True, seed=1)
        for _ in range(2):
            coming = list(loader.sampler)
            self.assertEqual(all_numbers(loader), coming)
        self.assertEqual(len(loader.sampler), 50)
        self.assertEqual([len(ids) for ids in loader.batch_sampler],
                         [7] * 7 + [1])

    def test_set_epoch_names_the_epoch_that_comes(self):
        one = self.loader(Numbers(50), batch_size=7, shuffle=True, seed=1)
        other = self.loader(Numbers(50), batch_size=7, shuffle=True, seed=1)
        all_numbers(one), all_numbers(one)
        other.set_epoch(2)
        self.assertEqual(all_numbers(one), all_numbers(other))

    def test_the_order_is_the_same_for_any_number_of_workers(self):
        orders = {tuple(all_numbers(self.loader(
            Numbers(100), batch_size=9, shuffle=True, seed=5,
            num_workers=workers))) for workers in (0, 1, 3)}
        self.assertEqual(len(orders), 1)


if __name__ == "__main__":
    main()
