"""Loops of torch over batches on a real GPU. Skipped where torch sees none;
cuda_streams_test.py has the same of GPUs that are not there."""
import functools
import gc
import sqlite3
import tempfile
import time
import unittest
import weakref

import numpy

import penstock
from entry import main

try:
    import torch
    MISSING = "" if torch.cuda.is_available() else "torch sees no GPU"
except ImportError:
    torch, MISSING = None, "there is no torch"

ROWS, BATCH, WIDTH = 10_000, 256, 33


def arrays():
    draw = numpy.random.default_rng(1)
    return {"x": draw.normal(size=(ROWS, WIDTH)).astype("float32"),
            "y": numpy.arange(ROWS)}


def write_table(path):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a REAL, b REAL)")
        base.executemany("INSERT INTO rows VALUES (?, ?, ?)",
                         ((i, i / 7, i * i % 1000) for i in range(ROWS)))


def opened(device="cuda", **how):
    how = {"batch_size": BATCH, "shuffle": True, "seed": 3, **how}
    return penstock.Loader(arrays(), device=device, **how)


@functools.cache
def cycles_per_ms():
    pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for event in pair:
        torch.cuda._sleep(50_000_000)
        event.record()
    torch.cuda.synchronize()
    return 50_000_000 / pair[0].elapsed_time(pair[1])


def busy(milliseconds=20):
    """Work on the current stream that takes so long."""
    torch.cuda._sleep(int(milliseconds * cycles_per_ms()))


class OnGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with opened("cpu") as loader:
            cls.right = [{name: field.copy() for name, field in
                          batch.numpy().items()} for batch in loader]

    def assertSame(self, found):
        self.assertEqual(len(found), len(self.right))
        for here, right in zip(found, self.right):
            for name, array in right.items():
                numpy.testing.assert_array_equal(here[name].cpu().numpy(),
                                                 array)


@unittest.skipIf(MISSING, MISSING)
class Batches(OnGpu):
    def test_are_tensors_of_the_gpu_with_the_bytes_of_the_cpu(self):
        for workers in (0, 1, 2, 8):
            with self.subTest(workers=workers), \
                    opened(num_workers=workers) as loader:
                found = []
                for batch in loader:
                    tensors = batch.torch()
                    self.assertEqual(tensors["x"].device,
                                     torch.device("cuda", 0))
                    found.append({k: v.clone() for k, v in tensors.items()})
                self.assertSame(found)

    def test_are_the_same_from_every_tier(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/rows.sqlite"
            write_table(path)

            def found(device, **cache):
                with penstock.Loader(
                        f"sqlite:{path}#rows", {"x": ["a", "b"], "y": "id"},
                        BATCH, shuffle=True, device=device, cache=cache) as of:
                    return of.plan["tier"], [
                        [one.cpu().clone() for one in batch.torch().values()]
                        for batch in of]

            right = found("cpu", ram_gib=1)[1]
            for tier in ("device", "pinned", "ram", "disk", "none"):
                with self.subTest(tier=tier):
                    cache = {f"{one}_gib": int(one == tier) for one in
                             ("device", "pinned", "ram", "disk")}
                    where, batches = found("cuda", dir=folder, **cache)
                    self.assertEqual(where, tier)
                    self.assertEqual(len(batches), len(right))
                    for here, there in zip(batches, right):
                        self.assertTrue(all(map(torch.equal, here, there)))

    def test_may_be_read_late_by_a_stream_of_ones_own(self):
        stream = torch.cuda.Stream()
        found = []
        with opened(cache="ram") as loader, torch.cuda.stream(stream):
            for batch in loader:
                busy()
                found.append({k: v.clone() for k, v in batch.torch().items()})
                del batch
        stream.synchronize()
        self.assertSame(found)

    def test_may_be_read_on_two_streams(self):
        streams = [torch.cuda.Stream() for _ in range(2)]
        found = []
        with opened(cache="ram") as loader:
            for batch in loader:
                of_streams = []
                for stream in streams:
                    with torch.cuda.stream(stream):
                        tensors = batch.torch()
                        busy(5)
                        of_streams.append({k: v.clone() for k, v
                                           in tensors.items()})
                del batch, tensors
                found.append(of_streams)
        torch.cuda.synchronize()
        for at in range(2):
            self.assertSame([one[at] for one in found])

    def test_may_be_kept(self):
        with opened() as loader:
            kept = [batch.torch() for batch in loader]
        self.assertSame(kept)

    def test_outlive_their_loader(self):
        loader = opened()
        batch = next(iter(loader)).torch()
        loader.close()
        gone = weakref.ref(loader)
        del loader
        gc.collect()
        self.assertIsNone(gone())
        numpy.testing.assert_array_equal(batch["y"].cpu().numpy(),
                                         self.right[0]["y"])

    def test_are_copied_into_arrays_of_the_host(self):
        into = {"x": numpy.empty((BATCH, WIDTH), "float32"),
                "y": numpy.empty(BATCH, "int64")}
        with opened() as loader:
            found = [{k: torch.from_numpy(v[:rows].copy())
                      for k, v in into.items()} for rows in loader.into(into)]
        self.assertSame(found)

    def test_pass_through_functions(self):
        with opened(cache="device") as loader:
            loader.map(lambda rows: {"x": rows["x"], "y": rows["y"]},
                       batched=True)
            self.assertSame([{k: v.clone() for k, v in b.torch().items()}
                             for b in loader])


@unittest.skipIf(MISSING, MISSING)
class Graphs(OnGpu):
    """Loops that are captured once and replayed."""

    def test_a_captured_step_takes_each_batch_from_tensors_of_its_own(self):
        held = {"x": torch.zeros(BATCH, WIDTH, device="cuda"),
                "y": torch.zeros(BATCH, dtype=torch.int64, device="cuda")}
        total = torch.zeros((), dtype=torch.float64, device="cuda")
        with opened(drop_last=True) as loader:
            batches = iter(loader)
            first = next(batches)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                total += (held["x"].double().sum() + held["y"].sum())
            total.zero_()
            for batch in [first, *batches]:
                for name, tensor in batch.torch().items():
                    held[name].copy_(tensor)
                graph.replay()
        full = [b for b in self.right if len(b["y"]) == BATCH]
        right = sum(b["x"].astype("float64").sum() + b["y"].sum() for b in full)
        self.assertAlmostEqual(total.item(), right, delta=abs(right) * 1e-9)

    def test_a_batch_is_not_taken_into_a_graph(self):
        with opened() as loader:
            batches = iter(loader)
            batch = next(batches)
            graph = torch.cuda.CUDAGraph()
            with self.assertRaises(penstock.Error) as raised, \
                    torch.cuda.graph(graph):
                torch.zeros(1, device="cuda").add_(1)
                batch.torch()
            self.assertEqual(raised.exception.code, "loader.capturing")
            torch.cuda.synchronize()
            self.assertEqual(batch.torch()["x"].shape, (BATCH, WIDTH))


@unittest.skipIf(MISSING, MISSING)
class Memory(OnGpu):
    def test_is_that_of_torchs_allocator(self):
        torch.zeros(1, device="cuda")
        before = torch.cuda.memory_allocated()
        with opened(cache="device") as loader:
            self.assertGreaterEqual(torch.cuda.memory_allocated() - before,
                                    ROWS * WIDTH * 4)
            self.assertEqual(loader.plan["tier"], "device")
            next(iter(loader))
        gc.collect()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_is_given_up_when_torch_needs_it(self):
        torch.cuda.empty_cache()
        with opened(cache="device") as loader:
            batches, found = iter(loader), []
            for _ in range(5):
                found.append({k: v.clone() for k, v in
                              next(batches).torch().items()})
            loader.release(ROWS * WIDTH * 4)
            for batch in batches:
                found.append({k: v.clone() for k, v in batch.torch().items()})
        self.assertSame(found)


@unittest.skipIf(MISSING, MISSING)
class Clock(OnGpu):
    """Who waited for whom, as CUDA's events have it."""

    def of(self, loader, step_ms):
        for batch in loader.batches(40):
            batch.torch()
            busy(step_ms)
        torch.cuda.synchronize()
        return loader.stats()

    def marked(self, loader, step_ms, host_ms):
        for batch in loader.batches(40):
            with loader.step():
                batch.torch()
                busy(step_ms)
            torch.cuda.synchronize()
            time.sleep(host_ms / 1000)
        return loader.stats()

    def test_a_gpu_that_never_waits_is_busy(self):
        with opened() as loader:
            stats = self.of(loader, 20)
        self.assertGreater(stats["au"], 0.9)

    def test_a_gpu_that_waits_for_the_loop_is_not(self):
        with opened() as loader:
            with_step = self.marked(loader, 5, host_ms=30)
        self.assertLess(with_step["au"], 0.4)
        self.assertGreater(with_step["parts"]["host"], 0.6)

    def test_watch_times_a_dataloader_of_torch(self):
        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 400

            def __getitem__(self, at):
                time.sleep(0.002)
                return torch.full((8,), float(at))

        watched = penstock.watch(torch.utils.data.DataLoader(Slow(), 10))
        for batch in watched:
            batch.cuda(non_blocking=True)
            busy(5)
        torch.cuda.synchronize()
        self.assertLess(watched.report()["au"], 0.5)


    def watched(self, batches, step, **loader):
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 4 * batches

            def __getitem__(self, at):
                return torch.zeros(2_000_000)

        watched = penstock.watch(
            torch.utils.data.DataLoader(Rows(), 4, num_workers=4, **loader))
        for batch in watched:
            step(batch.cuda(non_blocking=True))
        torch.cuda.synchronize()
        return watched.report()["verdict"]

    def test_watch_sees_copies_out_of_memory_that_is_not_pinned(self):
        def step(batch):
            busy(10)

        knobs = [one["knob"] for one in self.watched(40, step)["actions"]]
        self.assertIn("pin_memory", knobs)
        knobs = [one["knob"] for one in
                 self.watched(40, step, pin_memory=True)["actions"]]
        self.assertNotIn("pin_memory", knobs)

    def test_watch_sees_a_gpu_that_waits_within_the_steps(self):
        def step(batch):
            busy(2)
            torch.cuda.synchronize()
            time.sleep(0.03)

        self.assertEqual(self.watched(170, step, pin_memory=True)["limit"],
                         "host")


@unittest.skipIf(MISSING, MISSING)
class Others(unittest.TestCase):
    def test_the_drop_in_pins_for_the_gpu(self):
        class Set(torch.utils.data.Dataset):
            def __len__(self):
                return 100

            def __getitem__(self, at):
                return torch.full((4,), at), at

        loader = penstock.DataLoader(Set(), batch_size=10, num_workers=2,
                                     pin_memory=True)
        seen = []
        for x, y in loader:
            self.assertTrue(x.is_pinned())
            there = x.cuda(non_blocking=True)
            self.assertEqual(there[:, 0].tolist(), y.tolist())
            seen += y.tolist()
        self.assertEqual(seen, list(range(100)))

    def test_the_monitor_sees_the_gpu(self):
        sample = penstock.Monitor().sample()
        self.assertIn("gpu0.utilisation_percent", sample)
        self.assertGreater(sample["gpu0.memory_percent"], 0)


if __name__ == "__main__":
    main()
