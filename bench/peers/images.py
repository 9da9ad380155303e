#!/usr/bin/env python3
"""How many pictures a second does a core turn into batches, beside torchvision?

Photo-like JPEG files of 500 x 375 pixels (noise whose spectrum falls as that of
photos does, quality 90) in class folders, to batches of 64 of float32
[3, 224, 224], (a) by torchvision's ImageFolder over PIL with a DataLoader
without workers, and (b) by penstock.ImageFolder with the same transforms, without
workers: training (RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize)
and validation (Resize 256, CenterCrop 224, ToTensor, Normalize), whose tensors
must be equal to the last bit. All in one process on one thread, in turns, of which
processor time counts; the files are in the page cache.

Run it in the environment of setup.sh with torchvision and Pillow; bench/run does.
"""
import argparse
import io
import json
import pathlib
import statistics
import tempfile
import time

import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision import transforms

import penstock

WIDTH, HEIGHT, BATCH = 500, 375, 64
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MUST = {"training": 3.0, "validation": 2.5}


def photo(draw):
    frequency = numpy.hypot(numpy.fft.fftfreq(HEIGHT)[:, None],
                            numpy.fft.rfftfreq(WIDTH)[None])
    frequency[0, 0] = 1 / WIDTH

    def noise(power):
        shape = frequency.shape
        waves = draw.normal(size=shape) + 1j * draw.normal(size=shape)
        found = numpy.fft.irfft2(waves / frequency**power, (HEIGHT, WIDTH))
        return found / found.std()

    light = noise(1.1)
    pixels = numpy.stack([light + 0.5 * noise(1.3) for _ in range(3)], -1)
    pixels = pixels / pixels.std() * 55 + 120
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def write_pictures(folder, count):
    draw = numpy.random.default_rng(1)
    total = 0
    for at in range(count):
        of_class = folder / f"class{at % 4}"
        of_class.mkdir(exist_ok=True)
        file = io.BytesIO()
        photo(draw).save(file, "JPEG", quality=90)
        total += len(file.getvalue())
        (of_class / f"{at:05}.jpg").write_bytes(file.getvalue())
    return total / count


def recipes():
    end = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return {"training": transforms.Compose(
                [transforms.RandomResizedCrop(224),
                 transforms.RandomHorizontalFlip(), *end]),
            "validation": transforms.Compose(
                [transforms.Resize(256), transforms.CenterCrop(224), *end])}


def rate(loader, count):
    start, rows = time.process_time(), 0
    for batch in loader:
        images = batch[0] if isinstance(batch, list) else batch.torch()["image"]
        rows += len(images)
    assert rows == count
    return rows / (time.process_time() - start)


def spread(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "repeats": len(values)}


def compare(name, transform, folder, count, repeats):
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, transform), BATCH)
    ours = penstock.ImageFolder(folder, transform, BATCH, num_workers=0,
                                device="cpu")
    if name == "validation":
        for (images, labels), batch in zip(theirs, ours):
            assert torch.equal(images, batch.torch()["image"])
            assert torch.equal(labels, batch.torch()["label"])
    found = {"torchvision": [], "penstock": []}
    for turn in range(repeats + 1):
        for way, loader in (("torchvision", theirs), ("penstock", ours)):
            value = rate(loader, count)
            if turn > 0:
                found[way].append(value)
    result = {"recipe": name, "equal": name == "validation" or None,
              "pictures_per_cpu_second": {
                  way: spread(values) for way, values in found.items()}}
    result["ratio"] = (statistics.median(found["penstock"])
                       / statistics.median(found["torchvision"]))
    result["must_reach"] = f">= {MUST[name]}"
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    from positions import circumstances
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        size = write_pictures(folder, options.pictures)
        results = [compare(recipe, transform, str(folder), options.pictures,
                           options.repeats)
                   for recipe, transform in recipes().items()]
    print(json.dumps({
        "bench": "peers_images",
        "question": "How many pictures a second does a core turn into batches, "
                    "beside torchvision on PIL?",
        "command": f"bench/run peers_images --pictures {options.pictures} "
                   f"--repeats {options.repeats}",
        **circumstances(), "torchvision": torchvision.__version__,
        "pillow": PIL.__version__, "bytes_per_picture": size,
        "batch_size": BATCH, "results": results}, indent=1))


if __name__ == "__main__":
    main()
