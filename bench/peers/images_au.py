#!/usr/bin/env python3
"""What does a small team's loop gain whose accelerator waits for its pictures?

Batches of 32 pictures of 256 x 256 on a simulated accelerator whose step takes 20
ms, so that 1,600 pictures a second would keep it busy. Photo-like JPEG files of
500 x 375 pixels in class folders, through RandomResizedCrop, a flip and Normalize
to float32. Before: torchvision's ImageFolder in a DataLoader of torch without
workers, and with 2. After: `penstock train` of the same folder, with nothing kept;
with bytes of the accelerator's size that are normalised there, as its models do;
and with decoded pixels kept in memory. The first second of a
DataLoader is not counted.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import torch
import torchvision
from torchvision import transforms

from peer_result import print_result, processor_seconds, torch_machine
from photos import write_pictures

SIZE, BATCH, STEP_S = 256, 32, 0.02
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def before(folder, workers, steps):
    torch.set_num_threads(1)
    pictures = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD)]))
    loader = torch.utils.data.DataLoader(
        pictures, BATCH, shuffle=True, drop_last=True, num_workers=workers,
        persistent_workers=workers > 0)
    spent, taken, begun, counted = processor_seconds(), 0, None, 0
    start = time.perf_counter()
    while taken < steps:
        for _ in loader:
            time.sleep(STEP_S)
            taken += 1
            if begun is None and time.perf_counter() - start > 1:
                begun, counted = time.perf_counter(), taken
            if taken == steps:
                break
    wall = time.perf_counter() - begun
    del loader
    rate = (steps - counted) / wall
    return {"pictures_per_s": rate * BATCH, "au": rate * STEP_S,
            "cpu_ms_per_picture":
                (processor_seconds() - spent) / (steps * BATCH) * 1000}


def after(program, folder, of_field, loader, steps, pictures):
    job = pathlib.Path(folder).parent / "job.json"
    image = {"column": "image", "size": SIZE, "train": "random_resized_crop",
             "flip": 0.5, **of_field}
    job.write_text(json.dumps({
        "source": {"kind": "images", "path": str(folder)},
        "fields": {"image": {"image": image},
                   "class": {"category": {"column": "class",
                                          "unknown": "error"}}},
        "loader": {"batch_size": BATCH, **loader},
        "device": {"kind": "sim", "step_ms": STEP_S * 1000},
        "train": {"epochs": steps * BATCH // pictures + 1, "max_steps": steps},
        "output": {"dir": str(job.parent / "runs")}}))
    spent = processor_seconds()
    done = subprocess.run([program, "train", str(job), "--json"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    report = json.loads(done.stdout)
    return {"pictures_per_s": report["au"] / STEP_S * BATCH, "au": report["au"],
            "cpu_ms_per_picture":
                (processor_seconds() - spent) / (steps * BATCH) * 1000,
            "verdict": report["verdict"]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--pictures", type=int, default=512)
    arguments.add_argument("--steps", type=int, default=500)
    given = arguments.parse_args()
    floats = {"dtype": "float32", "mean": MEAN, "std": STD}
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "pictures"
        folder.mkdir()
        size = write_pictures(folder, given.pictures)

        def ours(of_field, loader):
            return after(given.program, folder, of_field, loader, given.steps,
                         given.pictures)

        ways = {
            "before: DataLoader, no workers":
                lambda: before(folder, 0, given.steps // 4),
            "before: DataLoader, 2 workers":
                lambda: before(folder, 2, given.steps // 4),
            "after: nothing kept": lambda: ours(floats, {"cache": "none"}),
            "after: nothing kept, uint8": lambda: ours({"dtype": "uint8"},
                                                       {"cache": "none"}),
            "after: decoded pixels kept, uint8": lambda: ours(
                {"dtype": "uint8",
                 "store": {"form": "decoded", "max_side": 400}},
                {"cache": "ram"})}
        for way, call in ways.items():
            results.append({"way": way, **call()})
    print_result("peers_images_au", __doc__, "bench/run peers_images_au",
                 {"machine": torch_machine(),
                  "torchvision": torchvision.__version__,
                  "bytes_per_picture": size, "batch_size": BATCH,
                  "step_s": STEP_S, "needed_pictures_per_s": BATCH / STEP_S,
                  "results": results})


if __name__ == "__main__":
    main()
