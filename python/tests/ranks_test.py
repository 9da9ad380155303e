"""Several ranks: which one a loader is, and whether all have read the same."""
import datetime
import json
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
import types
import unittest
from unittest import mock

import numpy

import penstock
from entry import main
from frames import needs
from positions import Case, fingerprint_of, run_program, run_python

LONGEST_S = 60


class FakeStore:
    """The store of a process group, as far as the package uses it."""

    def __init__(self, timeout_s=LONGEST_S):
        self.timeout = datetime.timedelta(seconds=timeout_s)
        self.lock, self.held = threading.Lock(), {}

    def add(self, key, amount):
        with self.lock:
            self.held[key] = self.held.get(key, 0) + amount
            return self.held[key]

    def set(self, key, value):
        with self.lock:
            self.held[key] = value.encode()

    def check(self, keys):
        with self.lock:
            return all(key in self.held for key in keys)

    def get(self, key):
        with self.lock:
            return self.held[key]

    def delete_key(self, key):
        with self.lock:
            return self.held.pop(key, None) is not None


class Gather:
    """An all-gather between threads."""

    def __init__(self, count):
        self.texts, self.barrier = [None] * count, threading.Barrier(count)

    def of(self, rank):
        def agree(mine):
            self.texts[rank] = mine
            self.barrier.wait(LONGEST_S)
            return list(self.texts)
        return agree


def group_of(world, store=None):
    """What stands for torch.distributed; `rank` is that of a thread."""
    here = threading.local()

    def all_gather_object(into, mine):
        into[:] = here.gather(mine)

    return types.SimpleNamespace(
        here=here, is_available=lambda: True, is_initialized=lambda: True,
        get_rank=lambda: here.rank, get_world_size=lambda: world,
        all_gather_object=all_gather_object,
        distributed_c10d=types.SimpleNamespace(
            _get_default_store=lambda: store))


def torch_is(group):
    return mock.patch.dict(sys.modules, {"torch.distributed": group})


class Ranks(Case):
    def on_ranks(self, world, work):
        """Runs `work(rank)` on a thread each; what it returned or raised."""
        ended = [None] * world

        def run(rank):
            try:
                ended[rank] = work(rank)
            except Exception as error:
                ended[rank] = error

        threads = [threading.Thread(target=run, args=[rank])
                   for rank in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * LONGEST_S)
            self.assertFalse(thread.is_alive())
        return ended

    def assert_codes(self, ended, *codes):
        self.assertEqual([getattr(each, "code", each) for each in ended],
                         list(codes))

    def table(self, rows):
        """A source section of a table of its own with so many rows."""
        path = self.folder / f"{self.id()}.sqlite"
        with sqlite3.connect(path) as base:
            base.execute("drop table if exists t")
            base.execute("create table t (id integer primary key, x real)")
            base.executemany("insert into t values (?, ?)",
                             [(row, row / 8) for row in range(rows)])
        base.close()
        return {"kind": "sqlite", "path": str(path), "table": "t"}


class Place(Ranks):
    def test_the_rank_comes_from_the_environment(self):
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
            there = self.rank_loader()
        given = self.rank_loader(rank=1, world=2)
        self.assertEqual((there.rank, there.world), (1, 2))
        self.assertEqual([b.ids.tolist() for b in there],
                         [b.ids.tolist() for b in given])
        with mock.patch.dict(os.environ, {"RANK": "one"}):
            with self.refused(penstock.RequestError, "loader.rank", "RANK"):
                self.loader()

    def test_the_rank_is_not_guessed_among_several(self):
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "2"}):
            os.environ.pop("RANK", None)
            for arguments in ({}, {"world": 3}):
                with self.refused(penstock.RequestError, "loader.rank", "RANK"):
                    self.loader(**arguments)
            self.assertEqual(self.rank_loader(rank=1).world, 2)

    def test_a_process_group_of_torch_tells_the_rank(self):
        group = group_of(2, FakeStore())

        def work(rank):
            group.here.rank = rank
            with self.loader() as there:
                return there.rank, there.world, there.batches(1).__next__().rows
        with torch_is(group), \
                mock.patch.dict(os.environ, {"WORLD_SIZE": "4"}):
            self.assertEqual([each[:2] for each in self.on_ranks(2, work)],
                             [(0, 2), (1, 2)])
            given = self.rank_loader(rank=3, world=4)
            group.is_initialized = lambda: False
            alone = self.rank_loader(rank=0)
        self.assertEqual((given.rank, given.world), (3, 4))
        self.assertEqual((alone.rank, alone.world), (0, 4))


class Agreement(Ranks):
    def test_ranks_of_the_same_rows_agree_by_a_function(self):
        for world in 1, 2, 4:
            gather = Gather(world)

            def work(rank, world=world, gather=gather):
                with self.open(rank=rank, world=world, loader__workers=rank,
                               agree=gather.of(rank)) as loader:
                    return next(iter(loader)).ids.tolist()
            shares = self.on_ranks(world, work)
            whole = next(iter(self.open())).ids.tolist()
            self.assertEqual(sum(shares, []), whole)

    def test_a_row_that_is_added_between_the_passes_ends_all_ranks(self):
        gather, read = Gather(2), threading.Event()

        def work(rank):
            def agree(mine):
                read.set()
                return gather.of(rank)(mine)
            source = self.table(1000) if rank == 0 else None
            if rank == 1:
                self.assertTrue(read.wait(LONGEST_S))
                source = self.table(1001)
            penstock.Loader(source, ["x"], 8, rank=rank, world=2, agree=agree,
                            device="cpu")
        for error in self.on_ranks(2, work):
            self.assertIsInstance(error, penstock.SourceError)
            self.assertEqual(error.code, "ranks.data")
            self.assertIn("rows.all is 1000 on rank 0, 1001 on rank 1",
                          error.why)

    def test_other_settings_end_all_ranks(self):
        gather = Gather(2)
        for error in self.on_ranks(2, lambda rank: self.open(
                rank=rank, world=2, loader__seed=rank + 1,
                agree=gather.of(rank))):
            self.assertEqual(error.code, "ranks.settings")
            self.assertIn("loader.seed is 1 on rank 0, 2 on rank 1", error.why)

    def test_a_rank_that_cannot_open_ends_the_others(self):
        arguments = {
            "a job that is not there": {"job": "none.json"},
            "a setting": {"loader__batch_size": 0},
            "a source": {"source__path": "none.sqlite"},
        }
        for name, wrong in arguments.items():
            with self.subTest(name):
                gather = Gather(4)

                def work(rank, wrong=wrong, gather=gather):
                    given = dict(wrong) if rank == 2 else {}
                    penstock.open(given.pop("job", self.path), rank=rank,
                                  world=4, agree=gather.of(rank), **given)
                ended = self.on_ranks(4, work)
                own = ended.pop(2)
                self.assert_codes(ended, *["ranks.failed"] * 3)
                for error in ended:
                    self.assertEqual((error.where, error.kind),
                                     ("rank 2", own.kind))
                    self.assertIn(str(own), error.why)

    def test_a_wrong_argument_ends_the_others_too(self):
        gather = Gather(2)
        ended = self.on_ranks(2, lambda rank: self.loader(
            rank=rank, world=2, batch_size="many" if rank else 8,
            agree=gather.of(rank)))
        self.assertEqual(ended[0].code, "ranks.failed")
        self.assertIn("TypeError: batch_size is 'many'", ended[0].why)
        self.assertIsInstance(ended[1], TypeError)

    def test_what_agree_raises_comes_as_it_is(self):
        def agree(mine):
            raise ZeroDivisionError(mine.decode())
        with self.assertRaisesRegex(ZeroDivisionError, '"rank": 1'):
            self.open(rank=1, world=2, agree=agree)

    def test_what_agree_returns_must_be_bytes_of_each_rank(self):
        for returned in (None, 3, [3], ["text"], [], b"bytes"):
            with self.refused(penstock.RequestError, "ranks.agree"):
                self.open(rank=1, world=2, agree=lambda mine, r=returned: r)

    def test_arrays_are_compared_by_their_bytes(self):
        for rows, code in ((64, "rows.all"), (65, "fingerprint")):
            gather = Gather(2)

            def work(rank, rows=rows, gather=gather):
                x = numpy.full((65 if rank else rows, 2), rank, "float32")
                penstock.Loader({"x": x}, batch_size=8, rank=rank, world=2,
                                agree=gather.of(rank))
            for error in self.on_ranks(2, work):
                self.assertEqual((error.code, error.where),
                                 ("ranks.data", code))


class Alone(Ranks):
    """Ranks that cannot ask each other."""

    def test_must_name_their_rows(self):
        with self.refused(penstock.RequestError, "ranks.agree", "agree",
                          "source.fingerprint") as found:
            self.open(rank=1, world=2)
        digits = found.error.next.split('"')[1]
        self.assertTrue(fingerprint_of(self.open()).startswith(digits))
        self.assertEqual(self.open(rank=1, world=2,
                                   source__fingerprint=digits).world, 2)

    def test_other_rows_than_the_named_ones_are_refused(self):
        wrong = "0123456789abcdef"
        for arguments in ({}, {"rank": 1, "world": 2}):
            with self.refused(penstock.SourceError, "source.fingerprint",
                              wrong, fingerprint_of(self.open())[:16]):
                self.open(source__fingerprint=wrong, **arguments)
        for wrong in ("0123", "x" * 16, "A" * 16, "0" * 65):
            with self.refused(penstock.RequestError, "settings.value",
                              "source.fingerprint"):
                self.open(source__fingerprint=wrong)

    def test_the_program_shows_the_share_of_any_rank(self):
        run_program("batch", self.path, "--rank", 1, "--world", 2)


class ProcessGroup(Ranks):
    """Loaders that find a process group of torch."""

    def open_on(self, group, **of_rank):
        def work(rank):
            group.here.rank = rank
            given = {name: values[rank] for name, values in of_rank.items()}
            with penstock.open(self.path, **given) as loader:
                return [batch.ids.tolist() for batch in loader]
        with torch_is(group):
            return self.on_ranks(group.get_world_size(), work)

    def test_compares_each_loader_in_its_turn(self):
        store = FakeStore()
        group = group_of(4, store)
        for side in ("train", "val", "train", "val", "train"):
            shares = self.open_on(group, side=[side] * 4)
            whole = [batch.ids.tolist() for batch in self.open(side=side)]
            self.assertEqual([sum(step, []) for step in zip(*shares)], whole)
        texts = [key for key, held in store.held.items() if b"v" in
                 (held if isinstance(held, bytes) else b"")]
        self.assertEqual(len(texts), 2 * 4)  # of the last two loaders

    def test_names_what_differs(self):
        ended = self.open_on(group_of(2, FakeStore()), side=["train", "val"])
        self.assert_codes(ended, "ranks.settings", "ranks.settings")
        self.assertIn("side is train on rank 0, val on rank 1", ended[0].why)

    def test_a_rank_that_fails_ends_the_others(self):
        ended = self.open_on(group_of(2, FakeStore()), source__path=[
            "none.sqlite", str(self.base)])
        self.assert_codes(ended, "sqlite.missing", "ranks.failed")

    def test_names_the_rank_that_opens_no_loader(self):
        group = group_of(3, FakeStore(timeout_s=0.2))

        def work(rank):
            group.here.rank = rank
            if rank == 1:
                return "nothing"
            with self.refused(penstock.RequestError, "ranks.timeout",
                              "by rank 1;", "world=1"):
                self.open()
        with torch_is(group):
            self.assertEqual(self.on_ranks(3, work), [None, "nothing", None])

    def test_one_rank_alone_waits_for_nobody(self):
        group = group_of(2, FakeStore())
        group.here.rank = 1
        with torch_is(group):
            self.assertEqual(self.open(rank=0, world=1).world, 1)
            with self.refused(penstock.RequestError, "ranks.agree"):
                self.open(rank=0, world=3)  # not all processes of the group

    def test_ctrl_c_ends_the_wait_for_the_others(self):
        group = group_of(2, FakeStore())
        group.here.rank = 0
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with torch_is(group), self.assertRaises(KeyboardInterrupt):
            self.open()
        self.assertLess(time.monotonic() - began, 5)

    def test_a_store_that_is_gone_is_named(self):
        store = FakeStore()
        store.check = mock.Mock(side_effect=RuntimeError("Broken pipe"))
        group = group_of(2, store)
        group.here.rank = 1
        with torch_is(group), self.refused(
                penstock.RequestError, "ranks.agree", "Broken pipe"):
            self.open()

    def test_a_group_without_a_store_gathers_objects(self):
        group, gather = group_of(2), Gather(2)

        def work(rank):
            group.here.rank, group.here.gather = rank, gather.of(rank)
            return penstock.open(self.path, side=("train", "val")[rank])
        with torch_is(group):
            self.assert_codes(self.on_ranks(2, work),
                              "ranks.settings", "ranks.settings")


# Two ranks over a table. "grown": a row is added between their passes; "gone":
# rank 1 has no such file; "late": it comes later; "missing": it opens nothing.
TWO_PROCESSES = """
import datetime, json, sqlite3, sys, time
import torch.distributed as group
import penstock
rank, address, job, case = int(sys.argv[1]), *sys.argv[2:]
group.init_process_group("gloo", init_method=address, rank=rank, world_size=2,
                         timeout=datetime.timedelta(seconds=10))
job = json.load(open(job))
if case == "gone" and rank == 1:
    job["source"]["path"] += ".none"
if case == "late" and rank == 1:
    time.sleep(2)
if case == "grown" and rank == 1:
    group.barrier()
    with sqlite3.connect(job["source"]["path"]) as base:
        base.execute("insert into t values (1000, 0)")
elif case == "grown":
    whole = penstock._loader.ranks._Store.__call__
    def compare(self, mine):
        group.barrier()
        return whole(self, mine)
    penstock._loader.ranks._Store.__call__ = compare
if case == "missing" and rank == 1:
    time.sleep(12)
    sys.exit(print("[]"))
try:
    loader = penstock.open(job)
    print(json.dumps([b.ids.tolist() for b in loader]))
    penstock.open(job, side="train").close()
except penstock.Error as error:
    print(json.dumps([error.code, error.where, error.why]))
"""


@needs("torch")
class Gloo(Ranks):
    """Two processes of torch's own."""

    def ended(self, case):
        job = self.folder / f"{case}.json"
        job.write_text(json.dumps({
            "source": self.table(1000), "device": "cpu",
            "fields": {"x": {"columns": ["x"]}},
            "loader": {"batch_size": 100}}))
        with socket.create_server(("localhost", 0)) as free:
            meeting = f"tcp://localhost:{free.getsockname()[1]}"
        ended = self.on_ranks(2, lambda rank: run_python(
            TWO_PROCESSES, rank, meeting, job, case))
        for done in ended:
            self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(done.stdout) for done in ended]

    def test_share_the_rows_also_when_one_is_late(self):
        for case in "same", "late":
            shares = self.ended(case)
            self.assertEqual(sorted(sum(sum(shares, []), [])),
                             list(range(1000)))

    def test_a_row_that_is_added_between_the_passes_ends_both(self):
        for code, _, why in self.ended("grown"):
            self.assertEqual(code, "ranks.data")
            self.assertIn("rows.all is 1000 on rank 0, 1001 on rank 1", why)

    def test_a_rank_that_cannot_read_ends_the_other(self):
        first, second = self.ended("gone")
        self.assertEqual(first[:2], ["ranks.failed", "rank 1"])
        self.assertEqual(second[0], "sqlite.missing")

    def test_a_rank_that_opens_nothing_is_named(self):
        (code, _, why), _ = self.ended("missing")
        self.assertEqual(code, "ranks.timeout")
        self.assertIn("by rank 1", why)


if __name__ == "__main__":
    main()
