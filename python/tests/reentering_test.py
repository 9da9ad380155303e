"""Functions that make rows and use loaders meanwhile: another, or their own."""
import threading
import unittest

import numpy

import penstock
from entry import main


class Numbers:
    size = 100

    def read(self, ids):
        return {"n": ids}


class Reentering(unittest.TestCase):
    def test_a_function_cannot_call_the_loader_that_waits_for_it(self):
        calls = {
            "close": lambda loader, _: loader.close(),
            "iterate": lambda loader, _: iter(loader),
            "go on": lambda loader, batches: next(batches),
            "load": lambda loader, _: loader.load_state_dict({}),
            "save": lambda loader, _: loader.state_dict(),
            "peek": lambda loader, _: loader.peek(),
            "map": lambda loader, _: loader.map(dict),
            "count": lambda loader, _: loader.stats()}
        for workers in (0, 2, 8):
            for name, call in calls.items():
                with self.subTest(name, workers=workers), penstock.Loader(
                        Numbers(), batch_size=16, num_workers=workers,
                        prefetch_factor=1) as loader:
                    batches = loader.batches()

                    def asking(row):
                        if row["n"] == 64:
                            call(loader, batches)
                        return {"n": row["n"]}
                    loader.map(asking)
                    batches = loader.batches()
                    seen = [next(batches).step for _ in range(4)]
                    with self.assertRaises(penstock.TransformError) as raised:
                        next(batches)
                    self.assertEqual(seen, [0, 1, 2, 3])
                    cause = raised.exception.__cause__
                    self.assertIsInstance(cause, penstock.RequestError)
                    self.assertEqual(cause.code, "loader.reentered")
                    self.assertIn("loop over its batches", cause.next)
                    self.assertEqual(loader.state_dict()["step"], 4)

    def test_a_source_cannot_call_the_loader_that_waits_for_it(self):
        class Closing(Numbers):
            def __init__(self):
                self.opened = threading.Event()

            def read(self, ids):
                if 50 in ids:
                    self.opened.wait()
                    loader.close()
                return super().read(ids)
        for workers in (0, 2, 8):
            source = Closing()
            with penstock.Loader(source, batch_size=10,
                                 num_workers=workers) as loader:
                source.opened.set()
                with self.assertRaises(penstock.SourceError) as raised:
                    for _ in loader:
                        pass
                self.assertEqual(raised.exception.__cause__.code,
                                 "loader.reentered")

    def test_a_function_may_use_another_loader(self):
        for workers in (0, 2):
            with penstock.Loader(Numbers(), batch_size=10,
                                 num_workers=workers) as inner, \
                    penstock.Loader(Numbers(), batch_size=10,
                                    num_workers=workers) as outer:
                inner.map(lambda rows: {"n": rows["n"] + 1}, batched=True)
                lock = threading.Lock()

                def both(rows):
                    with lock:
                        batches = inner.batches(1)
                        return {"n": rows["n"] * 0 + next(batches).rows,
                                "steps": rows["n"] * 0 + len(inner)}
                outer.map(both, batched=True)
                self.assertEqual(set(numpy.concatenate(
                    [batch.numpy()["n"].copy() for batch in outer])), {10})

    def test_a_function_may_let_go_of_batches_while_one_is_peeked_at(self):
        with penstock.Loader(Numbers(), batch_size=16) as loader:
            kept = []

            def dropping(row):
                kept.clear()
                return {"n": row["n"]}
            loader.map(dropping)
            kept.append(next(iter(loader)))
            self.assertEqual(loader.peek().rows, 16)
            self.assertEqual(kept, [])


if __name__ == "__main__":
    main()
