"""Order and bytes depend on the job alone: never on workers, tiers, devices,
prefetch, ranks or on which steps are looked at."""
import hashlib
import itertools
import sqlite3
import unittest

from penstock_cli import Case, floats, order_digest, read_safetensors

STRONGEST = {"json_set": {
    "column": "receivers", "max": 5, "overflow": "strongest",
    "sort_by": "snr_db", "keys": ["snr_db", "lat", "lon", "signal_present"]},
    "standardize": True}


class Positions(Case):
    """The demo's rows, split by session."""

    def setUp(self):
        super().setUp()
        self.succeed("demo", "positions", "--rows", "300", "--seed", "5",
                     "--to", "sqlite:d.sqlite")
        self.write_job(self.job(
            source={"kind": "sqlite", "path": "d.sqlite",
                    "table": "measurements"},
            fields={"receivers": STRONGEST,
                    "target": {"columns": ["tx_lat", "tx_lon"],
                               "standardize": True},
                    "when": {"columns": ["recorded_at"], "dtype": "float64"},
                    "number": {"columns": ["id"], "dtype": "int64"}},
            split={"train": 0.7, "val": 0.2, "seed": 2, "by": "session"},
            loader={"batch_size": 24, "seed": 7}))

    def looked_at(self, *sets, steps="0:1000", out=None, arguments=()):
        """The lines, and with `out` the bytes of every file."""
        arguments = ["--steps", steps, *arguments]
        for change in sets:
            arguments += ["--set", change]
        if out is not None:
            arguments += ["--out", out]
        lines = self.batches(*arguments)
        if out is None:
            return lines
        files = sorted((self.folder / out).iterdir())
        return lines, [(file.name, file.read_bytes()) for file in files]


class WhatChangesNothing(Positions):
    def test_workers_tiers_devices_prefetch_and_ways_to_read(self):
        expected = self.looked_at(out="expected")
        self.assertGreater(len(expected[0]), 5)
        ways = [(f"loader.workers={w}", f"loader.cache={c}", f"device={d}")
                for w, c, d in itertools.product(
                    (0, 1, 2, 8), ("device", "ram", "none"), ("cpu", "sim"))]
        ways += [(f"loader.prefetch={p}", f"loader.workers={w}", "device=sim",
                  "loader.cache=ram")
                 for p in (0, 1, 5) for w in (0, 3)]
        ways += [("loader.read=per_sample",),
                 ("loader.read=per_sample", "device=cpu"),
                 ("device.copy_gb_s=0.01", "loader.cache=ram")]
        for number, way in enumerate(ways):
            with self.subTest(way=way):
                self.assertEqual(self.looked_at(*way, out=f"out{number}"),
                                 expected)

    def test_a_step_is_the_same_whoever_looks_at_it(self):
        whole = self.looked_at()
        for steps, expected in (("3:5", whole[3:5]), ("0:0", []), ("4:4", []),
                                ("7:9000000000000000000", whole[7:]),
                                ("500:600", [])):
            self.assertEqual(self.looked_at(steps=steps), expected, steps)
        self.assertEqual(self.batches(), whole[:1])
        self.assertEqual([line["step"] for line in whole],
                         list(range(len(whole))))

    def test_the_same_rows_in_another_order_of_insertion(self):
        expected = self.looked_at()
        with sqlite3.connect(self.folder / "d.sqlite") as base:
            base.execute("CREATE TABLE turned (id INTEGER, recorded_at "
                         "TIMESTAMP, session TEXT, receivers json, tx_lat REAL,"
                         " tx_lon REAL, PRIMARY KEY (id)) WITHOUT ROWID")
            base.execute("CREATE VIEW shown AS SELECT * FROM measurements "
                         "ORDER BY session, tx_lat")
            base.execute("INSERT INTO turned SELECT * FROM measurements "
                         "ORDER BY id DESC")
        base.close()
        self.assertEqual(self.looked_at("source.table=turned"), expected)
        self.assertEqual(self.looked_at("source.table=shown", "source.key=id"),
                         expected)


class Order(Positions):
    def keys(self, *sets, arguments=(), **more):
        lines = self.looked_at(*sets, arguments=arguments, **more)
        return [line["keys"] for line in lines]

    def flat(self, *sets, **more):
        return list(itertools.chain(*self.keys(*sets, **more)))

    def test_each_epoch_holds_every_train_row_once_in_another_order(self):
        first = self.flat("loader.tail=exact")
        second = self.flat("loader.tail=exact", arguments=["--epoch", "1"])
        far = self.flat("loader.tail=exact", arguments=["--epoch", "123456"])
        self.assertEqual(len(first), len(set(first)))
        for other in (second, far):
            self.assertNotEqual(other, first)
            self.assertEqual(sorted(other), sorted(first))
        self.assertNotEqual(sorted(first), first)

    def test_another_seed_is_another_order(self):
        self.assertNotEqual(self.flat(), self.flat("loader.seed=8"))

    def test_without_shuffling_keys_ascend_in_every_epoch(self):
        for epoch in ("0", "4"):
            flat = self.flat("loader.shuffle=false", "loader.tail=exact",
                             arguments=["--epoch", epoch])
            self.assertEqual(flat, sorted(flat))

    def test_validation_is_whole_and_in_order_and_apart_from_training(self):
        val = self.flat(arguments=["--split", "val"])
        self.assertEqual(val, sorted(val))
        train = self.flat("loader.tail=exact")
        self.assertFalse(set(val) & set(train))
        report = self.train()["dataset"]
        self.assertEqual((len(train), len(val), report["rows"]),
                         (report["train"], report["val"], 300))
        self.assertLess(len(train) + len(val), 300, "a tenth is unused")

    def test_a_row_never_changes_sides_when_others_are_added(self):
        sides = {side: set(self.flat("loader.tail=exact",
                                     arguments=["--split", side]))
                 for side in ("train", "val")}
        for side, before in sides.items():
            less = set(self.flat("loader.tail=exact", "source.where=id < 150",
                                 arguments=["--split", side]))
            self.assertEqual(less, {key for key in before if key < 150})

    def test_the_order_digest_is_that_of_the_ids(self):
        for line in self.looked_at("loader.tail=pad"):
            ids = [-1 if key is None else key - 1 for key in line["keys"]]
            self.assertEqual(line["order_digest"], order_digest(ids))


class Tails(Positions):
    def test_drop_pad_and_exact(self):
        whole = self.looked_at("loader.tail=exact")
        rest = len(whole[-1]["keys"])
        self.assertTrue(0 < rest < 24, "the rows do not fill the last batch")
        self.assertEqual(self.looked_at("loader.tail=drop"), whole[:-1])
        self.assertEqual(self.looked_at(), whole[:-1], "drop is the default")
        padded = self.looked_at("loader.tail=pad")
        self.assertEqual(len(padded), len(whole))
        self.assertEqual(padded[-1]["keys"],
                         whole[-1]["keys"] + [None] * (24 - rest))

    def test_padding_has_weight_0_and_holds_zeros(self):
        lines, _ = self.looked_at("loader.tail=pad", out="out")
        rest = sum(key is not None for key in lines[-1]["keys"])
        path = max((self.folder / "out").iterdir())
        tensors = read_safetensors(path)
        self.assertEqual(list(tensors), ["receivers", "receivers_mask",
                                         "target", "when", "number", "weight"])
        self.assertEqual(floats(tensors["weight"]),
                         [1.0] * rest + [0.0] * (24 - rest))
        for name, (_, shape, data) in tensors.items():
            self.assertEqual(shape[0], 24, name)
            row = len(data) // 24
            self.assertEqual(data[row * rest:], bytes(row * (24 - rest)), name)

    def test_steps_and_samples_of_training_follow(self):
        for tail in ("drop", "pad", "exact"):
            lines = self.looked_at("loader.tail=" + tail)
            report = self.train("--set", "loader.tail=" + tail)
            self.assertEqual(report["steps"], len(lines))
            self.assertEqual(report["samples"],
                             sum(len(line["keys"]) for line in lines))


class Ranks(Positions):
    def shares(self, world, tail):
        """By rank, the lines; and the files of all."""
        return [self.looked_at("loader.tail=" + tail,
                               out=f"{tail}{world}{rank}",
                               arguments=["--rank", rank, "--world", world])
                for rank in range(world)]

    def test_the_shares_of_all_ranks_are_the_whole(self):
        for tail in ("drop", "pad", "exact"):
            whole = self.looked_at("loader.tail=" + tail)
            for world in (1, 2, 3, 8):
                with self.subTest(tail=tail, world=world):
                    shares = [lines for lines, _ in self.shares(world, tail)]
                    self.assertEqual({len(share) for share in shares},
                                     {len(whole)})
                    for step, line in enumerate(whole):
                        parts = [share[step]["keys"] for share in shares]
                        self.assertEqual(list(itertools.chain(*parts)),
                                         line["keys"])
                        size = len(line["keys"])
                        self.assertEqual(
                            [len(part) for part in parts],
                            [(r + 1) * size // world - r * size // world
                             for r in range(world)])

    def test_the_tensors_of_all_ranks_are_the_whole(self):
        self.looked_at("loader.tail=exact", out="whole")
        self.shares(3, "exact")
        for path in sorted((self.folder / "whole").iterdir()):
            whole = read_safetensors(path)
            parts = [read_safetensors(self.folder / f"exact3{rank}" / path.name)
                     for rank in range(3)]
            for name, (dtype, shape, data) in whole.items():
                self.assertEqual(b"".join(p[name][2] for p in parts), data)
                self.assertEqual([p[name][1][1:] for p in parts],
                                 [shape[1:]] * 3)


class Files(Positions):
    def test_hold_what_the_digests_say_by_names_that_sort_by_step(self):
        lines, files = self.looked_at(out="out", arguments=["--epoch", "12"])
        self.assertEqual(len(files), len(lines))
        for line, (name, _) in zip(lines, files):
            self.assertEqual((line["epoch"], name), (
                12, f"epoch-000012-step-{line['step']:09}.safetensors"))
            tensors = read_safetensors(self.folder / "out" / name)
            digest = hashlib.sha256(
                b"".join(data for _, _, data in tensors.values()))
            self.assertEqual(line["bytes_digest"], digest.hexdigest())
            self.assertEqual(
                {name: (dtype, shape)
                 for name, (dtype, shape, _) in tensors.items()},
                {"receivers": ("F32", [24, 5, 4]),
                 "receivers_mask": ("F32", [24, 5]),
                 "target": ("F32", [24, 2]), "when": ("F64", [24, 1]),
                 "number": ("I64", [24, 1])})

    def test_lines_have_these_keys_and_no_others(self):
        for line in self.looked_at():
            self.assertEqual(list(line), ["epoch", "step", "keys",
                                          "order_digest", "bytes_digest"])

    def test_standardised_columns_of_the_train_rows_have_mean_0_and_deviation_1(
            self):
        self.looked_at("loader.tail=exact", out="out")
        values = []
        for path in (self.folder / "out").iterdir():
            values += floats(read_safetensors(path)["target"])
        for column in (values[0::2], values[1::2]):
            mean = sum(column) / len(column)
            variance = sum((v - mean) ** 2 for v in column) / len(column)
            self.assertAlmostEqual(mean, 0, places=5)
            self.assertAlmostEqual(variance, 1, places=5)


class Fingerprint(Case):
    def test_is_that_of_the_rows_not_of_the_place(self):
        self.database(self.rows(), name="a.sqlite")
        self.database(list(reversed(self.rows())), name="b.sqlite",
                      declared="id INT PRIMARY KEY, heard JSON, y DOUBLE",
                      table="other")
        self.write_job()

        def fingerprint(*sets):
            arguments = [a for change in sets for a in ("--set", change)]
            return self.train(*arguments)["dataset"]["fingerprint"]

        first = fingerprint("source.path=a.sqlite")
        self.assertEqual(fingerprint("source.path=b.sqlite",
                                     "source.table=other"), first)
        self.assertEqual(fingerprint("source.path=a.sqlite", "loader.seed=9",
                                     "loader.workers=0", "loader.cache=none",
                                     "device=cpu"), first)
        self.assertNotEqual(fingerprint("source.path=a.sqlite",
                                        "source.where=id <> 4"), first)


if __name__ == "__main__":
    unittest.main()
