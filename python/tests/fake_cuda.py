"""A simulated GPU: torch's names for streams and events over a line of work
that takes time of the host's clock. What is queued is done in its order, and
nobody waits for it who does not ask."""
import threading
import time
import types


class Gpu:
    def __init__(self, now=time.perf_counter_ns):
        self.now = now
        self.busy_until = 0
        self.capturing = False
        self.broken = False
        self.recorded = self.synchronized = 0

    def run(self, ms):
        """Queues work of so many milliseconds."""
        self.busy_until = (max(self.now(), self.busy_until)
                           + round(1e6 * ms))

    def torch(self, initialized=True):
        """What timing.py looks at of the module torch."""
        gpu = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing
                self.at = None

            def record(self):
                assert not gpu.capturing, "recorded into a graph"
                if gpu.broken:
                    raise RuntimeError("CUDA error: an illegal access")
                gpu.recorded += 1
                self.at = max(gpu.now(), gpu.busy_until)

            def query(self):
                assert not gpu.capturing, "asked during a capture"
                return gpu.now() >= self.at

            def synchronize(self):
                gpu.synchronized += 1
                while not self.query():
                    time.sleep(0.001)

            def elapsed_time(self, later):
                assert self.query() and later.query(), "not ready"
                return (later.at - self.at) / 1e6

        torch = types.ModuleType("torch")
        torch.started = initialized
        torch.cuda = types.SimpleNamespace(
            Event=Event, is_initialized=lambda: torch.started,
            is_current_stream_capturing=lambda: gpu.capturing)
        torch.ranges, torch.metadata, torch.profiled = [], {}, False

        class record_function:
            def __init__(self, name):
                self.name, self.thread = name, threading.get_ident()

            def __enter__(self):
                torch.ranges.append("+" + self.name)

            def __exit__(self, *raised):
                torch.ranges.append("-" + self.name)

        torch.profiler = types.SimpleNamespace(record_function=record_function)
        torch.autograd = types.SimpleNamespace(
            _profiler_enabled=lambda: torch.profiled,
            _add_metadata_json=torch.metadata.__setitem__)
        return torch
