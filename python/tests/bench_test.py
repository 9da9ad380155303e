"""penstock.bench: which settings of a DataLoader are best for a data set; and
penstock.trace."""

import json
import os
import pathlib
import tempfile
import time
import unittest
from unittest import mock

import numpy

import penstock
from entry import main
from penstock import _engine, benching


class Slow:
    """Each item waits, as for storage: workers help."""

    def __init__(self, length=64, seconds=0.002):
        self.length, self.seconds = length, seconds

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return numpy.full(4, index, numpy.float32)


class Benches(unittest.TestCase):
    def bench(self, dataset, **options):
        return penstock.bench(dataset, batch_size=8, repeats=1,
                              progress=False,
                              **{"seconds": 0.2, "prefetch": (2,), **options})

    def test_workers_are_found_where_items_wait(self):
        # They wait long enough to gain on a machine that is busy, too.
        found = self.bench(Slow(seconds=0.01), workers=(0, 2))
        report = found.report
        self.assertEqual(found.settings["num_workers"], 2)
        self.assertGreater(report["gain"], 0.3)
        self.assertEqual(report["present"], 0)
        self.assertEqual(report["settings"][0]["num_workers"], 0)
        self.assertEqual(report["cumulative"][0]["what"],
                         "in the loop's own process")
        rates = [step["rate"] for step in report["cumulative"]]
        self.assertEqual(rates, sorted(rates))
        self.assertIsNone(report["ceiling"])
        self.assertIn("best: ", str(found))
        self.assertLess(max(map(len, str(found).splitlines())), 81)
        json.dumps(report)

    def test_items_that_wait_are_tried_with_more_workers_than_processors(self):
        found = self.bench(Slow(seconds=0.01), seconds=0.02)
        most = max(setting["num_workers"]
                   for setting in found.report["settings"])
        cpus = len(os.sched_getaffinity(0))
        if cpus < 16:
            self.assertGreater(most, cpus)
        self.assertLessEqual(most, max(cpus, 32))

    def test_workers_that_wait_are_as_many_as_processors_can_carry(self):
        with mock.patch("os.sched_getaffinity", lambda _: range(2)):
            self.assertEqual(benching._counts(0.9), [0, 1, 2])
            self.assertEqual(benching._counts(0.2), [0, 1, 2, 4, 8, 10])
            self.assertEqual(benching._counts(0.0), [0, 1, 2, 4, 8, 16, 32])

    def test_what_differs_by_chance_is_not_the_best(self):
        def setting(workers, *rates):
            made = benching.Setting(
                num_workers=workers, prefetch_factor=None, pin_memory=False,
                persistent_workers=False)
            made.rates, made.first_batch_s = list(rates), [0.1]
            return made

        present = setting(0, 100, 110, 90)
        chance, better = setting(1, 115, 130, 112), setting(2, 141, 150, 145)
        found = benching.Bench([present, chance], None, [])
        self.assertEqual(found.report["best"], 0)
        self.assertIn("keep the present settings", str(found))
        self.assertIn("(noise)", str(found))
        self.assertNotIn(" best", str(found).replace("(noise)", ""))
        found = benching.Bench([present, chance, better], None, [])
        self.assertEqual((found.report["best"], found.report["rounds"]), (2, 3))
        self.assertNotIn("one round", str(found))
        found = benching.Bench([setting(0, 100), setting(1, 130)], None, [])
        self.assertIn("best: 30 % faster", str(found))
        self.assertIn("in one round", str(found))

    def test_a_step_is_the_ceiling(self):
        found = self.bench(Slow(seconds=0), workers=(0,),
                           step=lambda batch: time.sleep(0.005))
        self.assertGreater(found.report["ceiling"], 8 / 0.02)
        self.assertLess(found.report["best_of_ceiling"], 1.3)
        self.assertIn("the steps alone", str(found))

    def test_another_loader_that_takes_the_same_arguments(self):
        seen = []

        class Loader:
            def __init__(self, dataset, batch_size, num_workers, **rest):
                seen.append(num_workers)
                self.batches = [list(range(batch_size))] * 50

            def __iter__(self):
                return iter(self.batches)

        self.bench([1], workers=(0, 3), loader=Loader, seconds=0.01)
        self.assertEqual(set(seen), {0, 3})

    def test_a_small_data_set_is_gone_over_again(self):
        found = self.bench(Slow(16, 0.0005), workers=(0,))
        self.assertLess(found.report["settings"][0]["rate"]["median"], 2100)

    def test_nonsense_is_refused(self):
        for wrong in ({"repeats": 0}, {"seconds": 0}, {"batch_size": 0},
                      {"workers": (-1,)}, {"prefetch": (0,)}):
            with self.assertRaises(penstock.RequestError) as raised:
                penstock.bench([1, 2], **wrong)
            self.assertEqual(raised.exception.code, "bench.numbers")
        with self.assertRaises(penstock.RequestError) as raised:
            self.bench(Slow(0), workers=(0,))
        self.assertEqual(raised.exception.code, "bench.no_batches")


class Traces(unittest.TestCase):
    def test_a_block_leaves_what_the_threads_did(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.json"
            rows = {"x": numpy.arange(64, dtype=numpy.float32)}
            loader = penstock.Loader(rows, batch_size=8, device="cpu")
            with self.assertRaises(KeyError), penstock.trace(file):
                for batch in loader:
                    pass
                raise KeyError("of the loop's own")
            trace = json.loads(file.read_text())
            names = {event["name"] for event in trace["traceEvents"]
                     if event["ph"] == "X"}
            self.assertIn("plan", names)
            with self.assertRaises(penstock.RequestError):
                with penstock.trace(pathlib.Path(folder) / "no" / "t.json"):
                    pass

    def test_a_loop_over_anything_is_traced_where_it_is_watched(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.json"
            dropped_in = penstock.DataLoader(list(range(12)), batch_size=4)
            for loop in penstock.watch([[1], [2], [3]]), dropped_in:
                with penstock.trace(file):
                    for _ in loop:
                        time.sleep(0.01)
                events = [event for event in json.loads(
                    file.read_text())["traceEvents"] if event["ph"] == "X"]
                waits, steps = ([event for event in events
                                 if event["name"] == name]
                                for name in ("wait for the batch", "step"))
                self.assertEqual((len(waits), len(steps)), (3, 3))
                self.assertGreaterEqual(steps[0]["dur"], 9e3)  # microseconds
                self.assertGreaterEqual(waits[1]["ts"],
                                        steps[0]["ts"] + steps[0]["dur"] - 1)
            with self.assertWarnsRegex(UserWarning, "penstock.watch"):
                with penstock.trace(file):
                    pass


class Pages(unittest.TestCase):
    def test_a_loop_has_a_page_like_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "loop.html"
            for loop in (penstock.watch([[1]] * 20),
                         penstock.DataLoader(list(range(80)), batch_size=4),
                         penstock.Loader({"x": numpy.arange(80)}, batch_size=4)):
                for _ in loop:
                    time.sleep(0.001)
                report = loop.report(file)
                page = file.read_text()
                self.assertIn("accelerator utilisation", page)
                self.assertIn("Where the time went", page)
                self.assertIn("a loop over a ", page)
                self.assertIn(report["verdict"]["cause"], page)
                self.assertIn("<b><data value=\"20.0\">20</data></b>"
                              "<span>steps</span>", page)
                self.assertNotIn("n/a", page)
                self.assertNotIn("penstock explain", page)
            with self.assertRaises(penstock.RequestError):
                loop.report(pathlib.Path(folder) / "no" / "loop.html")

    def test_a_page_has_tiles_of_metrics_and_says_how_long_its_tables_are(self):
        def page(epochs):
            return _engine.report_page(json.dumps({
                "metrics": {"val": {"top_1": 0.91, "loss": 0.25}},
                "epochs": [{"epoch": epoch, "train_loss": 1 / (1 + epoch)}
                           for epoch in range(epochs)]}))

        self.assertIn('<b><data value="0.91">0.91</data></b>'
                      '<span>val top 1</span>', page(3))
        self.assertNotIn("epochs: scroll", page(3))
        self.assertIn("20 epochs: scroll", page(20))
        self.assertIn("<span>epoch 20</span>", page(20))


if __name__ == "__main__":
    main()
