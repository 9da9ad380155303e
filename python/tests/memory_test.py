"""Memory of a training step: a shortage, an estimate, a search.

PENSTOCK_TEST_SHORTAGES: how many runs of several ranks are short of memory.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from entry import main
from frames import needs, versions

import penstock

if versions("torch") is not None:
    import torch
    from torch.nn.functional import cross_entropy
    from torch.utils._python_dispatch import TorchDispatchMode

    class ShortAt(TorchDispatchMode):
        """The operations with these numbers find no memory."""

        def __init__(self, *numbers):
            super().__init__()
            self.numbers, self.count = set(numbers), -1

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            if self.count in self.numbers:
                raise torch.OutOfMemoryError("made for a test")
            return func(*args, **(kwargs or {}))

ROWS = 24
WORLDS = (2, 4)
SHORTAGES = int(os.environ.get("PENSTOCK_TEST_SHORTAGES", "32"))


def network(seed=0, normalize=False):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.ReLU(),
        torch.nn.BatchNorm1d(8) if normalize else torch.nn.Dropout(0.3),
        torch.nn.Linear(8, 3)).double()


def batches(count=3):
    made = torch.Generator().manual_seed(1)
    return [{"x": torch.randn(ROWS, 5, generator=made, dtype=torch.float64),
             "y": torch.randint(3, (ROWS,), generator=made)}
            for _ in range(count)]


def run(short=(), **options):
    """The parameters after three steps, and the guard."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    guard = penstock.OomGuard(optimizer, model, **options)
    torch.manual_seed(5)

    def add_gradients(micro):
        loss = cross_entropy(model(micro.batch["x"]), micro.batch["y"],
                             reduction="sum")
        micro.backward(loss)

    mode = ShortAt(*short)
    for batch in batches():
        for micro in guard.micro_batches(batch):
            with micro, mode:
                add_gradients(micro)
        guard.step()
    return [one.detach().clone() for one in model.parameters()], guard, mode


@needs("torch")
class Guard(unittest.TestCase):
    def assert_close(self, found, expected, within=1e-10):
        for one, other in zip(found, expected):
            self.assertLess((one - other).abs().max().item(), within)

    def test_a_step_without_a_shortage_is_that_of_torch(self):
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        torch.manual_seed(5)
        for batch in batches():
            optimizer.zero_grad()
            cross_entropy(model(batch["x"]), batch["y"]).backward()
            optimizer.step()
        found, guard, _ = run()
        self.assert_close(found, list(model.parameters()))
        self.assertEqual(guard.events, [])
        self.assertIsNone(guard.micro_batch)

    def test_a_shortage_at_each_operation_of_the_first_batch(self):
        """The run is one that had the smaller micro-batches from that step on,
        random masks included."""
        operations = run()[2].count // 3
        halved = run(micro_batch=16)[0]
        for number in range(operations):
            found, guard, _ = run(short=[number])
            self.assertEqual(
                [(event["step"], event["from"], event["to"], event["action"])
                 for event in guard.events], [(0, 24, 16, "micro_batch")])
            self.assert_close(found, halved)
        self.assertGreater(operations, 10)

    def test_it_halves_until_it_fits_and_says_what_does_not(self):
        _, guard, _ = run(short=[3, 12, 20])
        self.assertEqual([event["to"] for event in guard.events], [16, 8, 4])
        self.assertEqual(guard.micro_batch, 4)
        state = guard.state_dict()
        _, resumed, _ = run(micro_batch=state["micro_batch"])
        self.assertEqual(resumed.state_dict(), state)
        with self.assertRaises(penstock.OutOfMemory) as raised:
            run(short=range(3, 1000))
        self.assertEqual(raised.exception.code, "memory.too_small")
        self.assertIn("1 row", str(raised.exception))
        with self.assertRaises(penstock.OutOfMemory):
            run(short=range(3, 1000), least=8)

    def test_dropout_off_any_micro_batch_gives_the_same_parameters(self):
        def eval_run(**options):
            model = network().eval()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            guard = penstock.OomGuard(optimizer, model.parameters(), **options)
            norms = []
            for batch in batches():
                for micro in guard.micro_batches((batch["x"], batch["y"])):
                    with micro:
                        x, y = micro.batch
                        micro.backward(cross_entropy(model(x), y),
                                       reduction="mean")
                norms.append(guard.step(clip_norm=0.5).item())
            return list(model.parameters()), norms
        expected, norms = eval_run()
        for size in (1, 5, 8, 100):
            found, again = eval_run(micro_batch=size)
            self.assert_close(found, expected)
            self.assertAlmostEqual(norms[-1], again[-1])

    def test_running_values_of_batch_norm_are_put_back(self):
        def normalized(short, **options):
            model = network(normalize=True)
            guard = penstock.OomGuard(
                torch.optim.SGD(model.parameters(), lr=0.1), model, **options)
            mode = ShortAt(*short)
            for micro in guard.micro_batches(batches()[0]):
                with micro, mode:
                    micro.backward(cross_entropy(
                        model(micro.batch["x"]), micro.batch["y"],
                            reduction="sum"))
            return model[2].running_mean.clone(), guard.events
        expected, _ = normalized([], micro_batch=16)
        found, events = normalized([14])
        self.assertTrue(torch.equal(found, expected))
        self.assertEqual([event["exact"] for event in events], [False])
        with self.assertRaises(penstock.RequestError) as raised:
            normalized([14], exact=True)
        self.assertEqual(raised.exception.code, "memory.batch_norm")

    def test_rows_on_the_device_go_before_a_batch_is_divided(self):
        class Loader:
            released = [100, 0]

            def release(self):
                return self.released.pop(0)
        _, guard, _ = run(short=[3, 12], loader=Loader())
        self.assertEqual([(event["action"], event["to"])
                          for event in guard.events],
                         [("rows_to_host", 24), ("micro_batch", 16)])

    def test_a_mean_is_not_taken_for_a_sum(self):
        def trained(reduction, given="sum", weight=None, size=8):
            model = network().eval()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            guard = penstock.OomGuard(optimizer, model, micro_batch=size)
            calls = 0
            for batch in batches():
                for micro in guard.micro_batches(batch):
                    with micro:
                        calls += 1
                        micro.backward(
                            cross_entropy(model(micro.batch["x"]),
                                          micro.batch["y"],
                                          reduction=reduction),
                            weight, reduction=given)
                guard.step()
            return list(model.parameters()), calls
        expected, calls = trained("sum", size=ROWS)
        self.assertEqual(calls, 3)
        for reduction, given in (("sum", "sum"), ("mean", "mean")):
            found, calls = trained(reduction, given)
            self.assert_close(found, expected)
            self.assertEqual(calls, 9 + 1)  # looked at once, in the first
        for reduction, given, words in (
                ("mean", "sum", "it is a mean, and was given as a sum"),
                ("sum", "mean", "it is a sum, and was given as a mean")):
            for size in (4, 8, 16):
                with self.assertRaises(penstock.RequestError) as raised:
                    trained(reduction, given, size=size)
                self.assertEqual(raised.exception.code, "memory.mean_loss")
                self.assertIn(words, str(raised.exception))

    def test_looking_at_two_micro_batches_changes_nothing(self):
        def trained(known):
            model = network(normalize=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            guard = penstock.OomGuard(optimizer, model, micro_batch=8)
            guard._sums_known = known
            torch.manual_seed(3)
            for micro in guard.micro_batches(batches()[0]):
                with micro:
                    noisy = micro.batch["x"] + torch.rand(micro.rows, 1)
                    micro.backward(cross_entropy(
                        model(noisy), micro.batch["y"], reduction="sum"))
            guard.step()
            return [*model.parameters(), *model.buffers()]
        for one, other in zip(trained(True), trained(False), strict=True):
            self.assertTrue(torch.equal(one, other))

    def test_what_it_cannot_take_is_said(self):
        model = network()
        guard = penstock.OomGuard(
            torch.optim.SGD(model.parameters(), lr=0.1), model)

        def refused(batch, body, code):
            with self.assertRaises(penstock.RequestError) as raised:
                for micro in guard.micro_batches(batch):
                    with micro:
                        body(micro)
            self.assertEqual(raised.exception.code, code)
        batch = batches()[0]
        refused({"x": torch.zeros(3, 1), "y": torch.zeros(2)}, None,
                "memory.rows")
        refused([1, 2], None, "memory.rows")
        refused(batch, lambda micro: None, "memory.loss")
        refused(batch, lambda micro: micro.backward(model(micro.batch["x"])),
                "memory.loss")
        refused(batch, lambda micro: micro.backward(
            model(micro.batch["x"]).sum(), reduction="max"), "memory.loss")
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            for micro in guard.micro_batches(batch):
                with micro:
                    raise ZeroDivisionError("mine")

        class FullyShardedDataParallel(torch.nn.Module):
            pass
        model.append(FullyShardedDataParallel())
        with self.assertRaises(penstock.RequestError) as raised:
            penstock.OomGuard(torch.optim.SGD(model.parameters(), lr=0.1),
                              model)
        self.assertEqual(raised.exception.code, "memory.sharded")
        self.assertIn("max_batch_size", str(raised.exception))

    def test_ranks_take_the_same_micro_batches(self):
        """Whichever of them is short; rows differ by rank, and one has none."""
        for world in WORLDS:
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-m", "torch.distributed.run",
                     "--standalone", "--nproc-per-node", str(world), __file__,
                     "rank", folder], capture_output=True, text=True,
                    timeout=300 + SHORTAGES)
                self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                told = sorted(pathlib.Path(folder).glob("rank*"))
                self.assertEqual(len(told), world)
                self.assertEqual({file.read_text() for file in told}, {"equal"})


def one_rank(folder):
    """All ways in which ranks can be short, against one process."""
    import torch.distributed as distributed

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    chosen = random.Random(world)

    def train(wrap, short, rows_of, size=None):
        model = network().eval()
        module = (torch.nn.parallel.DistributedDataParallel(model) if wrap
                  else model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        guard = penstock.OomGuard(optimizer, module, micro_batch=size)
        mode = ShortAt(*short)
        for batch in batches():
            begin, end = rows_of
            part = {key: value[begin:end] for key, value in batch.items()}
            for micro in guard.micro_batches(part):
                with micro, mode:
                    micro.backward(cross_entropy(
                        module(micro.batch["x"]), micro.batch["y"],
                        reduction="sum"))
            guard.step()
        return list(model.parameters()), guard.micro_batch

    alone = network().eval()
    optimizer = torch.optim.AdamW(alone.parameters(), lr=0.01)
    for batch in batches():
        optimizer.zero_grad()
        cross_entropy(alone(batch["x"]), batch["y"]).backward()
        optimizer.step()
    for number in range(SHORTAGES // len(WORLDS)):
        shares = sorted(chosen.sample(range(ROWS + 1), world - 1))
        if number % 3 == 0:
            shares[0] = 0  # rank 0 has no row
        edges = [0, *sorted(shares), ROWS]
        short_ranks = {one for one in range(world) if chosen.random() < 0.5}
        at = chosen.randrange(40)  # of any of the three steps, most of them
        found, size = train(number % 2, [at] if rank in short_ranks else [],
                            (edges[rank], edges[rank + 1]))
        for one, other in zip(found, alone.parameters()):
            assert (one - other).abs().max() < 1e-10, number
        sizes = [None] * world
        distributed.all_gather_object(sizes, size)
        assert len(set(sizes)) == 1, sizes
    (pathlib.Path(folder) / f"rank{rank}").write_text("equal")
    distributed.destroy_process_group()


@needs("torch")
class Estimate(unittest.TestCase):
    def test_a_step_holds_what_was_estimated(self):
        from penstock._memory.peak import peak_bytes
        torch.manual_seed(0)
        for model, shape in (
                (torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(),
                                     torch.nn.Linear(256, 256), torch.nn.GELU(),
                                     torch.nn.Linear(256, 10)), (64,)),
                (torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(),
                                     torch.nn.BatchNorm2d(16),
                                     torch.nn.Conv2d(16, 32, 3),
                                     torch.nn.ReLU()), (3, 32, 32))):
            for rows in (4, 32, 256):
                x = torch.randn(rows, *shape)
                before = [one.clone() for one in (*model.parameters(),
                                                  *model.buffers())]
                told = penstock.estimate_memory(model, x)
                for one, other in zip((*model.parameters(), *model.buffers()),
                                      before):
                    self.assertTrue(torch.equal(one, other))
                self.assertTrue(all(one.grad is None
                                    for one in model.parameters()))
                parameters = sum(one.nbytes for one in (*model.parameters(),
                                                        *model.buffers()))
                self.assertEqual(told["parameters"], parameters)
                self.assertEqual(told["optimizer"], 0)
                self.assertEqual(told["total"],
                                 sum(told[key] for key in (
                                     "parameters", "gradients", "optimizer",
                                     "activations")))
                measured = parameters + peak_bytes(
                    lambda: model(x).sum().backward(), x.device)
                for one in model.parameters():
                    one.grad = None
                self.assertLess(abs(told["total"] / measured - 1), 0.1,
                                (rows, told, measured))

    def test_the_optimizer_counts_what_it_holds(self):
        model = torch.nn.Linear(100, 10)
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.randn(2, 100)
        first = penstock.estimate_memory(model, {"input": x})
        model(x).sum().backward()
        optimizer.step()
        self.assertEqual(
            first["optimizer"],
            penstock.estimate_memory(model, (x,))["optimizer"])


class SimulatedDevices(unittest.TestCase):
    @needs("torch")
    def test_the_search_finds_nine_tenths_of_what_fits_on_300(self):
        from penstock._memory.search import Probe, search
        chosen = random.Random(3)
        shortages = 0
        for number in range(300):
            limit = chosen.randrange(1 << 28, 1 << 36)
            base = chosen.random() * 0.6 * limit
            row = chosen.random() ** 3 * limit / 20 + 1000
            scratch = chosen.choice([0, 0, 0.1 * limit])
            knee = chosen.choice([1e9, 4, 32, 500])
            seen = []

            def probe(rows):
                nonlocal shortages
                seen.append(rows)
                held = base + rows * row + (scratch if rows > 1 else 0)
                if held > limit:
                    shortages += 1
                    return None
                noise = 1 + 0.01 * chosen.random()
                return Probe(int(held), max(rows, knee) * noise)
            found, tried = search(probe, limit, 4096)
            largest = int((0.92 * limit - base - scratch) / row)
            best = min(largest, 4096, max(1, int(knee)))
            self.assertEqual(tried, seen)
            if found == 0:
                self.assertGreater(base + row, 0.92 * limit)
                continue
            self.assertIn(found, seen)
            self.assertGreaterEqual(found, 0.9 * best - 1,
                                    (number, tried, largest, knee))
        self.assertLessEqual(shortages / 300, 0.1)


@needs("torch")
class Search(unittest.TestCase):
    def test_it_finds_a_size_and_leaves_everything_as_it_was(self):
        model = network().float()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        model(torch.zeros(4, 5)).sum().backward()
        optimizer.step()

        def everything():
            return [one.clone() for one in (
                *model.parameters(), *[p.grad for p in model.parameters()],
                *[value for state in optimizer.state.values()
                  for value in state.values()], torch.get_rng_state())]

        def step(module, batch):
            optimizer.zero_grad()
            module(batch).sum().backward()
            optimizer.step()
        before = everything()
        found = penstock.max_batch_size(
            model, lambda rows: torch.randn(rows, 5), step, most=4096,
            memory_bytes=200_000)
        self.assertGreater(found, 50)
        self.assertLess(found, 4096)
        for one, other in zip(everything(), before, strict=True):
            self.assertTrue(torch.equal(one, other))
        with self.assertRaises(penstock.OutOfMemory) as raised:
            penstock.max_batch_size(model, lambda rows: torch.randn(rows, 5),
                                    step, memory_bytes=100)
        self.assertEqual(raised.exception.code, "memory.too_small")
        with self.assertRaises(penstock.RequestError) as raised:
            penstock.max_batch_size(model, lambda rows: torch.randn(rows, 5),
                                    step)
        self.assertEqual(raised.exception.code, "memory.no_limit")
        with self.assertRaisesRegex(ValueError, "mine"):
            def failing(module, batch):
                raise ValueError("mine")
            penstock.max_batch_size(model, lambda rows: rows, failing,
                                    memory_bytes=100)


@needs("torch")
class Device(unittest.TestCase):
    def test_it_is_described(self):
        told = penstock.device_info("cpu")
        self.assertEqual((told["kind"], told["torch"]),
                         ("cpu", torch.__version__))
        if not torch.cuda.is_available():
            self.assertEqual(set(penstock.fast_math().values()), {False})


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        one_rank(sys.argv[2])
    else:
        main()
