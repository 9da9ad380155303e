"""A source of your own by position, whose columns the engine's fields take."""
import json
import os
import signal
import threading
import time
import unittest

import numpy as np

import alarm
import penstock
from entry import main
from penstock._rows.sources import Column, PositionSource, Unfit, _DECLARED
from positions import run_python
from refused import Refused

WORKERS = 0, 1, 2, 8


class Refusing(unittest.TestCase):
    def refused(self, kind, code, *names):
        return Refused(self, kind, code, names)


class Points:
    """Rows with numbers of several widths, a text and a JSON list."""

    columns = {"x": "float32", "y": "float64", "label": "int16", "odd": "bool",
               "name": "text", "set": "json"}

    def __init__(self, rows=100):
        self.rows, self.calls = rows, []

    def __len__(self):
        return self.rows

    def read(self, positions):
        self.calls.append(positions.tolist())
        return {"x": positions.astype("float32") / 2,
                "y": (positions * 3).tolist(),
                "label": (positions % 7).astype("int16"),
                "odd": positions % 2 == 1,
                "name": [f"n{p % 20}" for p in positions],
                "set": [json.dumps([{"a": float(p), "b": 1.0}])
                        for p in positions]}


def numbers(**more):
    return {"x": {"columns": ["x", "y"], "standardize": True},
            "label": {"columns": ["label"], "dtype": "int64"}, **more}


RAW = {"columns": ["x", "y"]}


def rows_of(loader, name="x"):
    return {int(i): row.tolist() for batch in loader
            for i, row in zip(batch.ids, batch[name].numpy())}


class Fields(Refusing):
    def open(self, source, fields, **settings):
        loader = penstock.Loader(source, fields, **{"batch_size": 16,
                                                    "device": "cpu",
                                                    **settings})
        self.addCleanup(loader.close)
        return loader

    def test_it_is_one_of_these(self):
        self.assertIsInstance(Points(), PositionSource)

    def test_columns_become_tensors_as_those_of_arrays(self):
        for workers in WORKERS:
            with self.subTest(workers):
                loader = self.open(Points(), {"x": RAW}, num_workers=workers,
                                   shuffle=True, seed=3)
                self.assertEqual(rows_of(loader), {
                    p: [p / 2, 3.0 * p] for p in range(100)})

    def test_the_order_is_the_engines(self):
        arrays = {"x": np.arange(100)}
        mine = self.open(Points(), {"x": RAW}, shuffle=True, seed=5)
        theirs = self.open(arrays, None, shuffle=True, seed=5)
        self.assertEqual([b.ids.tolist() for b in mine],
                         [b.ids.tolist() for b in theirs])

    def test_standardised_fields_are_fitted_by_a_scan(self):
        loaders = [self.open(Points(), numbers(), num_workers=workers)
                   for workers in WORKERS]
        batches = [rows_of(loader) for loader in loaders]
        for rows in batches[1:]:
            self.assertEqual(rows, batches[0])
        x = np.array(list(batches[0].values()))
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(x.std(0), 1, atol=1e-5)
        self.assertEqual(loaders[0].statistics["x"]["x"]["mean"],
                         np.mean(np.arange(100) / 2))

    def test_without_a_fit_no_row_is_read_before_its_batch(self):
        source = Points(1000)
        loader = self.open(source, {"x": RAW}, num_workers=0)
        self.assertEqual(source.calls, [])
        next(iter(loader))
        self.assertEqual(source.calls, [list(range(16))])

    def test_json_text_becomes_a_set(self):
        fields = {"s": {"json_set": {"column": "set", "keys": ["a", "b"],
                                     "max": 2}, "standardize": False}}
        batch = next(iter(self.open(Points(), fields)))
        self.assertEqual(batch.s.numpy()[3].tolist(), [[3.0, 1.0], [0.0, 0.0]])
        self.assertEqual(batch.s_mask.numpy()[3].tolist(), [1.0, 0.0])

    def test_sides_of_a_split_have_each_row_once(self):
        for by in (None, "name", "label", "y"):
            split = {"val": 0.3, **({"by": by} if by else {})}
            sides = [rows_of(self.open(Points(), {"x": RAW}, split=split,
                                       side=side)) for side in ("train", "val")]
            self.assertEqual(sorted([*sides[0], *sides[1]]), list(range(100)))
            if by == "name":
                names = [{p % 20 for p in side} for side in sides]
                self.assertFalse(names[0] & names[1])

    def test_a_job_may_hold_one(self):
        with penstock.open({"source": Points(), "fields": {"x": RAW},
                            "loader": {"batch_size": 25}, "device": "cpu"},
                           loader__shuffle=False) as loader:
            self.assertEqual(rows_of(loader)[7], [3.5, 21.0])

    def test_a_state_is_of_the_same_source(self):
        loader = self.open(Points(), {"x": RAW}, shuffle=True)
        epoch = iter(loader)
        next(epoch)
        state = loader.state_dict()
        rest = [batch.ids.tolist() for batch in epoch]
        again = self.open(Points(), {"x": RAW}, shuffle=True)
        again.load_state_dict(state)
        self.assertEqual([batch.ids.tolist() for batch in again], rest)

        class Other(Points):
            version = 2
        other = self.open(Other(), {"x": RAW}, shuffle=True)
        with self.refused(penstock.RequestError, "resume.other_data"):
            other.load_state_dict(state)

    def test_one_reader_at_a_time_where_there_is_a_lock(self):
        class Locked(Points):
            global_lock = True
            inside = most = 0

            def read(self, positions):
                self.inside += 1
                self.most = max(self.most, self.inside)
                time.sleep(0.002)
                self.inside -= 1
                return super().read(positions)

        source = Locked()
        rows_of(self.open(source, {"x": RAW}, num_workers=4, batch_size=4))
        self.assertEqual(source.most, 1)


class BadRows(Refusing):
    class Holes(Points):
        """Row 5 has no x, and row 9 cannot be read."""

        missing = 5

        def read(self, positions):
            found = super().read(positions)
            found["x"] = [None if p == self.missing
                          else ValueError("torn") if p == 9
                          else p / 2 for p in positions.tolist()]
            return found

    class Torn(Holes):
        missing = None

    def job(self, fields, source=Holes, **overrides):
        return penstock.open({"source": source(), "fields": fields,
                              "loader": {"batch_size": 10, "shuffle": False},
                              "device": "cpu"}, **overrides)

    def test_a_scan_names_them(self):
        with self.refused(penstock.TransformError, "data.bad_rows", "row 9",
                          "ValueError: torn"):
            self.job(numbers())

    def test_skip_leaves_them_out(self):
        with self.job({"x": RAW}, source__on_bad="skip") as loader:
            found = rows_of(loader)
        self.assertEqual(len(found), 90)  # of whole batches
        self.assertNotIn([4.5, 27.0], found.values())

    def test_substitute_puts_others_in_their_places(self):
        found = []
        for workers in WORKERS:
            with self.job({"x": RAW}, self.Torn, loader__on_bad="substitute",
                          loader__workers=workers) as loader:
                found.append([batch.x.numpy().tolist() for batch in loader])
        self.assertEqual(found[1:], found[:-1])
        rows = [row for batch in found[0] for row in batch]
        self.assertEqual(len(rows), 100)
        self.assertNotIn([4.5, 27.0], rows)

    def test_without_a_rule_it_is_an_error_in_its_turn(self):
        with self.job({"x": RAW}) as loader:
            with self.refused(penstock.TransformError, "data.bad_sample",
                              "sample 5", "x"):
                list(loader)


class Faults(Refusing):
    def fails(self, change, code, *words, kind=penstock.SourceError, after=2,
              workers=WORKERS):
        """`change` spoils what is read from the batch of position 32 on."""
        class Spoiled(Points):
            def read(self, positions):
                found = super().read(positions)
                return change(found, self) if 32 in positions else found

        for count in workers:
            with self.subTest(count):
                loader = penstock.Loader(Spoiled(), {"x": RAW}, batch_size=16,
                                         device="cpu", num_workers=count)
                got = []
                with self.refused(kind, code, *words):
                    for batch in loader:
                        got.append(batch.step)
                self.assertEqual(got, list(range(after)))
                loader.close()

    def test_what_read_raises_comes_in_its_turn_with_its_cause(self):
        def fail(found, source):
            raise OSError("the disk is gone")
        self.fails(fail, "source.failed", "OSError: the disk is gone",
                   "positions 32, 33, 34 and 13 more")

        class Broken(Points):
            def read(self, positions):
                raise OSError("no")
        with self.assertRaises(penstock.SourceError) as caught:
            next(iter(penstock.Loader(Broken(), {"x": RAW}, device="cpu")))
        self.assertIsInstance(caught.exception.__cause__, OSError)

    def test_another_number_of_rows(self):
        self.fails(lambda found, _: {**found, "x": found["x"][1:]},
                   "source.returned", "'x' has 15 rows for 16 positions")

    def test_another_dtype(self):
        self.fails(lambda found, _: {**found, "x": found["x"].astype("f8")},
                   "source.returned",
                   "'x' is float64 [16], expected float32 [16]")
        self.fails(lambda found, _: {**found, "x": ["a"] * 16},
                   "source.returned", "expected float32", workers=(1,))

    def test_another_shape(self):
        self.fails(lambda found, _: {**found, "x": np.zeros((16, 2), "f4")},
                   "source.returned", "[16, 2]", workers=(1,))

    def test_no_such_column_and_no_mapping(self):
        self.fails(lambda found, _: {"x": found["x"]}, "source.returned",
                   "the source returned no 'y': 'x'", workers=(0, 1))
        self.fails(lambda found, _: list(found), "source.returned",
                   "the source returned list", workers=(1,))

    def test_a_length_that_changes(self):
        def grow(found, source):
            source.rows += 1
            return found
        self.fails(grow, "source.length_changed", "the length was 100, and is now 101",
                   workers=(0,))

    def test_an_interrupt_loses_no_batch(self):
        class Interrupted(Points):
            raised = False

            def read(self, positions):
                if 32 in positions and not self.raised:
                    self.raised = True
                    raise KeyboardInterrupt
                return super().read(positions)

        for workers in WORKERS:
            with self.subTest(workers):
                loader = penstock.Loader(Interrupted(400), {"x": RAW},
                                         batch_size=16, device="cpu",
                                         num_workers=workers)
                got = []
                with self.assertRaises(KeyboardInterrupt):
                    for batch in loader:
                        got += batch.ids.tolist()
                for batch in loader.batches(len(loader) - 2):
                    got += batch.ids.tolist()
                self.assertEqual(got, list(range(400)))
                loader.close()

    def test_what_cannot_be_converted_says_where(self):
        class Odd(list):
            def __iter__(self):
                raise ZeroDivisionError("no iteration")
        self.fails(lambda found, source: {**found, "x": Odd(found["x"])},
                   "source.returned", "ZeroDivisionError", "positions",
                   workers=(0,))

    def test_a_signal_while_a_batch_is_waited_for_loses_none(self):
        class Signalling(Points):
            """The loop waits for each of its reads, one after the other."""

            global_lock = True
            done = False

            def read(self, positions):
                time.sleep(0.02)
                if 32 in positions and not self.done:
                    self.done = True
                    os.kill(os.getpid(), signal.SIGUSR1)
                return super().read(positions)

        def interrupt(*_):
            raise KeyboardInterrupt
        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        loader = penstock.Loader(Signalling(160), {"x": RAW}, batch_size=16,
                                 device="cpu", num_workers=2)
        got = []
        with self.assertRaises(KeyboardInterrupt):
            for batch in loader:
                got += batch.ids.tolist()
        for batch in loader.batches(10 - len(got) // 16):
            got += batch.ids.tolist()
        self.assertEqual(got, list(range(160)))
        loader.close()

    def test_an_error_while_it_is_scanned(self):
        class Broken(Points):
            def read(self, positions):
                if 50 in positions:
                    raise ValueError("torn")
                return super().read(positions)

        for workers in WORKERS:
            with self.refused(penstock.SourceError, "source.failed", "torn"):
                penstock.Loader(Broken(), numbers(), device="cpu",
                                num_workers=workers)

    def test_what_is_declared_is_checked(self):
        for columns in ({}, {"x": "float16"}, {"x": "bool[3]"}, {"x": "list"},
                        {"x": 3}, ["x"], {"x": "text[2]"}):
            with self.subTest(columns):
                source = Points()
                source.columns = columns
                with self.refused(penstock.RequestError, "source.declared"):
                    penstock.Loader(source, {"x": RAW}, device="cpu")
        for name, value in (("chunks", 0), ("chunks", [5, 3]),
                            ("chunks", [50]), ("lengths", lambda name: [1])):
            with self.subTest(name):
                source = Points()
                setattr(source, name, value)
                with self.refused(penstock.RequestError, "source.declared"):
                    penstock.Loader(source, {"x": RAW}, device="cpu")
        with self.refused(penstock.SourceError, "source.empty"):
            penstock.Loader(Points(0), {"x": RAW}, device="cpu")

    def test_a_field_needs_columns_that_there_are(self):
        with self.refused(penstock.RequestError, "source.unknown_column",
                          "did you mean 'label'"):
            penstock.Loader(Points(), {"x": ["lable"]}, device="cpu")
        with self.refused(penstock.RequestError, "source.column_type",
                          "the column holds text, but a number is needed"):
            penstock.Loader(Points(), {"x": ["name"]}, device="cpu")
        with self.refused(penstock.RequestError, "settings.unknown_key"):
            penstock.open({"source": Points(), "fields": {"x": RAW}},
                          source__table="t")


class Signals(unittest.TestCase):
    def test_an_alarm_ends_a_scan(self):
        alarm.listen(self)

        class Endless(Points):
            def read(self, positions):
                time.sleep(0.01)
                return super().read(positions)

        for workers in WORKERS:
            began = time.monotonic()
            self.assertTrue(alarm.rings(0.3, lambda: penstock.Loader(
                Endless(10**7), numbers(), device="cpu",
                num_workers=workers)))
            self.assertLess(time.monotonic() - began, 5)


class Ends(unittest.TestCase):
    """No end of a loader waits for Python's lock while it holds it."""

    class Slow(Points):
        def __init__(self):
            super().__init__()
            self.began = threading.Event()

        def read(self, positions):
            self.began.set()
            time.sleep(0.05)
            return super().read(positions)

    def test_a_loader_is_closed_or_dropped_while_rows_are_read(self):
        for end in (lambda loader: loader.close(), lambda loader: None):
            for workers in (1, 2, 8):
                source = self.Slow()
                loader = penstock.Loader(source, {"x": RAW}, batch_size=4,
                                         device="cpu", num_workers=workers)
                epoch = iter(loader)
                next(epoch)
                self.assertTrue(source.began.wait(10))
                end(loader)
                del loader, epoch

    PROGRAM = """
        import sys, time
        sys.path.insert(0, {tests!r})
        import penstock
        from sources_test import Ends, RAW
        {more}
        loader = penstock.Loader(Ends.Slow(), {{"x": RAW}}, batch_size=4,
                                 device="cpu", num_workers={workers})
        epoch = iter(loader)
        next(epoch)
        {end}
        """

    def test_the_interpreter_ends_while_rows_are_read(self):
        import pathlib
        import textwrap
        tests = str(pathlib.Path(__file__).parent)
        for workers in (0, 2):
            for end in ("", "sys.exit(0)", "del loader"):
                with self.subTest(workers=workers, end=end):
                    done = run_python(textwrap.dedent(self.PROGRAM.format(
                        tests=tests, more="", workers=workers, end=end)))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_loader_may_be_read_by_a_source(self):
        inner = penstock.Loader({"x": np.arange(100)}, batch_size=100,
                                device="cpu")

        class Nested(Points):
            global_lock = True  # one iteration of a loader at a time

            def read(self, positions):
                (batch,) = inner
                return {"x": batch.x.numpy()[positions].astype("float32"),
                        "y": positions.astype("float64")}

        with penstock.Loader(Nested(), {"x": RAW}, batch_size=10,
                             device="cpu", num_workers=1) as loader:
            self.assertEqual(rows_of(loader)[42], [42.0, 42.0])


class Layouts(unittest.TestCase):
    """What read() returned, as Arrow has it."""

    def answer(self, declared, values, dtype="", rows=None):
        column = Column("c", _DECLARED.fullmatch(declared))
        (valid, offsets, laid_out), problems = column.answer(
            values, len(values) if rows is None else rows, dtype)
        return (valid if valid is None else valid.tolist(),
                offsets if offsets is None else offsets.tolist(),
                laid_out.tobytes() if column.kind in ("text", "json", "binary")
                else laid_out.tolist(), problems)

    def test_numbers(self):
        self.assertEqual(self.answer("int8", [1, None, 3]),
                         ([0b101], None, [1, 0, 3], []))
        self.assertEqual(self.answer("float32", np.array([1, 2], "f4"),
                                     "float64"), (None, None, [1.0, 2.0], []))
        self.assertEqual(self.answer("bool", [True, False, True]),
                         (None, None, [0b101], []))
        masked = np.ma.array(np.array([1, 2, 3], "i8"), mask=[0, 1, 0])
        self.assertEqual(self.answer("int64", masked)[0], [0b101])

    def test_numbers_of_python_become_what_holds_them(self):
        for declared, values in (("int8", [200]), ("int64", [1.5]),
                                 ("bool", [1]), ("int64", [True]),
                                 ("uint8", [-1])):
            with self.subTest(declared), self.assertRaises(Unfit):
                self.answer(declared, values)
        self.assertEqual(self.answer("float32", [1, 2])[2], [1.0, 2.0])
        self.assertEqual(self.answer("uint8", [0, 255])[2], [0, 255])
        self.assertEqual(self.answer("float32", [np.float64(1), None])[2],
                         [1.0, 0.0])
        with self.assertRaisesRegex(Unfit, "300.*not all fit int8"):
            self.answer("int8", [1, 300])

    def test_numbers_of_another_byte_order(self):
        self.assertEqual(self.answer("float32", np.array([1, 2], ">f4"))[2],
                         [1.0, 2.0])

    def test_numbers_too_large_for_an_integer_are_bad_rows(self):
        values = np.array([1, 1 << 63], "u8")
        valid, _, _, problems = self.answer("uint64", values, "int64")
        self.assertEqual(valid, [0b01])
        self.assertEqual(problems, [
            (1, "holds 9223372036854775808, which does not fit int64")])

    def test_a_set_has_no_order(self):
        with self.assertRaisesRegex(Unfit, "is a set"):
            self.answer("int64", {1, 2})

    def test_tensors_of_one_shape(self):
        grid = np.arange(12, dtype="f4").reshape(2, 2, 3)
        self.assertEqual(self.answer("float32[2, 3]", grid)[2], grid.tolist())
        valid, _, values, problems = self.answer(
            "float32[2,3]", [grid[0], None, ValueError("torn")])
        self.assertEqual((valid, np.shape(values)), ([0b001], (3, 2, 3)))
        self.assertEqual(problems, [(2, "ValueError: torn")])
        with self.assertRaisesRegex(Unfit, r"expected float32 \[2, 3\]"):
            self.answer("float32[2,3]", [np.zeros((3, 2), "f4")] + [None])

    def test_arrays_of_any_length(self):
        self.assertEqual(
            self.answer("list[int64]", [[1, 2], np.empty(0, "i8"), None, [3]]),
            ([0b1011], [0, 2, 2, 2, 3], [1, 2, 3], []))
        with self.assertRaisesRegex(Unfit, "one dimension"):
            self.answer("list[int64]", [np.zeros((2, 2), "i8")])
        with self.assertRaisesRegex(Unfit, "expected int64"):
            self.answer("list[int64]", [np.zeros(2, "f4")])

    def test_texts_and_bytes(self):
        self.assertEqual(self.answer("text", ["é", None, b"ab"]),
                         ([0b101], [0, 2, 2, 4], "éab".encode(), []))
        self.assertEqual(self.answer("binary", [b"\xff", bytearray(2),
                                                np.zeros(1, "u1")])[1],
                         [0, 1, 3, 4])
        valid, _, _, problems = self.answer("text", ["a", b"\xff", "\ud800"])
        self.assertEqual((valid, [row for row, _ in problems]),
                         ([0b001], [1, 2]))
        with self.assertRaisesRegex(Unfit, "is a int, expected a str"):
            self.answer("text", [3])
        with self.assertRaisesRegex(Unfit, "is a str, expected an array"):
            self.answer("text", "abc", rows=3)


if __name__ == "__main__":
    main()
