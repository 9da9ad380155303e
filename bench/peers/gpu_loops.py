#!/usr/bin/env python3
"""How busy is a GPU in a loop of PyTorch that Penstock feeds, and in the same loop
fed by torch's DataLoader?

Two loops as users write them. "positions": rows of SQLite with a JSON list each,
batches of 256, a transformer of four layers over the receivers, as a CUDA graph.
"pictures": JPEG files of 500 x 375 pixels, RandomResizedCrop(224), a flip and
Normalize, batches of 128, ResNet-50 in bfloat16 and channels_last. The step is the
same in every way of feeding it: forward, backward, AdamW.

The ceiling is the same step over one batch that stays on the GPU. AU is the time
between two CUDA events around each step, over the wall time; `of_ceiling` are the
samples per second over those of the ceiling. Each way runs for some seconds after
its first epoch, or after ten steps where an epoch takes longer; ways run in turns,
and a way's figures are those of the median turn. Where Penstock measures the loop
itself, what it says stands beside.
"""
import argparse
import itertools
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms

import penstock
from peer_result import ROOT, machine_of, print_result
from cuda_graph import captured
from photos import write_pictures
from position_rows import KEYS, MAX, Rules, Sqlite

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


# --- The steps.

class SetNetwork(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.into = torch.nn.Linear(len(KEYS), 256)
        layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, 0.0,
                                                 batch_first=True)
        self.layers = torch.nn.TransformerEncoder(
            layer, 4, enable_nested_tensor=False)
        self.out = torch.nn.Linear(256, 2)

    def forward(self, receivers, mask):
        hidden = self.layers(self.into(receivers),
                             src_key_padding_mask=mask == 0)
        weights = mask.unsqueeze(-1)
        return self.out((hidden * weights).sum(1) / weights.sum(1))


def positions_step():
    """A CUDA graph: launched one by one, its kernels would keep the GPU waiting
    for longer than any input."""
    model = SetNetwork().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True,
                                  capturable=True)
    held = [torch.zeros(shape, device="cuda") for shape in
            ((256, MAX, len(KEYS)), (256, MAX), (256, 2))]
    held[1][:, 0] = 1

    def step():
        receivers, mask, target = held
        optimizer.zero_grad(set_to_none=False)
        torch.nn.functional.mse_loss(model(receivers, mask), target).backward()
        optimizer.step()

    replay_graph = captured(step)

    def replay(*batch):
        for to, tensor in zip(held, batch):
            to.copy_(tensor)
        replay_graph()
    return replay


def pictures_step():
    model = torchvision.models.resnet50(num_classes=4).cuda().to(
        memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    mean, std = (torch.tensor(x, device="cuda").view(1, 3, 1, 1) * 255
                 for x in (MEAN, STD))

    def step(pictures, labels):
        if pictures.dtype == torch.uint8:
            pictures = (pictures.float() - mean) / std
        pictures = pictures.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pictures),
                                                     labels.view(-1))
        loss.backward()
        optimizer.step()
    return step


# --- What a user of torch writes.

class OfTorch:
    """A DataLoader whose batches go to the GPU as torch's manual has it."""

    def __init__(self, dataset, batch, workers):
        self.loader = DataLoader(
            dataset, batch, shuffle=True, drop_last=True, num_workers=workers,
            pin_memory=True, persistent_workers=workers > 0)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield [one.cuda(non_blocking=True) for one in batch]

    def said(self):
        return {}


class OfPenstock:
    def __init__(self, job, **settings):
        self.loader = penstock.open(job, device="cuda", **settings)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield list(batch.torch().values())

    def said(self):
        stats = self.loader.stats()
        said = {"penstock_says": {
            "au": stats.get("au"), "tier": stats.get("plan", {}).get("tier"),
            "explain": str(self.loader.explain()).splitlines()[:4]}}
        self.loader.close()
        return said


# --- Measuring.

def endlessly(loader):
    """Batches, and whether the first epoch is over."""
    for epoch in itertools.count():
        for batch in loader:
            yield batch, epoch > 0


def ceiling(step, batch, seconds):
    for _ in range(20):
        step(*batch)
    torch.cuda.synchronize()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            step(*batch)
        torch.cuda.synchronize()
        steps += 10
    return steps * len(batch[0]) / (time.perf_counter() - start)


def measured(make, step, seconds, longest_warm_up):
    opened = time.perf_counter()
    loader = make()
    first, begun, pairs, samples = None, None, [], 0
    for taken, (batch, warm) in enumerate(endlessly(loader)):
        now = time.perf_counter()
        first = first or now - opened
        if begun is None and taken >= 10 and (
                warm or now - opened > longest_warm_up):
            torch.cuda.synchronize()
            begun = time.perf_counter()
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        pair[0].record()
        step(*batch)
        pair[1].record()
        if begun is None:
            continue
        pairs.append(pair)
        samples += len(batch[0])
        if time.perf_counter() - begun > seconds:
            break
    torch.cuda.synchronize()
    wall = time.perf_counter() - begun
    found = {"samples_per_s": samples / wall, "steps": len(pairs),
             "au": sum(a.elapsed_time(b) for a, b in pairs) / 1000 / wall,
             "first_batch_s": first, "warm_up_s": begun - opened,
             **loader.said()}
    del loader, batch
    return found


def compare(loop, step, ways, given):
    """The ways in turns; the turn whose rate is the median stands for each."""
    turns = {way: [] for way in ways}
    sample = next(iter(ways["penstock"]()))
    highest = ceiling(step, sample, given.seconds)
    for _ in range(given.repeats):
        for way, make in ways.items():
            turns[way].append(measured(make, step, given.seconds,
                                       given.longest_warm_up))
    results = []
    for way, found in turns.items():
        found.sort(key=lambda one: one["samples_per_s"])
        results.append({"loop": loop, "way": way, **found[len(found) // 2],
                        "of_ceiling": found[len(found) // 2]["samples_per_s"]
                        / highest,
                        "samples_per_s_of_turns":
                            [one["samples_per_s"] for one in found]})
    return {"loop": loop, "ceiling_samples_per_s": highest,
            "ceiling_step_ms": len(sample[0]) / highest * 1000,
            "ways": results}


def positions(folder, given):
    path = folder / "positions.sqlite"
    subprocess.run([given.program, "demo", "positions", "--rows",
                    str(given.rows), "--to", f"sqlite:{path}"], check=True,
                   stdout=subprocess.DEVNULL)
    job = json.loads((ROOT / "examples/positions/job.json").read_text())
    job["source"] = {"kind": "sqlite", "path": str(path),
                     "table": "measurements"}
    job |= {"split": {}, "model": "none"}
    statistics = penstock.open(job, device="cpu").statistics
    with sqlite3.connect(path) as connection:
        keys = [key for key, in connection.execute(
            "SELECT id FROM measurements")]
    rows = Sqlite(keys, Rules(statistics), path)
    ways = {"penstock": lambda: OfPenstock(job),
            "penstock, rows in pinned memory":
                lambda: OfPenstock(job, loader__cache="pinned"),
            "penstock, rows in RAM":
                lambda: OfPenstock(job, loader__cache="ram")}
    for workers in (0, 4, given.workers):
        ways[f"DataLoader, {workers} workers"] = \
            lambda workers=workers: OfTorch(rows, 256, workers)
    return compare("positions", positions_step(), ways, given)


def pictures(folder, given):
    drawn, files = folder / "drawn", folder / "pictures"
    drawn.mkdir()
    size = write_pictures(drawn, 256)
    for of_class in drawn.iterdir():
        (files / of_class.name).mkdir(parents=True)
        for file in of_class.iterdir():
            for copy in range(given.pictures // 256):
                shutil.copy(file, files / of_class.name
                            / f"{copy}-{file.name}")

    def job(**image):
        return {"source": {"kind": "images", "path": str(files)},
                "fields": {"x": {"image": {"column": "image", "size": 224,
                                           "train": "random_resized_crop",
                                           "flip": 0.5, **image}},
                           "y": {"category": {"column": "class",
                                              "unknown": "error"}}},
                "loader": {"batch_size": 128}}

    floats = {"dtype": "float32", "mean": MEAN, "std": STD}
    kept = {"store": {"form": "decoded", "max_side": 341}}
    folder_set = torchvision.datasets.ImageFolder(files, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD)]))
    ways = {
        "penstock": lambda: OfPenstock(job(dtype="uint8"),
                                       loader__cache="none"),
        "penstock, float32": lambda: OfPenstock(job(**floats),
                                                loader__cache="none"),
        "penstock, files in RAM, decoded by nvJPEG": lambda: OfPenstock(
            job(dtype="uint8", decode="device"), loader__cache="ram"),
        "penstock, decoded pixels in RAM": lambda: OfPenstock(
            job(dtype="uint8", **kept), loader__cache="ram"),
        "penstock, decoded pixels on the device, finished there":
            lambda: OfPenstock(job(finish="device", **floats, **kept),
                               loader__cache="device")}
    for workers in (4, given.workers):
        ways[f"DataLoader, {workers} workers"] = \
            lambda workers=workers: OfTorch(folder_set, 128, workers)
    return {**compare("pictures", pictures_step(), ways, given),
            "bytes_per_picture": size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default=ROOT / "build/bin/penstock")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--pictures", type=int, default=8192)
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--longest-warm-up", type=float, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loops", nargs="*", default=["positions", "pictures"])
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("a GPU is needed, and a torch with CUDA: "
                         "torch.cuda.is_available() is false")
    torch.backends.cudnn.benchmark = True
    loops = {"positions": positions, "pictures": pictures}
    results = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        for loop in given.loops:
            results.append(loops[loop](pathlib.Path(name), given))
    print_result("peers_gpu_loops", __doc__, "bench/run peers_gpu_loops",
                 {"machine": machine_of(given.program),
                  "gpu": torch.cuda.get_device_name(),
                  "torch": torch.__version__,
                  "torchvision": torchvision.__version__, "results": results})


if __name__ == "__main__":
    main()
