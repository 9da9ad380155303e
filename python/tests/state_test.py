"""A position that is saved, and gone on from: exact across languages."""
import json
import unittest

import numpy as np

import penstock
from entry import main
from positions import (Case, WORKERS, bytes_of, fingerprint_of,
                       run_program)


def seen(batches):
    return [(b.epoch, b.step, b.ids.tolist(), bytes_of(b)) for b in batches]


class State(Case):
    def test_goes_on_exactly_whatever_makes_the_batches(self):
        whole = seen(self.open().batches(25))
        for taken in (0, 1, 9, 14):
            for before, after in ((0, 8), (8, 0), (2, 1)):
                loader = self.open(loader__workers=before)
                list(loader.batches(taken))
                state = loader.state_dict()
                loader.close()
                loader = self.open(loader__workers=after, loader__cache="none",
                                   loader__prefetch=5)
                loader.load_state_dict(state)
                self.assertEqual(loader.state_dict(), state)
                self.assertEqual(seen(loader.batches(25 - taken)),
                                 whole[taken:])

    def test_is_small_and_json(self):
        loader = self.open()
        last = 2 ** 63 - 2
        loader.set_epoch(last)
        next(iter(loader))
        state = loader.state_dict()
        self.assertEqual((state["epoch"], state["step"]), (last, 1))
        self.assertLessEqual(len(json.dumps(state)), 128)
        loader.load_state_dict(json.loads(json.dumps(state)))

    def test_counts_what_was_handed_out_not_what_is_prepared(self):
        loader = self.open(loader__workers=8, loader__prefetch=6)
        for taken, batch in enumerate(loader, 1):
            self.assertEqual(loader.state_dict()["step"], taken % len(loader))

    def test_the_rest_of_an_epoch_comes_first_and_then_the_next(self):
        loader = self.open()
        loader.load_state_dict({**loader.state_dict(), "epoch": 4, "step": 6})
        loader.set_epoch(4)  # as torch's loops do; it loses no step
        iter(loader)
        self.assertEqual([b.step for b in loader],
                         list(range(6, len(loader))))
        self.assertEqual([(b.epoch, b.step) for b in loader],
                         [(5, s) for s in range(len(loader))])

    def test_ranks_may_be_others(self):
        loader = self.open()
        list(loader.batches(5))
        state = loader.state_dict()
        expected = next(loader.batches(1)).ids.tolist()
        shares = []
        for rank in range(3):
            share = self.open(rank=rank, world=3,
                              source__fingerprint=fingerprint_of(loader))
            share.load_state_dict(state)
            shares += next(share.batches(1)).ids.tolist()
        self.assertEqual(shares, expected)

    def test_goes_on_where_a_run_of_the_program_ended(self):
        report = json.loads(run_program(
            "train", self.path, "--json", "--set", "train.max_steps=5",
            "--set", f"output.dir={self.folder / 'runs'}"))
        state = json.loads((self.folder / "runs" / "latest" / "state.json"
                            ).read_text())
        self.assertEqual(report["steps"], 5)
        loader = self.open()
        loader.load_state_dict(state)
        batch = next(iter(loader))
        told = json.loads(run_program("batch", self.path, "--steps", "5:6"))
        self.assertEqual((batch.step, batch.row_keys), (5, told["keys"]))
        with self.refused(penstock.RequestError, "resume.other_data"):
            loader.load_state_dict({**state, "fingerprint": "ab" * 32})

    def test_other_rows_and_orders_are_refused(self):
        state = self.open().state_dict()
        for code, other in (
                ("resume.other_data", {"source__where": "id > 9"}),
                ("resume.other_data",
                 {"fields__target__standardize": False}),
                ("resume.other_order", {"loader__seed": 8}),
                ("resume.other_order", {"loader__batch_size": 25}),
                ("resume.other_order", {"loader__shuffle": False}),
                ("resume.other_order", {"split__seed": 2}),
                ("resume.other_order", {"side": "val"})):
            loader = self.open(**other)
            with self.refused(penstock.RequestError, code):
                loader.load_state_dict(state)
            self.assertGreater(len(list(loader)), 0, "it is as it was")

    def test_a_damaged_state_is_refused(self):
        loader = self.open()
        good = loader.state_dict()
        for bad, name in (({"epoch": "1"}, "epoch"), ({"step": -1}, "step"),
                          ({"v": 2}, "v"), ({"epoch": None}, "epoch"),
                          ({"stpe": 1}, "stpe"), ({"data": 5}, "data"),
                          ({"step": 10 ** 6}, "step")):
            with self.subTest(bad=bad):
                with self.assertRaises(penstock.RequestError) as raised:
                    loader.load_state_dict({**good, **bad})
                self.assertIn(name, str(raised.exception))
        with self.assertRaises(penstock.RequestError):
            loader.load_state_dict({})


class Numbers(Case):
    """What is told of a loop."""

    def test_stats_are_those_of_a_report(self):
        loader = self.open()
        list(loader)
        stats = loader.stats()
        self.assertEqual((stats["steps"], stats["samples"]),
                         (len(loader), 24 * len(loader)))
        self.assertEqual(stats["dataset"]["rows"], 300)
        self.assertEqual(loader.plan, stats["plan"])
        self.assertEqual(loader.plan["tier"], "ram")
        self.assertEqual([s["name"] for s in stats["stages"]],
                         ["plan", "gather", "deliver"])

    def test_statistics_lead_back_to_the_units_of_the_columns(self):
        scaled = self.open(fields__target__standardize=True)
        plain = self.open(fields__target__standardize=False)
        used = scaled.statistics["target"].values()
        self.assertTrue(all(column["standardize"] for column in used))
        back = (scaled.peek().target.numpy()
                * [column["divisor"] for column in used]
                + [column["mean"] for column in used])
        np.testing.assert_allclose(back, plain.peek().target.numpy(), 1e-5)
        self.assertEqual(
            penstock.Loader({"n": np.arange(9)}).statistics, {})

    def test_the_rate_is_that_of_the_steps_that_have_ended(self):
        loader = self.open(device={"kind": "sim", "step_ms": 20,
                                   "clock": "virtual"})
        for _ in loader.batches(3):
            pass
        for _ in loader.batches(2):
            self.assertAlmostEqual(loader.stats()["samples_per_s"], 24 / 0.02,
                                   delta=1)
        next(iter(loader))  # and is left
        self.assertAlmostEqual(loader.stats()["samples_per_s"], 24 / 0.02,
                                   delta=1)

    def test_a_step_of_sim_takes_its_time(self):
        loader = self.open(device={"kind": "sim", "step_ms": 20,
                                   "clock": "virtual"})
        list(loader)
        self.assertAlmostEqual(loader.stats()["au"], 1, places=2)
        self.assertEqual(loader.explain().limit, "compute")

    def test_time_between_batches_is_the_step_by_itself(self):
        import time
        loader = self.open()
        for _ in loader.batches(6):
            time.sleep(0.01)
        self.assertGreater(loader.stats()["au"], 0.9)

    def test_a_marked_step_leaves_the_rest_to_the_host(self):
        import time
        loader = self.open()
        for _ in loader.batches(6):
            with loader.step():
                time.sleep(0.002)
            time.sleep(0.01)
        explained = loader.explain()
        self.assertLess(explained.au, 0.6)
        self.assertEqual(explained.limit, "host")
        self.assertIn("host", str(explained))

    def test_a_slow_source_is_named_with_what_to_change(self):
        import time
        loader = self.open(source__round_trip_ms=20, loader__cache="none",
                           loader__workers=1)
        for _ in loader.batches(20):
            time.sleep(0.001)
        explained = loader.explain()
        self.assertEqual((explained.limit, explained.stage), ("data", "read"))
        self.assertIn("set loader.cache from \"none\" to \"auto\"",
                      str(explained))
        self.assertGreater(explained.actions[0]["predicted_gain"], 0.02)

    def test_without_a_step_nothing_is_claimed(self):
        explained = self.open().explain()
        self.assertIsNone(explained.au)
        self.assertEqual(explained.limit, "unknown")
        self.assertIn("n/a", str(explained))


if __name__ == "__main__":
    main()
