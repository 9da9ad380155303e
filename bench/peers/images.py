#!/usr/bin/env python3
"""How many pictures a second does a core turn into batches, beside torchvision?

Photo-like JPEG files of 500 x 375 pixels (noise whose spectrum falls as that of
photos does, quality 90) in class folders, to batches of 64 of float32
[3, 224, 224], by torchvision's ImageFolder with a DataLoader without workers, over
PIL and over tensors, by DALI on the CPU, TurboLoader and FFCV, where they are
installed, and by penstock.ImageFolder without workers, exactly and with "parity":
"fast": training (RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize)
and validation (Resize 256, CenterCrop 224, ToTensor, Normalize), whose tensors
must be torchvision's to the last bit. Then training from pixels that were decoded
and shrunk to 341 x 256 before: uint8, and float32 normalised, beside FFCV's "raw".
All in one process on one thread, in turns, of which processor time counts; the files
are in the page cache. Pillow-SIMD takes Pillow's place: --pillow-simd names a Python
that has it, which runs the same beside us. The floor is what bench_images (--floor)
finds for these files in memory: their crops decoded, exactly, and nothing else.

Run it in the environment of setup.sh with torchvision and Pillow; bench/run does.
FFCV is built by pip with libopencv-dev and libturbojpeg0-dev.
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import tarfile
import tempfile

import numpy
import PIL
import torch
import torchvision

import penstock
from penstock import images
from image_recipes import (BATCH, MEAN, STD, rate, recipes, rows_of,
                           torchvision_pil)
from peer_result import print_result, spread, torch_machine
from photos import write_pictures

SHRUNK = 341  # the longer side, of 500: then the shorter one is 256
MUST = {"training": {"torchvision": 3.0, "torchvision_tensors": 2.0,
                     "pillow_simd": 2.0, "dali_cpu": 1.3, "turboloader": 2.0,
                     "ffcv": 1.7, "fast_of_the_floor": 0.85},
        "validation": {"torchvision": 2.5},
        "kept, uint8": {"ffcv_raw": 2.0, "pictures_per_cpu_second": 8000},
        "kept, float32": {"pictures_per_cpu_second": 4000}}


def ours(folder, transform, cache="none", **more):
    loader = penstock.ImageFolder(folder, transform, BATCH, image=more,
                                  num_workers=0, device="cpu", cache=cache)
    return lambda: rows_of(loader)


def torchvision_tensors(folder, name):
    """Decoded to tensors, and changed as uint8 tensors for as long as it goes."""
    from torchvision.transforms import v2

    start = {"training": [v2.RandomResizedCrop(224, antialias=True),
                          v2.RandomHorizontalFlip()],
             "validation": [v2.Resize(256, antialias=True),
                            v2.CenterCrop(224)]}[name]
    transform = v2.Compose([*start, v2.ToDtype(torch.float32, scale=True),
                            v2.Normalize(MEAN, STD)])

    def decoded(path):
        return torchvision.io.decode_jpeg(torchvision.io.read_file(path))

    loader = torch.utils.data.DataLoader(torchvision.datasets.ImageFolder(
        folder, transform, loader=decoded), BATCH)
    return lambda: rows_of(loader)


def dali(folder, name):
    from nvidia import dali as library
    from nvidia.dali import fn, types

    # Nothing ahead: what it prepares in another one's turn would count there.
    @library.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None,
                          exec_async=False, exec_pipelined=False,
                          exec_dynamic=False, prefetch_queue_depth=1)
    def pipeline():
        files, _ = fn.readers.file(file_root=folder, name="files")
        mirror = 0
        if name == "training":
            found = fn.decoders.image_random_crop(
                files, device="cpu", random_area=[0.08, 1.0],
                random_aspect_ratio=[3 / 4, 4 / 3])
            found = fn.resize(found, resize_x=224, resize_y=224)
            mirror = fn.random.coin_flip()
        else:
            found = fn.resize(fn.decoders.image(files, device="cpu"),
                              resize_shorter=256)
        return fn.crop_mirror_normalize(
            found, mirror=mirror, dtype=types.FLOAT, output_layout="CHW",
            crop=(224, 224), mean=[255 * one for one in MEAN],
            std=[255 * one for one in STD])

    made = pipeline()
    made.build()
    count = made.reader_meta("files")["epoch_size"]

    def run():
        rows = 0
        while rows < count:
            batch, = made.run()
            rows += min(BATCH, count - rows)
            assert batch.at(0).shape == (3, 224, 224)
        return rows
    return run


def turboloader(folder, name):
    """From a tar file; it has no CenterCrop on its fast path."""
    import turboloader as library

    if name != "training":
        raise NotImplementedError("Resize, then CenterCrop")
    with tarfile.open(folder + ".tar", "w") as tar:
        tar.add(folder, arcname=".")

    def run():
        loader = library.DataLoader(
            folder + ".tar", batch_size=BATCH, num_workers=1, image_size=224,
            transform=library.ImageNetNormalize(), output_format="pytorch",
            antialias=True, train_aug=True)
        return sum(len(batch[0]) for batch in loader)
    return run


def ffcv(folder, name, raw=False, dtype=numpy.float32):
    import ffcv.loader
    import ffcv.writer
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder
    from ffcv.fields.rgb_image import (CenterCropRGBImageDecoder,
                                       RandomResizedCropRGBImageDecoder)
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, ToTensor,
                                 ToTorchImage)

    file = folder + ".beton"
    field = (RGBImageField(write_mode="raw", max_resolution=SHRUNK) if raw
             else RGBImageField(write_mode="jpg", jpeg_quality=90))
    ffcv.writer.DatasetWriter(
        file, {"image": field, "label": IntField()}, num_workers=1
    ).from_indexed_dataset(torchvision.datasets.ImageFolder(folder))
    steps = ([CenterCropRGBImageDecoder((224, 224), 224 / 256)]
             if name == "validation"
             else [RandomResizedCropRGBImageDecoder((224, 224)),
                   RandomHorizontalFlip()])
    if dtype is numpy.float32:
        steps.append(NormalizeImage(numpy.array(MEAN) * 255,
                                    numpy.array(STD) * 255, dtype))
    loader = ffcv.loader.Loader(
        file, batch_size=BATCH, num_workers=1,
        order=ffcv.loader.OrderOption.SEQUENTIAL,
        pipelines={"image": [*steps, ToTensor(), ToTorchImage()],
                   "label": [IntDecoder(), ToTensor()]})
    return lambda: rows_of(loader)


class PillowSimd:
    """torchvision over Pillow-SIMD, in a process of its own."""

    def __init__(self, python, folder):
        self._child = subprocess.Popen(
            [python, pathlib.Path(__file__).with_name("image_recipes.py"), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self._child.stdout.readline().strip()
        if "post" not in self.version:
            raise ImportError(f"Pillow {self.version} is no Pillow-SIMD")

    def rate(self, name):
        self._child.stdin.write(name + "\n")
        self._child.stdin.flush()
        return float(self._child.stdout.readline())

    def close(self):
        self._child.stdin.close()
        self._child.wait()


PEERS = {"torchvision": torchvision_pil,
         "torchvision_tensors": torchvision_tensors, "dali_cpu": dali,
         "turboloader": turboloader, "ffcv": ffcv}


def floor(program, folder, count):
    """Pictures per second of a core whose crops are decoded and nothing else."""
    out = subprocess.run([program, str(count), "1", folder], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)["pictures_per_cpu_second"]["parts_decoded_alone"][
        "median"]


def ways_of(name, folder, count, simd, program):
    """What is measured, each by its pictures per second, and why others are not."""
    if name.startswith("kept"):
        dtype = numpy.uint8 if name.endswith("uint8") else numpy.float32
        image = {"store": {"form": "decoded", "max_side": SHRUNK}}
        if dtype is numpy.uint8:
            image |= {"size": 224, "dtype": "uint8",
                      "train": "random_resized_crop", "flip": 0.5}
        runs = {"penstock": ours(
            folder, None if dtype is numpy.uint8 else recipes()["training"],
            cache="ram", **image)}
        peers = {"ffcv_raw": lambda *_: ffcv(folder, name, True, dtype)}
    else:
        runs = {"penstock": ours(folder, recipes()[name]),
                "penstock_fast": ours(folder, recipes()[name], parity="fast")}
        peers = PEERS
    left_out = {}
    for peer, make in peers.items():
        try:
            runs[peer] = make(folder, name)
        except Exception as error:  # whatever a peer that is not there raises
            left_out[peer] = f"{type(error).__name__}: {error}"[:200]
    epochs = 4 if name.startswith("kept") else 1  # short ones
    ways = {way: lambda run=run: rate(
        lambda: sum(run() for _ in range(epochs)), epochs * count)
        for way, run in runs.items()}
    if simd is not None and not name.startswith("kept"):
        ways["pillow_simd"] = lambda: simd.rate(name)
    if program is not None and name == "training":
        ways["floor"] = lambda: floor(program, folder, count)
    return ways, left_out


def check_equal(folder):
    """Validation draws nothing: the tensors must be torchvision's."""
    transform = recipes()["validation"]
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, transform), BATCH)
    loader = penstock.ImageFolder(folder, transform, BATCH, num_workers=0,
                                  device="cpu")
    for (pictures, labels), batch in zip(theirs, loader, strict=True):
        assert torch.equal(pictures, batch.torch()["image"])
        assert torch.equal(labels, batch.torch()["label"])


def error_of_fast(folder, name):
    """How far bytes are from the exact ones, for the same draws."""
    made = {**images.image_settings(recipes()[name])}
    for key in ("mean", "std"):
        made.pop(key)
    made["dtype"] = "uint8"
    pair = [next(iter(penstock.ImageFolder(
        folder, image={**made, "parity": parity}, batch_size=BATCH,
        num_workers=0, device="cpu"))).numpy()["image"].astype(int)
        for parity in ("exact", "fast")]
    off = numpy.abs(pair[0] - pair[1])
    return {"mean": float(off.mean()), "most": int(off.max()),
            "equal_bytes": float((off == 0).mean()),
            "psnr_db": float(10 * numpy.log10(255**2 / (off**2).mean()))}


def compare(name, folder, count, repeats, simd, program):
    if name == "validation":
        check_equal(folder)
    ways, left_out = ways_of(name, folder, count, simd, program)
    found = {way: [] for way in ways}
    for turn in range(repeats + 1):
        for way, measure in list(ways.items()):
            try:
                value = measure()
            except Exception as error:
                left_out[way] = f"{type(error).__name__}: {error}"[:200]
                del ways[way], found[way]
                continue
            if turn > 0:
                found[way].append(value)
    medians = {way: statistics.median(values) for way, values in found.items()}
    result = {"recipe": name, "equal": name == "validation" or None,
              "pictures_per_cpu_second": {
                  way: spread(values) for way, values in found.items()},
              "left_out": left_out,
              "times_as_many": {way: medians["penstock"] / median
                                for way, median in medians.items()
                                if not way.startswith(("penstock", "floor"))},
              "must_reach": MUST[name]}
    if "penstock_fast" in medians:
        result |= {"error_of_fast": error_of_fast(folder, name),
                   "fast_times_exact":
                       medians["penstock_fast"] / medians["penstock"]}
    if "floor" in medians:
        result["fast_of_the_floor"] = medians["penstock_fast"] / medians["floor"]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pillow-simd", metavar="PYTHON")
    parser.add_argument("--floor", metavar="PROGRAM", help="bench_images")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory())) / "pictures"
        folder.mkdir()
        size = write_pictures(folder, options.pictures)
        simd = None
        if options.pillow_simd:
            simd = PillowSimd(options.pillow_simd, str(folder))
            stack.callback(simd.close)
        results = [compare(recipe, str(folder), options.pictures,
                           options.repeats, simd, options.floor)
                   for recipe in MUST]
    print_result(
        "peers_images", __doc__,
        f"bench/run peers_images --pictures {options.pictures} "
        f"--repeats {options.repeats}"
        + (" --pillow-simd PYTHON" if simd else ""),
        {"machine": torch_machine(), "torchvision": torchvision.__version__,
         "pillow": PIL.__version__,
         "pillow_simd": simd.version if simd else "not asked for",
         "bytes_per_picture": size,
         "batch_size": BATCH, "results": results})


if __name__ == "__main__":
    main()
