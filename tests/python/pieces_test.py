"""Python inside the pipeline: arrays, own sources, functions that map rows."""
import functools
import gc
import json
import signal
import threading
import time
import unittest
import weakref

import numpy

import penstock
from penstock.pieces import source_text
from positions import BATCH, DEVICES, WORKERS, Case, has, run_python


def rows_of(loader, name):
    return numpy.concatenate([batch.numpy()[name].copy() for batch in loader])


class Numbers:
    """Rows 0 .. 99, made when they are read."""
    size = 100

    def read(self, ids):
        return {"n": ids, "halves": (ids[:, None] / 2).repeat(3, axis=1)}


class Arrays(unittest.TestCase):
    def setUp(self):
        self.x = numpy.arange(200, dtype="float32").reshape(100, 2)
        self.y = numpy.arange(100)

    def test_rows_of_arrays_come_as_they_are(self):
        for device in DEVICES:
            for workers in WORKERS:
                for cache in ("auto", "ram", "device"):
                    if (device, cache) == ("cpu", "device"):
                        continue
                    with penstock.Loader({"x": self.x, "y": self.y},
                                         batch_size=16, num_workers=workers,
                                         device=device, cache=cache) as loader:
                        self.assertEqual(len(loader), 7)
                        x, y = (rows_of(loader, name) for name in "xy")
                        numpy.testing.assert_array_equal(x, self.x)
                        numpy.testing.assert_array_equal(y, self.y)

    def test_shuffled_rows_are_each_there_once_and_belong_together(self):
        with penstock.Loader({"x": self.x, "y": self.y}, batch_size=16,
                             shuffle=True, seed=3) as loader:
            first, second = rows_of(loader, "y"), rows_of(loader, "y")
            for batch in loader:
                x, y = (array for array in batch.numpy().values())
                numpy.testing.assert_array_equal(x, self.x[y])
        self.assertEqual(sorted(first), list(range(100)))
        self.assertEqual(sorted(second), list(range(100)))
        self.assertNotEqual(list(first), list(second))

    def test_all_numpy_types_of_numbers_and_every_layout_go(self):
        arrays = {name: numpy.arange(10).astype(name) for name in
                  penstock.pieces.DTYPES}
        arrays["fortran"] = numpy.asfortranarray(self.x[:10])
        arrays["strided"] = self.x[:20:2]
        arrays["big_endian"] = self.y[:10].astype(">i4")
        arrays["flags"] = self.y[:10] % 2 == 0
        arrays["empty"] = numpy.zeros((10, 0), "float32")
        locked = self.x[:10].copy()
        locked.flags.writeable = False
        arrays["read_only"] = locked
        with penstock.Loader(arrays, batch_size=10) as loader:
            batch = next(iter(loader)).numpy()
            self.assertEqual(list(batch), list(arrays))
            for name, array in arrays.items():
                numpy.testing.assert_array_equal(batch[name], array, name)
                self.assertEqual(batch[name].dtype,
                                 array.dtype.newbyteorder("="))

    def test_fields_choose_and_rename_arrays(self):
        arrays = {"x": self.x, "y": self.y}
        with penstock.Loader(arrays, ["y"], batch_size=4) as loader:
            self.assertEqual(list(loader.peek().keys()), ["y"])
        with penstock.Loader(arrays, {"label": "y"}, batch_size=4) as loader:
            self.assertEqual(list(loader.peek().keys()), ["label"])

    def test_a_split_holds_rows_out(self):
        seen = []
        for side in ("train", "val"):
            with penstock.Loader({"y": self.y}, batch_size=8, side=side, split={
                    "train": 0.7, "val": 0.3, "seed": 1}) as loader:
                seen.append(set(rows_of(loader, "y").tolist()))
        self.assertEqual(seen[0] | seen[1], set(range(100)))
        self.assertFalse(seen[0] & seen[1])
        self.assertTrue(50 < len(seen[0]) < 90)

    def test_ranks_share_the_rows(self):
        seen = []
        for rank in (0, 1):
            with penstock.Loader({"y": self.y}, batch_size=8, rank=rank,
                                 world=2) as loader:
                seen += rows_of(loader, "y").tolist()
        self.assertEqual(sorted(seen), list(range(100)))

    def test_a_state_goes_on_with_the_same_arrays_alone(self):
        def loader(**more):
            return penstock.Loader({"y": self.y}, batch_size=8, shuffle=True,
                                   seed=1, **more)
        with loader() as all_at_once, loader(num_workers=2) as later:
            for _ in all_at_once.batches(5):
                pass
            state = json.loads(json.dumps(all_at_once.state_dict()))
            rest = rows_of(all_at_once.batches(8), "y")
            later.load_state_dict(state)
            numpy.testing.assert_array_equal(rows_of(later, "y"), rest)
        self.y = self.y + 1
        with loader() as other:
            with self.assertRaises(penstock.RequestError) as raised:
                other.load_state_dict(state)
            self.assertEqual(raised.exception.code, "resume.other_data")

    def test_row_keys_are_the_numbers_of_the_rows(self):
        with penstock.Loader({"y": self.y}, batch_size=3) as loader:
            self.assertEqual(loader.peek().row_keys, [0, 1, 2])

    def test_arrays_are_kept_as_long_as_they_are_needed_and_no_longer(self):
        class Array(numpy.ndarray):
            """An array that can be watched."""
        array = self.y.view(Array)
        watched = weakref.ref(array)
        loader = penstock.Loader({"y": array}, batch_size=4, num_workers=2)
        del array
        gc.collect()
        batch = next(iter(loader))
        numpy.testing.assert_array_equal(batch.numpy()["y"], [0, 1, 2, 3])
        loader.close()
        del batch, loader
        gc.collect()
        self.assertIsNone(watched())

    def test_what_makes_no_rows_is_refused(self):
        for arrays, code in (
                ({"a": self.x, "b": self.y[:50]}, "arrays.length"),
                ({"a": numpy.float32(1)}, None),
                ({"a": self.y[:0]}, None),
                ({"a": numpy.array(["x"])}, "arrays.array"),
                ({"a": numpy.array([object()])}, "arrays.array"),
                ({"a": numpy.array([1j])}, "arrays.array"),
                ({"a": [1, 2, 3]}, "arrays.array"),
                ({}, None)):
            with self.assertRaises(penstock.RequestError, msg=arrays) as raised:
                penstock.Loader(arrays, batch_size=1)
            if code:
                self.assertEqual(raised.exception.code, code)
            self.assertTrue(raised.exception.next)
        with self.assertRaises(penstock.RequestError) as raised:
            penstock.Loader({"y": self.y}, ["z"])
        self.assertEqual(raised.exception.code, "arrays.field")
        with self.assertRaisesRegex(TypeError, "penstock.DataLoader"):
            penstock.Loader(object())

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_torch_tensors_go_too(self):
        import torch
        tensors = {"h": torch.arange(12, dtype=torch.bfloat16).reshape(6, 2),
                   "t": torch.arange(12.).reshape(2, 6).T,
                   "g": torch.ones(6, requires_grad=True)}
        with penstock.Loader(tensors, batch_size=6) as loader:
            batch = next(iter(loader)).torch()
            for name, tensor in tensors.items():
                self.assertTrue(torch.equal(batch[name], tensor.detach()))


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

    def test_two_lambdas_of_one_statement_are_two_functions(self):
        self.assertEqual(5, len({source_text(fn) for fn in (
            lambda row: {"n": row["n"] + 1}, lambda row: {"n": row["n"] + 2},
            lambda row: {"n": [row[name] for name in row]},
            lambda row: {"m": [row[name] for name in row]},
            lambda row, rng: {"n": row["n"] + 1})}))

    def test_a_function_without_text_is_the_same_in_each_process(self):
        program = """if True:
            from penstock.pieces import source_text
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
    unittest.main()
