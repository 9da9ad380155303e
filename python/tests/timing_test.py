"""How long steps take: on the host's clock, and on a GPU's stream."""
import gc
import json
import os
import sys
import time
import types
import unittest
from unittest import mock

import penstock
from entry import main
from fake_cuda import Gpu
from penstock._watch.timing import STEP, WAIT, CudaSteps
from positions import Case, has, run_python

MS = 1_000_000


class Hand:
    """A clock that is moved by hand, in milliseconds."""

    def __init__(self):
        self.time = 0

    def __call__(self):
        return self.time

    def sleep(self, ms):
        self.time += round(MS * ms)


class Events(unittest.TestCase):
    """CudaSteps over a GPU in a time of its own."""

    def setUp(self):
        self.clock = Hand()
        self.gpu = Gpu(self.clock)
        self.told = []  # (wall, compute, wait for data) in ms
        self.drained = []

        def tell(epoch, rows, *parts, drained):
            self.assertEqual(rows, 24)
            self.drained.append(drained)
            self.told.append(tuple(round(part / MS, 3) for part in parts))
        self.steps = CudaSteps(self.gpu.torch().cuda, tell, self.clock)

    def step(self, wait=0, before=0, work=0, after=0):
        """A step in which the host waits for data, is busy, queues work for
        the GPU, and is busy again."""
        self.steps.asks()
        self.clock.sleep(wait)
        self.steps.got(0, 24)
        self.clock.sleep(before)
        self.gpu.run(work)
        self.clock.sleep(after)

    def end(self):
        self.steps.rests()
        self.clock.sleep(1000)
        self.steps.settle()

    def test_a_gpu_that_is_kept_busy_computes_all_the_time(self):
        for _ in range(4):
            self.step(wait=1, work=10)
        self.end()
        self.assertEqual(self.told, [(10, 10, 0)] * 3)

    def test_an_idle_gpu_waits_for_data_while_the_host_does(self):
        self.step(work=2)
        for _ in range(3):
            self.step(wait=10, work=2)
        self.end()
        self.assertEqual(self.told, [(10, 2, 8)] * 3)

    def test_a_forked_process_destroys_no_event(self):
        destroyed = []

        class Event(self.gpu.torch().cuda.Event):
            def __del__(self):
                destroyed.append(os.getpid())

        cuda = types.SimpleNamespace(Event=lambda **how: Event(**how))
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        steps = CudaSteps(cuda, lambda *step, **more: None, self.clock)
        for _ in range(3):
            steps.asks()
            steps.got(0, 24)
        steps.myself = steps  # garbage for the collector alone
        del steps
        destroyed.clear()  # those of steps that had ended
        child = os.fork()
        if child == 0:
            gc.collect()
            os._exit(len(destroyed))
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        gc.collect()
        self.assertEqual(set(destroyed), {os.getpid()})

    def test_a_gpu_is_drained_where_the_host_works_for_longer(self):
        for after in (0, 0, 12, 30, 0):
            self.step(work=10, after=after)
        self.end()
        self.assertEqual(self.drained, [False, False, True, False],
                         "at the third one's end it still has other steps to do")

    def test_the_host_is_late_where_it_neither_waits_nor_has_queued(self):
        self.step(work=2)
        for _ in range(2):
            self.steps.asks()
            self.clock.sleep(1)
            self.steps.got(0, 24)
            self.clock.sleep(5)
            self.steps.begin()
            self.gpu.run(2)
            self.steps.end()
            self.clock.sleep(4)
        self.end()
        # Idle for 8 ms: 4 after the step less its 2, 1 of waiting, 5 before.
        self.assertEqual(self.told[1:], [(10, 2, 1)])

    def test_what_is_queued_in_the_step_is_the_step(self):
        self.step()
        self.step(before=3, work=4, after=2)
        self.end()
        # The stream has passed the begin: it waits for work within the step.
        self.assertEqual(self.told[0][1], 7)

    def test_nothing_waits_and_no_number_is_told_early(self):
        for _ in range(5):
            self.step(work=100)
            self.assertEqual((self.told, self.gpu.synchronized), ([], 0))
        self.clock.sleep(250)
        self.step(work=100)
        self.assertEqual(len(self.told), 1)
        self.end()
        self.assertEqual(len(self.told), 5)

    def test_a_rest_is_no_part_of_a_step(self):
        self.step(work=10)
        self.step(work=10)
        self.steps.rests()
        self.gpu.run(500)  # validation, which the next epoch finds queued
        self.clock.sleep(50)
        self.step(wait=1, work=10)
        self.end()
        self.assertEqual(self.told, [(10, 10, 0)] * 2)

    def test_a_seam_between_epochs_is_waiting_for_data(self):
        self.step(work=10)
        self.step(work=10)
        self.steps.rests()
        self.clock.sleep(100)
        self.step(wait=30, work=10)
        self.end()
        self.assertEqual(self.told[-1], (40, 10, 30))

    def test_a_capture_is_no_step_and_the_clock_begins_anew(self):
        self.step(work=10)
        self.step(work=10)
        self.steps.forget()
        self.clock.sleep(500)
        self.step(work=10)
        self.step(work=10)
        self.end()
        self.assertEqual(self.told, [(10, 10, 0)])

    def test_a_step_that_was_never_begun_is_none(self):
        self.steps.begin()
        self.steps.end()
        self.steps.rests()
        self.steps.settle()
        self.assertEqual((self.told, self.gpu.recorded), ([], 0))


class WithTorch(Case):
    """A loader on the CPU, under a torch that has (or pretends to have) a GPU
    in real time."""

    def setUp(self):
        self.gpu = Gpu()
        self.torch = self.gpu.torch()
        with_torch = mock.patch.dict(sys.modules, {"torch": self.torch})
        with_torch.start()
        self.addCleanup(with_torch.stop)

    def run_steps(self, loader, steps=30, work=4):
        for _ in loader.batches(steps):
            self.gpu.run(work)

    def test_a_loop_that_only_queues_work_keeps_the_gpu_busy(self):
        loader = self.open(loader__workers=1)
        self.run_steps(loader)
        stats = loader.stats()
        self.assertGreater(stats["au"], 0.95)
        self.assertEqual(loader.explain().limit, "compute")
        self.assertGreaterEqual(self.gpu.synchronized, 1)

    def test_a_loader_that_is_late_shows(self):
        loader = self.open(loader__workers=1, loader__cache="none",
                           loader__prefetch=1, source__round_trip_ms=20)
        self.run_steps(loader, steps=12, work=5)
        parts = loader.stats()["parts"]
        self.assertGreater(parts["wait_data"], 0.5)
        self.assertLess(parts["compute"], 0.4)
        self.assertEqual(loader.explain().limit, "data")

    def test_the_steps_before_the_gpu_was_used_are_the_hosts(self):
        self.torch.started = False
        loader = self.open()
        batches = loader.batches(20)
        next(batches)
        self.assertEqual(self.gpu.recorded, 0)
        self.torch.started = True
        for _ in batches:
            self.gpu.run(2)
        self.assertGreater(loader.stats()["au"], 0.5)

    def test_a_marked_step_is_the_time_of_the_step(self):
        loader = self.open(loader__workers=1)
        for _ in loader.batches(8):
            with loader.step():
                self.gpu.run(2)
            time.sleep(0.01)
        parts = loader.stats()["parts"]
        self.assertGreater(parts["host"], 0.6)
        self.assertLess(parts["compute"], 0.35)

    def test_the_shares_never_wait(self):
        loader = self.open()
        self.run_steps(loader, steps=8, work=500)
        self.assertEqual((loader.shares(), self.gpu.synchronized),
                         ("AU n/a", 0))

    def test_while_a_graph_is_captured_no_event_is_touched(self):
        loader = self.open()
        batches = loader.batches(9)
        for _ in range(3):
            next(batches)
            self.gpu.run(1)
        self.gpu.capturing = True
        next(batches)
        with loader.step():
            self.gpu.run(1)
        loader.stats()
        self.gpu.capturing = False
        for _ in batches:
            self.gpu.run(1)
        self.assertGreater(loader.stats()["au"], 0.5)

    def test_a_step_is_not_marked_in_a_capture_before_any_event(self):
        self.torch.started = False
        loader = self.open()
        next(loader.batches())
        self.torch.started = self.gpu.capturing = True
        with loader.step():
            pass
        self.gpu.capturing = False
        self.assertEqual(loader.stats()["au"], None)

    def test_events_that_fail_leave_the_hosts_clock(self):
        loader = self.open()
        batches = loader.batches(12)
        next(batches)
        next(batches)
        self.gpu.broken = True
        with self.assertLogs("penstock", "WARNING") as told:
            for _ in batches:
                time.sleep(0.002)
        self.assertEqual(len(told.output), 1)
        self.assertIn("an illegal access", told.output[0])
        self.assertGreater(loader.stats()["au"], 0.1)

    def test_the_device_sim_declares_its_steps_itself(self):
        loader = self.open(device={"kind": "sim", "clock": "virtual",
                                   "step_ms": 7})
        self.run_steps(loader)
        self.assertEqual(self.gpu.recorded, 0)
        self.assertAlmostEqual(loader.stats()["au"], 1, places=2)

    def test_a_torch_that_is_half_imported_is_none_yet(self):
        with mock.patch.dict(sys.modules, {"torch": type(sys)("torch")}):
            loader = self.open()
            self.assertEqual(len(list(loader)), len(loader))
        self.run_steps(loader)
        self.assertGreater(loader.stats()["au"], 0.5)

    def test_what_a_signals_handler_raises_loses_no_batch(self):
        loader = self.open()
        batches = loader.batches()
        self.assertEqual(next(batches).step, 0)
        with mock.patch.object(type(loader._watch), "got",
                               side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                next(batches)
        self.assertEqual(loader.state_dict()["step"], 1)
        self.assertEqual([b.step for b in loader],
                         list(range(1, len(loader))))


class Ranges(Case):
    """What a profiler sees."""

    setUp = WithTorch.setUp

    def test_the_wait_and_the_step_alternate(self):
        loader = self.open()
        self.torch.profiled = True
        for _ in loader.batches(2):
            pass
        self.assertEqual(self.torch.ranges,
                         ["+" + WAIT, "-" + WAIT, "+" + STEP, "-" + STEP] * 2)
        self.assertEqual(json.loads(self.torch.metadata["penstock"])["steps"],
                         0)

    def test_a_marked_step_is_the_only_one(self):
        loader = self.open()
        batches = loader.batches(3)
        with loader.step():
            next(batches)
        self.torch.profiled = True
        for _ in batches:
            with loader.step():
                pass
        self.assertEqual(self.torch.ranges.count("+" + STEP), 2)
        self.assertEqual(self.torch.ranges.count("-" + STEP), 2)

    def test_a_range_ends_though_the_profiler_has(self):
        loader = self.open()
        batches = loader.batches(3)
        self.torch.profiled = True
        next(batches)
        self.torch.profiled = False
        next(batches)
        self.assertEqual(self.torch.ranges[-1], "-" + STEP)

    def test_without_a_profiler_there_is_none(self):
        list(self.open())
        self.assertEqual(self.torch.ranges, [])


@unittest.skipUnless(has("torch"), "torch is not installed")
class Torch(Case):
    """torch itself, in a process of its own: it may have no GPU."""

    def run_torch(self, text):
        done = run_python(
            "import json, sys, time, torch, penstock\n"
            f"loader = penstock.open({str(self.path)!r}, loader__workers=2)\n"
            + text, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_profilers_trace_has_our_ranges_and_numbers(self):
        trace = self.folder / "trace.json"
        self.run_torch(
            # With a schedule torch loses what is added to a trace, its own too.
            "from torch.profiler import profile, ProfilerActivity\n"
            "with profile(activities=[ProfilerActivity.CPU]) as profiler:\n"
            "    for batch in loader.batches(5):\n"
            "        batch.torch()['target'].sum()\n"
            "        time.sleep(0.02)\n"
            f"profiler.export_chrome_trace({str(trace)!r})\n")
        found = json.loads(trace.read_text())
        names = [event.get("name") for event in found["traceEvents"]]
        self.assertGreaterEqual(names.count(WAIT), 2)
        self.assertGreaterEqual(names.count(STEP), 2)
        stages = {stage["name"] for stage in found["penstock"]["stages"]}
        self.assertIn("deliver", stages)

    def test_a_compiled_step_can_be_marked(self):
        told = self.run_torch(
            "@torch.compile(backend='eager')\n"
            "def step(target):\n"
            "    return (target * 2).sum()\n"
            "for batch in loader.batches(6):\n"
            "    with loader.step():\n"
            "        step(batch.torch()['target'])\n"
            "print(json.dumps(loader.stats()['steps']))\n")
        self.assertEqual(told, "6\n")

    def test_the_host_times_a_loop_on_the_cpu(self):
        told = self.run_torch(
            "for batch in loader:\n"
            "    time.sleep(0.01)\n"
            "print(loader.stats()['au'] > 0.8)\n")
        self.assertEqual(told, "True\n")


if __name__ == "__main__":
    main()
