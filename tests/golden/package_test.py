"""The Python package: the batches of program.json again, and what it has alone
(states, arrays, functions, the drop-in DataLoader), against package.json."""
import hashlib
import json
import logging
import pathlib
import random
import shutil
import tempfile
import unittest
import warnings

import numpy

import penstock
import samples
import tables
from cases import ALL, CASES, SHARE, SIM, WAYS
from golden import Golden, batches_entry, digest, main, rows_entries

logging.getLogger("penstock").setLevel(logging.ERROR)
PROGRAM = Golden("program.json", read_only=True)
GOLDEN = Golden("package.json")


def tearDownModule():
    GOLDEN.finish()


def lines_of(batches):
    """What `penstock batch` prints of them."""
    return [{"keys": batch.row_keys,
             "order_digest": sha256(numpy.asarray(batch.ids, "<i8").tobytes()),
             "bytes_digest": sha256(b"".join(
                 array.tobytes() for array in batch.numpy().values()))}
            for batch in batches]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def tensors_of(batch):
    return {name: f"{array.dtype} {list(array.shape)}"
            for name, array in batch.numpy().items()}


class Jobs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="penstock-golden-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = pathlib.Path(folder) / "d.sqlite"
        tables.write_sqlite(path)
        cls.source = {"kind": "sqlite", "path": str(path)}

    def open(self, case):
        job = case.job(self.source)
        if case.world > 1:  # ranks that cannot ask each other name their rows
            with penstock.open(job) as alone:
                rows = alone.stats()["dataset"]["fingerprint"]
            job["source"] = {**job["source"], "fingerprint": rows}
        loader = penstock.open(job, side=case.side, rank=case.rank,
                               world=case.world)
        loader.set_epoch(case.epoch)
        return loader

    def test_cases(self):
        for case in CASES:
            with self.subTest(case=case.name), self.open(case) as loader:
                PROGRAM.check(self, f"{case.name}: batches",
                              batches_entry(lines_of(loader)))
                if case.rows:
                    self.check_rows(case, loader)

    def check_rows(self, case, loader):
        for what, entry in rows_entries(loader.stats()["dataset"],
                                        loader.statistics).items():
            with self.subTest(what=what):
                PROGRAM.check(self, f"{case.name}: {what}", entry)
        GOLDEN.check(self, f"{case.name}: state", loader.state_dict())
        GOLDEN.check(self, f"{case.name}: tensors", tensors_of(loader.peek()))

    def test_ways_that_change_no_batch(self):
        for case in (way for base in (ALL, SHARE) for way in (
                base.but(**settings) for settings in WAYS[3::4])):
            with self.subTest(case=case.name, **case.settings), \
                    self.open(case) as loader:
                PROGRAM.check(self, f"{case.name}: batches",
                              batches_entry(lines_of(loader)))

    def test_states_of_before_are_gone_on_from(self):
        with self.open(ALL) as loader:
            list(loader.batches(3))
            GOLDEN.check(self, "saved after 3 batches", loader.state_dict())
        for name, state in (
                ("of a loader", GOLDEN["saved after 3 batches"]),
                ("of a run", PROGRAM["run all fields: state.json"])):
            with self.open(ALL) as loader:
                loader.load_state_dict(state)
                GOLDEN.check(self, f"batches after a state {name}",
                             batches_entry(lines_of(loader.batches(15))))

    def test_uris(self):
        uri = f"sqlite:{self.source['path']}#rows"
        with penstock.Loader(uri, {"x": ["a", "b"], "n": {
                "columns": ["n"], "dtype": "int64"}}, 32, True) as loader:
            GOLDEN.check(self, "a URI", [
                batches_entry(lines_of(loader)), loader.state_dict(),
                tensors_of(loader.peek())])


    def test_without_fields(self):
        path = pathlib.Path(self.source["path"])
        uri = f"sqlite:{path}"
        csv = path.with_name("t.csv")
        tables.write_csv(csv)
        for name, source in (("rows", f"{uri}#rows"), ("large", f"{uri}#large"),
                             ("a CSV file", csv)):
            with self.subTest(name), penstock.Loader(
                    source, batch_size=32, shuffle=True,
                    split={"train": 0.7, "val": 0.2}) as loader:
                found = rows_entries(loader.stats()["dataset"],
                                     loader.statistics)
                found["statistics"] = digest(found["statistics"])
                GOLDEN.check(self, f"without fields: {name}", [
                    found, batches_entry(lines_of(loader)),
                    loader.state_dict(), tensors_of(loader.peek())])


class Pictures(unittest.TestCase):
    """Folders of pictures: what is drawn, and what is done by default."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="penstock-golden-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.root = pathlib.Path(folder)
        for at in range(36):
            of_class = cls.root / ("cat", "dog", "owl")[at % 3]
            of_class.mkdir(exist_ok=True)
            (of_class / f"{at}.png").write_bytes(samples.picture(at))

    def test_pictures(self):
        random_crops = {"train": "random_resized_crop", "flip": 0.5}
        middle = {"train": "resize_center", "flip": 0}
        split = {"train": 0.6, "val": 0.3, "seed": 2}
        for name, image, more in (
                ("by default", {}, {}), ("val by default", {}, {"side": "val"}),
                ("cropped at random", random_crops, {}),
                ("the middle", middle, {}),
                ("floats", {**random_crops, "dtype": "float32", "mean": [0.5],
                            "std": [0.25], "mode": "L"}, {})):
            with self.subTest(name), penstock.ImageFolder(
                    self.root, None, 8, True, seed=6, split=split,
                    image={"size": [20, 24], "resize": 26, **image},
                    **more) as loader:
                first = loader.peek()
                lines = [lines_of_rows(batch)
                         for batch in loader.batches(2 * len(loader))]
                state = loader.state_dict()
                del state["data"]  # of the folder, too
                GOLDEN.check(self, f"pictures {name}", {
                    "classes": loader.statistics["label"]["classes"],
                    "labels": first["label"].numpy().tolist(),
                    "order": digest([line["ids"] for line in lines]),
                    "bytes": digest([line["bytes"] for line in lines]),
                    "tensors": tensors_of(loader.peek()),
                    "state": state})


def arrays():
    n = numpy.arange(157)
    made = {name: (n * 7 % 120).astype(name)
            for name in ("float16", "float32", "float64", "int8", "uint8",
                         "int16", "uint16", "int32", "uint32", "int64",
                         "uint64", "bool")}
    return {**made, "matrix": numpy.outer(n, [1, -2, 0.5]).astype("float32"),
            "turned": numpy.outer([1, 2], n).T,
            "deep": numpy.arange(157 * 12).reshape(157, 3, 2, 2)}


class Rows(unittest.TestCase):
    """Arrays, sources in Python, functions."""

    maxDiff = None

    def check(self, name, source, functions=(), **arguments):
        """Two epochs, their ids, and the state after them, on any number of
        threads."""
        for workers, device in ((0, "cpu"), (2, "cpu"), (2, SIM)):
            with self.subTest(name, workers=workers), penstock.Loader(
                    source, num_workers=workers, device=device,
                    **arguments) as loader:
                for function, how in functions:
                    loader.map(function, **how)
                first = lines_of_rows(loader.peek())
                lines = [lines_of_rows(batch)
                         for batch in loader.batches(2 * len(loader))]
                GOLDEN.check(self, name, {
                    "steps": len(loader), "ids": first["ids"][:4],
                    "order": digest([line["ids"] for line in lines]),
                    "bytes": digest([line["bytes"] for line in lines]),
                    "tensors": tensors_of(loader.peek()),
                    "state": loader.state_dict()})

    def test_arrays(self):
        split = {"train": 0.6, "val": 0.3, "seed": 8}
        for name, arguments in (
                ("in order", {}), ("shuffled", {"shuffle": True}),
                ("seed 9", {"shuffle": True, "seed": 9}),
                ("drop_last", {"shuffle": True, "drop_last": True}),
                ("some", {"fields": {"x": "matrix", "y": "int8"}}),
                ("train", {"split": split, "shuffle": True}),
                ("val", {"split": split, "side": "val"}),
                ("rank 0 of 2", {"rank": 0, "world": 2, "shuffle": True}),
                ("rank 2 of 3", {"rank": 2, "world": 3, "shuffle": True}),
                ("in RAM", {"cache": "ram", "shuffle": True, "seed": 2**40})):
            self.check(f"arrays {name}", arrays(),
                       **{"batch_size": 20, **arguments})

    def test_functions(self):
        for name, functions in (
                ("read", []),
                ("flipped", [(samples.flipped, {})]),
                ("version 2", [(samples.flipped, {"version": 2})]),
                ("centred", [(samples.centred, {"batched": True})]),
                ("three", [(samples.Shifted(5), {}), (samples.flipped, {}),
                           (samples.centred, {"batched": True})])):
            for rank, world in ((0, 1), (1, 2)):
                self.check(f"source {name} rank {rank} of {world}",
                           samples.Numbers(), functions, batch_size=12,
                           shuffle=True, seed=4, rank=rank, world=world)


def lines_of_rows(batch):
    return {"ids": batch.ids.tolist(), "bytes": sha256(b"".join(
        array.tobytes() for array in batch.numpy().values()))}


class DropIn(unittest.TestCase):
    """penstock.DataLoader without torch, whose batches are then arrays."""

    maxDiff = None

    def setUp(self):
        warnings.simplefilter("ignore")

    def check(self, name, make, epochs=3, workers=(0,), resume=4, **arguments):
        """Whole epochs, and the rest of one after a state; the arguments
        `make` makes are new ones for each loader."""
        for count in workers:
            def loader():
                return penstock.DataLoader(*make(), num_workers=count,
                                           **arguments)
            with self.subTest(name, workers=count), loader() as first, \
                    loader() as second:
                random.seed(1), numpy.random.seed(1)
                seen = [[listed(batch) for batch in first]
                        for _ in range(epochs)]
                for _ in zip(range(resume), second):
                    pass
                state = second.state_dict()
                with loader() as third:
                    third.load_state_dict(state)
                    rest = [listed(batch) for batch in third]
                GOLDEN.check(self, f"DataLoader {name}", {
                    "first": seen[0][0], "epochs": digest(seen),
                    "state": state, "rest": digest(rest)})

    def test_order(self):
        for name, arguments in (
                ("in order", {"seed": 0}),
                ("shuffled", {"shuffle": True, "seed": 3}),
                ("shuffled 2^64-1", {"shuffle": True, "seed": 2**64 - 1}),
                ("drop_last", {"shuffle": True, "seed": 3,
                               "drop_last": True}),
                ("substitute", {"shuffle": True, "seed": 3,
                                "on_bad": "substitute"}),
                ("mask", {"shuffle": True, "seed": 3, "on_bad": "mask"})):
            bad = (3, 50, 51) if "on_bad" in arguments else ()
            self.check(name, lambda bad=bad: (samples.Ids(101, bad),),
                       batch_size=7, **arguments)

    def test_samplers(self):
        for rank in range(2):
            self.check(f"sampler of rank {rank} of 2", lambda: (
                samples.Ids(101), 6, False, samples.Share(101, rank, 2)),
                seed=1)
        batches = [[i, 2 * i, 100 - i] for i in range(20)]
        self.check("batch_sampler", lambda: (samples.Ids(101),), seed=1,
                   batch_sampler=batches)
        self.check("a stream", lambda: (samples.Stream(55),), batch_size=8,
                   seed=1)

    def test_random_numbers_in_workers(self):
        self.check("drawn", lambda: (samples.Drawn(60),), epochs=2,
                   batch_size=16, shuffle=True, seed=4, workers=(1, 2),
                   resume=2)
        self.check("drawn by worker", lambda: (samples.Drawn(60),), epochs=2,
                   batch_size=16, shuffle=True, seed=4, workers=(2,),
                   seeds="worker", resume=2)


def listed(batch):
    if isinstance(batch, (list, tuple)):
        return [listed(part) for part in batch]
    return numpy.asarray(batch).tolist()


if __name__ == "__main__":
    main()
