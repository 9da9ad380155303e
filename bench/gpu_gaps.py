#!/usr/bin/env python3
"""Does a run's verdict see that a GPU waits for the loop within its steps?

AU is timed by events around each step, which cover the gaps between its kernels. So
loops of several kinds are run on a real GPU, and four numbers stand side by side: AU;
the utilisation that the driver (NVML) reports; the time in which any kernel ran, as
the kernels' own times (CUPTI, by torch.profiler over 20 steps) add up; and the limit
that the verdict names. A network of linear layers takes its steps over a loader whose
rows are on the GPU. "item": the loop asks for the loss after every step; "graph": the
step is a CUDA graph; "sleeps": the loop sleeps for 5 ms within the step.

`right`: "host" where the kernels ran for less than 0.75 of the time, "compute" where
for more than 0.9; between the two either.
"""
import argparse
import time

import numpy
import torch
from torch.profiler import ProfilerActivity, profile

import penstock
from cuda_graph import captured
from result import print_result, processor

LOOPS = {  # width, layers, rows of a step, and how it is done
    "many small kernels": (256, 20, 64, ()),
    "many small kernels, item": (256, 20, 64, ("item",)),
    "many small kernels, graph": (256, 20, 64, ("graph",)),
    "many small kernels, sleeps": (256, 20, 64, ("sleeps",)),
    "middling kernels": (1024, 20, 2048, ()),
    "middling kernels, item": (1024, 20, 2048, ("item",)),
    "large kernels": (4096, 12, 8192, ()),
    "large kernels, item": (4096, 12, 8192, ("item",))}
PROFILED = 20


def step_of(width, layers, rows, how):
    model = torch.nn.Sequential(*(
        torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())
        for _ in range(layers))).cuda()
    graph = "graph" in how
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True,
                                  capturable=graph)
    x = torch.randn(rows, width, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=not graph)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if "item" in how:
            loss.item()
        if "sleeps" in how:
            time.sleep(0.005)
    return captured(step) if graph else step


def kernels_ran(loader, step):
    """Share of the time from the first kernel to the last."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for batch in loader.batches(PROFILED):
            batch.torch()
            step()
        torch.cuda.synchronize()
    times = sorted((event.time_range.start, event.time_range.end)
                   for event in profiler.events()
                   if event.device_type == torch.autograd.DeviceType.CUDA)
    ran, end = 0, times[0][0]
    for start, until in times:
        ran += max(0, until - max(start, end))
        end = max(end, until)
    return ran / (end - times[0][0])


def measured(name, seconds):
    step = step_of(*LOOPS[name])
    loader = penstock.Loader({"x": numpy.zeros((100_000, 4), "float32")},
                             batch_size=64, shuffle=True, device="cuda")
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    steps, begun = 0, time.perf_counter()
    monitor = penstock.Monitor(0.25)
    with monitor:
        for batch in loader.batches():
            batch.torch()
            step()
            steps += 1
            if time.perf_counter() - begun > seconds:
                break
    torch.cuda.synchronize()
    wall = time.perf_counter() - begun
    stats = loader.stats()
    found = {"loop": name, "step_ms": 1000 * wall / steps, "au": stats["au"],
             "driver": monitor.summary()["metrics"]
             ["gpu0.utilisation_percent"]["mean"] / 100,
             "kernels": kernels_ran(loader, step),
             "limit": stats["verdict"]["limit"],
             "cause": stats["verdict"]["cause"],
             "actions": stats["verdict"]["actions"]}
    allowed = {limit for limit, holds in (
        ("host", found["kernels"] < 0.9), ("compute", found["kernels"] > 0.75))
        if holds}
    loader.close()
    return {**found, "right": found["limit"] in allowed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("a GPU is needed, and a torch with CUDA: "
                         "torch.cuda.is_available() is false")
    print_result("gpu_gaps", __doc__, "bench/run gpu_gaps",
                 {"machine": processor(),
                  "gpu": torch.cuda.get_device_name(),
                  "torch": torch.__version__,
                  "results": [measured(name, given.seconds)
                              for name in LOOPS]})


if __name__ == "__main__":
    main()
