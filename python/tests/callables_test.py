"""Python inside the pipeline: own sources, and functions that map rows."""
import functools
import signal
import threading
import time
import unittest

import numpy

import penstock
from entry import main
from penstock._rows.callables import source_text
from positions import BATCH, DEVICES, WORKERS, Case, rows_of, run_python


class Numbers:
    """Rows 0 .. 99, made when they are read."""
    size = 100

    def read(self, ids):
        return {"n": ids, "halves": (ids[:, None] / 2).repeat(3, axis=1)}


class OwnSources(unittest.TestCase):
    def test_rows_are_read_by_their_numbers(self):
        for device in DEVICES:
            for workers in WORKERS:
                with penstock.Loader(Numbers(), batch_size=16, shuffle=True,
                                     num_workers=workers,
                                     device=device) as loader:
                    for batch in loader:
                        n, halves = batch.numpy().values()
                        numpy.testing.assert_array_equal(n, batch.ids)
                        numpy.testing.assert_array_equal(
                            halves, numpy.stack([n / 2] * 3, axis=1))

    def test_size_may_be_a_method_or_a_length(self):
        class Method(Numbers):
            def size(self):
                return 20

        class Length:
            read = Numbers.read

            def __len__(self):
                return 30
        for source, steps in ((Method(), 2), (Length(), 3)):
            with penstock.Loader(source, batch_size=10) as loader:
                self.assertEqual(len(loader), steps)

    def test_fields_choose_what_is_read(self):
        with penstock.Loader(Numbers(), ["halves"], batch_size=2) as loader:
            self.assertEqual(list(loader.peek().keys()), ["halves"])

    def test_the_state_knows_the_text_of_the_source_and_its_version(self):
        class Versioned(Numbers):
            version = 1

        def state(source):
            with penstock.Loader(source, batch_size=10) as loader:
                return loader.state_dict()["data"]
        one, again, plain = Versioned(), Versioned(), Numbers()
        two = Versioned()
        two.version = 2
        self.assertEqual(state(one), state(again))
        self.assertEqual(3, len({state(one), state(two), state(plain)}))

    def test_what_a_source_raises_is_the_cause_of_an_os_error(self):
        class Broken(Numbers):
            def read(self, ids):
                if 50 in ids:
                    raise KeyError("fifty")
                return super().read(ids)
        for workers in WORKERS:
            with penstock.Loader(Broken(), batch_size=10,
                                 num_workers=workers) as loader:
                seen = 0
                with self.assertRaises(penstock.SourceError) as raised:
                    for batch in loader:
                        seen += batch.rows
                self.assertEqual(seen, 50)
                error = raised.exception
                self.assertEqual(error.code, "source.failed")
                self.assertIsInstance(error.__cause__, KeyError)
                names = []
                trace = error.__cause__.__traceback__
                while trace:
                    names.append(trace.tb_frame.f_code.co_name)
                    trace = trace.tb_next
                self.assertEqual(names[-1], "read")
                self.assertIn("row", error.where)

    def test_an_exception_may_have_any_text(self):
        class Silent(ValueError):
            def __str__(self):
                raise KeyError("no text")
        for raised, words in ((ValueError("caf\udce9.png"), r"caf\xe9.png"),
                              (Silent(), "Silent, whose text cannot be made")):
            class Broken(Numbers):
                def read(self, ids, raised=raised):
                    if 50 in ids:
                        raise raised
                    return super().read(ids)

            def broken(row, raised=raised):
                if row["n"] == 50:
                    raise raised
                return dict(row)
            for workers in (0, 2):
                for source, fn in (Broken(), None), (Numbers(), broken):
                    loader = penstock.Loader(source, batch_size=10,
                                             num_workers=workers)
                    if fn is not None:
                        loader.map(fn)
                    with self.assertRaises((penstock.SourceError,
                                            penstock.TransformError)) as found:
                        list(loader)
                    self.assertIs(found.exception.__cause__, raised)
                    told = str(found.exception).encode(
                        errors="backslashreplace").decode()
                    self.assertIn(words, told)

    def test_no_frame_keeps_memory_of_the_loader(self):
        # Debuggers walk up from where it was raised, and print all they see.
        class Broken(Numbers):
            def read(self, ids):
                if 50 in ids:
                    raise KeyError("fifty")
                return super().read(ids)
        with penstock.Loader(Broken(), batch_size=10, num_workers=1) as loader:
            with self.assertRaises(penstock.SourceError) as raised:
                list(loader)
        frame = raised.exception.__cause__.__traceback__.tb_frame
        while frame.f_code.co_name != "__call__":
            frame = frame.f_back
        self.assertEqual(frame.f_locals["outputs"], [])
        numpy.testing.assert_array_equal(frame.f_locals["ids"],
                                         numpy.arange(50, 60))

    def test_a_source_that_changes_its_mind_is_told_so(self):
        good = Numbers().read

        def less(ids):
            return {"n": good(ids)["n"]}

        def other(ids):
            return {"n": good(ids)["n"], "thirds": good(ids)["halves"]}

        def ragged(ids):
            return {**good(ids), "n": [[1], [1, 2]]}

        def short(ids):
            return {**good(ids), "n": ids[:-1]}

        def typed(ids):
            return {**good(ids), "n": ids.astype("int32")}

        def texts(ids):
            return {**good(ids), "n": ids.astype(str)}

        def nothing(ids):
            return None
        for bad in (less, other, ragged, short, typed, texts, nothing):
            class Changing(Numbers):
                read = staticmethod(lambda ids, bad=bad: bad(ids) if 8 in ids
                                    else good(ids))
            with penstock.Loader(Changing(), batch_size=2,
                                 num_workers=1) as loader:
                with self.assertRaises(penstock.SourceError, msg=bad) as raised:
                    list(loader)
                self.assertEqual(raised.exception.code, "source.returned")
                self.assertTrue(raised.exception.next)

    def test_a_source_without_rows_is_refused(self):
        class Nothing(Numbers):
            size = 0

        class Endless(Numbers):
            size = None
        with self.assertRaises(penstock.SourceError):
            penstock.Loader(Nothing())
        with self.assertRaises(penstock.RequestError):
            penstock.Loader(Endless())

    def test_what_it_is_given_is_its_own(self):
        kept = []

        class Keeping(Numbers):
            def read(self, ids):
                kept.append(ids)
                found = super().read(ids.copy())
                ids[:] = -7
                return found
        with penstock.Loader(Keeping(), batch_size=10) as loader:
            numpy.testing.assert_array_equal(rows_of(loader, "n"),
                                             numpy.arange(100))
        self.assertTrue(all((ids == -7).all() for ids in kept))


class Maps(Case):
    def test_rows_are_mapped_whatever_the_workers_device_and_tier(self):
        def length(row):
            return {"length": numpy.sqrt((row["target"] ** 2).sum()),
                    "number": row["number"]}
        seen = set()
        for device in DEVICES:
            for workers in WORKERS:
                for cache in ("auto", "none"):
                    with penstock.open(self.path, device=device,
                                       loader__workers=workers,
                                       loader__cache=cache) as loader:
                        plain = [batch.numpy()["target"].copy()
                                 for batch in loader]
                        loader.set_epoch(0)
                        mapped = [batch.numpy()["length"].copy()
                                  for batch in loader.map(length)]
                        for a, b in zip(plain, mapped, strict=True):
                            numpy.testing.assert_array_equal(
                                numpy.sqrt((a ** 2).sum(axis=1)), b)
                        seen.add(b"".join(map(bytes, mapped)))
        self.assertEqual(len(seen), 1)

    def test_a_batched_map_sees_whole_batches(self):
        def spread(batch):
            number = batch["number"].ravel()
            return {"count": numpy.full(len(number), len(number)),
                    "first": numpy.full(len(number), number[0])}
        for workers in WORKERS:
            with penstock.open(self.path, loader__workers=workers) as loader:
                for batch in loader.map(spread, batched=True):
                    self.assertEqual(batch.rows, BATCH)
                    self.assertTrue((batch.numpy()["count"] == BATCH).all())
                    self.assertEqual(batch.numpy()["first"][0],
                                     batch.row_keys[0])

    def test_maps_map_what_maps_return(self):
        with penstock.Loader(Numbers(), batch_size=10) as loader:
            loader.map(lambda row: {"a": row["n"] + 1})
            loader.map(lambda rows: {"b": rows["a"] * 2}, batched=True)
            numpy.testing.assert_array_equal(rows_of(loader, "b"),
                                             (numpy.arange(100) + 1) * 2)

    def test_random_numbers_are_a_rows_own(self):
        def noisy(row, rng):
            return {"noise": rng.normal(size=2)}
        runs = []
        for workers in WORKERS:
            with penstock.Loader(Numbers(), batch_size=16, shuffle=True,
                                 seed=5, num_workers=workers) as loader:
                loader.map(noisy)
                one = {int(i): tuple(v) for batch in loader for i, v in
                       zip(batch.ids, batch.numpy()["noise"])}
                two = {int(i): tuple(v) for batch in loader for i, v in
                       zip(batch.ids, batch.numpy()["noise"])}
            runs.append((one, two))
        self.assertTrue(all(run == runs[0] for run in runs))
        one, two = runs[0]
        self.assertEqual(len(set(one.values()) | set(two.values())), 200)

    def test_ranks_and_padding_change_no_rows_numbers(self):
        def noisy(row, rng):
            return {"noise": rng.normal()}
        with penstock.Loader(Numbers(), batch_size=16, seed=5) as loader:
            whole = rows_of(loader.map(noisy), "noise")
        parts = numpy.zeros(100)
        for rank in (0, 1):
            with penstock.Loader(Numbers(), batch_size=8, seed=5, rank=rank,
                                 world=2) as loader:
                for batch in loader.map(noisy):
                    parts[batch.ids] = batch.numpy()["noise"]
        numpy.testing.assert_array_equal(parts, whole)

    def test_padding_is_not_mapped(self):
        job = self.job(tail="pad")
        with penstock.open(job) as loader:
            loader.map(lambda row: {"one": numpy.float32(1)})
            *_, last = loader
            self.assertEqual(last.numpy()["one"].sum(),
                             (numpy.asarray(last.ids) >= 0).sum())
            numpy.testing.assert_array_equal(last.numpy()["weight"],
                                             last.numpy()["one"])

    def test_a_function_may_keep_and_change_what_it_is_given(self):
        kept = []

        def changing(row):
            kept.append((row["n"], int(row["n"]), row["halves"]))
            row["halves"][:] = 1
            return {"n": row["n"]}
        with penstock.Loader(Numbers(), batch_size=8,
                             num_workers=2) as loader:
            loader.map(changing)
            numpy.testing.assert_array_equal(rows_of(loader, "n"),
                                             numpy.arange(100))
        self.assertTrue(all(array == number and (halves == 1).all()
                            for array, number, halves in kept))

    def test_the_state_knows_the_function_and_its_version(self):
        def double(row):
            return {"n": row["n"] * 2}

        def triple(row):
            return {"n": row["n"] * 3}

        def state(fn, **more):
            with penstock.Loader(Numbers(), batch_size=8) as loader:
                return loader.map(fn, **more).state_dict()["data"]
        self.assertEqual(state(double), state(double))
        self.assertEqual(4, len({
            state(double), state(triple), state(double, version="b"),
            state(functools.partial(triple), version=1)}))

    def test_the_defaults_of_a_lambda_are_part_of_it(self):
        self.assertEqual(5, len({source_text(fn) for fn in (
            lambda row, k=2: k, lambda row, k=3: k, lambda row, k=(2,): k,
            lambda row, *, k=2: k, lambda row, *, k=3: k)}))
        self.assertEqual(*(source_text(lambda row, k=kept: k)
                           for kept in (object(), object())))

    def test_a_decorated_lambda_is_told_by_what_it_decorates(self):
        def wrapped(fn):
            @functools.wraps(fn)
            def wrapper(row):
                return fn(row)
            return wrapper
        two = lambda row: row["n"] * 2
        three = lambda row: row["n"] * 3
        self.assertNotEqual(source_text(wrapped(two)),
                            source_text(wrapped(three)))
        one, other = (wrapped(lambda row: row["n"]), wrapped(lambda row: 0))
        self.assertNotEqual(source_text(one), source_text(other))
        two.__name__ = three.__name__ = "named"
        self.assertNotEqual(source_text(two), source_text(three))

    def test_two_lambdas_of_one_statement_are_two_functions(self):
        self.assertEqual(5, len({source_text(fn) for fn in (
            lambda row: {"n": row["n"] + 1}, lambda row: {"n": row["n"] + 2},
            lambda row: {"n": [row[name] for name in row]},
            lambda row: {"m": [row[name] for name in row]},
            lambda row, rng: {"n": row["n"] + 1})}))

    def test_a_function_without_text_is_the_same_in_each_process(self):
        program = """if True:
            from penstock._rows.callables import source_text
            def fn(row):
                if row["kind"] in {"one", "two", "three", "four"}:
                    return {name: (lambda v: -v)(v)
                            for name, v in row.items()}
            print(source_text(fn), source_text(
                lambda row: [n for n in row if n in {"a", "b", "c"}]))
            """
        told = [run_python(program, env={"PYTHONHASHSEED": seed})
                for seed in "1234"]
        self.assertRegex(told[0].stdout, r"^\w{64} \w{64}$")
        self.assertEqual(len({done.stdout for done in told}), 1)

    def test_a_saved_state_goes_on_behind_maps(self):
        def noisy(row, rng):
            return {"noise": rng.normal()}

        def loader(**more):
            return penstock.Loader(Numbers(), batch_size=8, shuffle=True,
                                   seed=1, **more).map(noisy)
        with loader() as one, loader(num_workers=8) as two:
            for _ in one.batches(17):
                pass
            state = one.state_dict()
            two.load_state_dict(state)
            numpy.testing.assert_array_equal(rows_of(one.batches(9), "noise"),
                                             rows_of(two, "noise"))

    def test_what_a_function_raises_comes_in_its_turn_as_the_cause(self):
        def eight(row):
            if row["n"] == 48:
                raise ValueError("no 48")
            return {"n": row["n"]}
        for workers in WORKERS:
            with penstock.Loader(Numbers(), batch_size=16,
                                 num_workers=workers) as loader:
                loader.map(eight)
                seen = 0
                for _ in range(2):  # it stays so
                    with self.assertRaises(penstock.TransformError) as raised:
                        for batch in loader.batches():
                            seen += batch.rows
                    self.assertEqual(seen, 48)
                self.assertEqual(raised.exception.where, "sample 48")
                self.assertEqual(raised.exception.code, "map.failed")
                self.assertIsInstance(raised.exception.__cause__, ValueError)

    def test_a_function_that_fails_at_once_changes_nothing(self):
        with penstock.Loader(Numbers(), batch_size=16) as loader:
            for bad in (lambda row: 1 / 0, lambda row: None, lambda row: {},
                        lambda row: {"a": "text"}):
                with self.assertRaises(penstock.TransformError):
                    loader.map(bad)
            numpy.testing.assert_array_equal(rows_of(loader, "n"),
                                             numpy.arange(100))

    def test_a_function_that_failed_leaves_the_others_their_numbers(self):
        def noisy(row, rng):
            return {"noise": rng.normal()}
        drawn = []
        for fails in (0, 1):
            with penstock.Loader(Numbers(), batch_size=16, seed=1) as loader:
                for _ in range(fails):
                    with self.assertRaises(penstock.TransformError):
                        loader.map(lambda row: 1 / 0)
                drawn.append(rows_of(loader.map(noisy), "noise"))
        numpy.testing.assert_array_equal(*drawn)

    def test_a_map_ends_an_iteration_that_is_running(self):
        with penstock.Loader(Numbers(), batch_size=16) as loader:
            batches = iter(loader)
            next(batches)
            loader.map(lambda row: {"n": row["n"] + 1})
            with self.refused(penstock.RequestError, "loader.iteration"):
                next(batches)
            self.assertEqual(next(loader.batches()).n.numpy()[0], 17)

    def test_a_batched_function_returns_all_rows(self):
        with penstock.Loader(Numbers(), batch_size=16) as loader:
            with self.assertRaises(penstock.TransformError) as raised:
                loader.map(lambda rows: {"n": rows["n"][:3]}, batched=True)
            self.assertIn("16 rows", raised.exception.why)

    def test_functions_run_on_the_loaders_threads(self):
        threads = set()

        def where(row):
            threads.add(threading.get_ident())
            time.sleep(0.001)
            return {"n": row["n"]}
        with penstock.Loader(Numbers(), batch_size=32,
                             num_workers=2) as loader:
            list(loader.map(where))
        self.assertEqual(len(threads - {threading.get_ident()}), 2)

    def test_ctrl_c_in_a_function_ends_the_wait_and_loses_nothing(self):
        once = []

        def slow(row):
            if row["n"] == 20 and not once:
                once.append(True)
                signal.raise_signal(signal.SIGINT)
            return {"n": row["n"]}
        with penstock.Loader(Numbers(), batch_size=8,
                             num_workers=0) as loader:
            loader.map(slow)
            seen = []
            with self.assertRaises(KeyboardInterrupt):
                for batch in loader:
                    seen += batch.numpy()["n"].tolist()
            self.assertEqual(seen, list(range(16)))
            for batch in loader.batches(11):
                seen += batch.numpy()["n"].tolist()
            self.assertEqual(seen, list(range(100)))

    def test_ctrl_c_while_threads_run_functions_ends_the_wait(self):
        def slow(row):
            if row["n"] == 20:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.01)
            return {"n": row["n"]}
        with penstock.Loader(Numbers(), batch_size=50,
                             num_workers=2) as loader:
            loader.map(slow)
            with self.assertRaises(KeyboardInterrupt):
                list(loader)

    def test_python_ends_well_with_a_function_at_work(self):
        for workers in (0, 1, 2):
            done = run_python(f"""
import numpy, penstock, time
class Slow:
    size = 1000
    def read(self, ids):
        time.sleep(0.01)
        return {{"n": ids}}
loader = penstock.Loader(Slow(), batch_size=4, num_workers={workers})
loader.map(lambda row: {{"m": row["n"]}})
held = next(iter(loader))
array = held.numpy()["m"]
""")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
