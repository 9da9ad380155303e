#!/usr/bin/env python3
"""Does the job service answer as fast with a long queue, under slow clients, and to
many listeners?

Two services take turns: one whose queue is empty, and one with 1,000 jobs queued; a
job is submitted, which is timed, and cancelled and removed, which is not. Then health
is asked for with nothing else to do and while 1,000 clients have sent half a request,
which the service closes. Last, 200 clients listen to a job that trains: how long after
the job has written an epoch do they hear of it?

    bench/run service_load [--requests N] [--rounds N] [--epochs N]
"""
import argparse
import contextlib
import json
import selectors
import sys
import time

from result import ROOT, machine_of, print_result, spread

sys.path.insert(0, str(ROOT / "python" / "tests"))
from service_case import ServiceCase, rss_mib  # noqa: E402

QUEUED, SLOW, LISTENERS = 1000, 1000, 200
BODY = json.dumps({"job_name": "load", "config": {"epochs": 3}}).encode()
EPOCH_S = 0.5


class Service(ServiceCase):
    """A service of its own, with a program that pretends to train."""

    step_s = EPOCH_S

    def __init__(self, slots):
        super().__init__("runTest")
        self.settings = {"slots": slots, "queue": 10 * QUEUED}
        self.setUp()
        self.start()

    def runTest(self):
        pass

    def submit(self):
        """The seconds until the answer, and the job."""
        began = time.perf_counter()
        status, job = self.ask("POST", "/api/training/jobs", BODY)
        took = time.perf_counter() - began
        self.assertEqual(status, 201, job)
        return took, job["id"]

    def remove(self, job):
        path = f"/api/training/jobs/{job}"
        self.assertEqual(self.ask("POST", path + "/cancel")[0], 200)
        self.assertEqual(self.ask("DELETE", path)[0], 204)

    def health_s(self):
        began = time.perf_counter()
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
        return time.perf_counter() - began


def p99(seconds):
    return sorted(seconds)[int(0.99 * (len(seconds) - 1))] * 1e3


def submits(requests):
    empty, full = Service(0), Service(0)
    with contextlib.ExitStack() as stack:
        for one in (empty, full):
            stack.callback(one.doCleanups)
        for _ in range(QUEUED):
            full.submit()
        took = [], []
        for _ in range(requests):
            for one, times in zip((empty, full), took):
                seconds, job = one.submit()
                times.append(seconds)
                one.remove(job)
    none, many = map(p99, took)
    return {"what": f"submit with {QUEUED} jobs queued, beside none",
            "requests": requests, "p99_ms_none_queued": none,
            "p99_ms_queued": many, "ratio": many / none,
            "must_reach": "a ratio of 2"}


def slow_clients(rounds):
    idle, busy, grown, closed = [], [], [], []
    service = Service(0)
    with contextlib.ExitStack() as stack:
        stack.callback(service.doCleanups)
        for _ in range(20):
            service.health_s()
        for _ in range(rounds):
            idle += [service.health_s() for _ in range(500)]
            before, began = rss_mib(service.service), time.monotonic()
            slow = [service.connected() for _ in range(SLOW)]
            for one in slow:
                one.sendall(b"POST /api/training/jobs HTTP/1.1\r\nHost: 127")
            busy += [service.health_s() for _ in range(500)]
            grown.append(rss_mib(service.service) - before)
            for one in slow:
                one.settimeout(30)
                with contextlib.suppress(ConnectionResetError):
                    one.recv(1)
                one.close()
            closed.append(time.monotonic() - began)
    return {"what": f"health while {SLOW} requests are half sent, beside idle",
            "p99_ms_idle": p99(idle), "p99_ms_busy": p99(busy),
            "ratio": p99(busy) / p99(idle), "rss_grows_mib": spread(grown),
            "closed_within_s": spread(closed),
            "must_reach": "a ratio of 2, 16 MiB, 15 s"}


def listeners(epochs):
    """Seconds from when an epoch was written until each listener heard of it."""
    service = Service(1)
    with contextlib.ExitStack() as stack:
        stack.callback(service.doCleanups)
        job = service.client().submit("x", {"epochs": epochs})["id"]
        head = (f"GET /api/training/jobs/{job}/events HTTP/1.1\r\nHost: "
                f"127.0.0.1:{service.port}\r\nAuthorization: Bearer "
                f"{service.token}\r\n\r\n").encode()
        selector = selectors.DefaultSelector()
        for _ in range(LISTENERS):
            one = service.connected()
            stack.callback(one.close)
            one.sendall(head)
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ, {"text": "", "next": 1})
        heard = []  # epochs, and when
        end = time.monotonic() + 60 + 4 * EPOCH_S * epochs
        while len(heard) < LISTENERS * epochs and time.monotonic() < end:
            for key, _ in selector.select(0.1):
                of, text = key.data, key.fileobj.recv(65536)
                if not text:
                    raise RuntimeError("the service closed a stream of events")
                of["text"] += text.decode()
                while f'"epoch": {of["next"]}.0' in of["text"]:
                    heard.append((of["next"], time.monotonic()))
                    of["next"] += 1
        written = {int(step): float(at)
                   for step, _, at in service.trace_lines(job)}
    if len(heard) < LISTENERS * epochs:
        raise RuntimeError(f"{LISTENERS} listeners heard {len(heard)} epochs")
    late = [at - written[epoch] for epoch, at in heard]
    return {"what": f"{LISTENERS} listeners hear of an epoch",
            "epochs": epochs, "p99_ms": p99(late), "most_ms": 1e3 * max(late),
            "must_reach": "1 s"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=40)
    chosen = parser.parse_args()
    results = [submits(chosen.requests), slow_clients(chosen.rounds),
               listeners(chosen.epochs)]
    print_result("service_load", __doc__,
                 f"bench/run service_load --requests {chosen.requests} "
                 f"--rounds {chosen.rounds} --epochs {chosen.epochs}",
                 {"machine": machine_of(chosen.program), "results": results})


if __name__ == "__main__":
    main()
