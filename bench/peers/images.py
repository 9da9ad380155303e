#!/usr/bin/env python3
"""How many pictures a second does a core turn into batches, beside torchvision?

Photo-like JPEG files of 500 x 375 pixels (noise whose spectrum falls as that of
photos does, quality 90) in class folders, to batches of 64 of float32
[3, 224, 224], by torchvision's ImageFolder with a DataLoader without workers, over
PIL and over tensors, by DALI on the CPU, TurboLoader and FFCV, where they are
installed, and by penstock.ImageFolder without workers, exactly and with "parity":
"fast": training (RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize)
and validation (Resize 256, CenterCrop 224, ToTensor, Normalize), whose tensors
must be torchvision's to the last bit. All in one process on one thread, in turns, of which
processor time counts; the files are in the page cache.

Run it in the environment of setup.sh with torchvision and Pillow; bench/run does.
"""
import argparse
import pathlib
import statistics
import tarfile
import tempfile
import time

import numpy
import PIL
import torch
import torchvision
from torchvision import transforms

import penstock
from penstock import images
from peer_result import print_result, spread, torch_machine
from photos import write_pictures

BATCH = 64
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MUST = {"training": {"torchvision": 3.0, "torchvision_tensors": 2.0,
                     "dali_cpu": 1.3, "turboloader": 2.0, "ffcv": 1.7},
        "validation": {"torchvision": 2.5}}


def recipes():
    end = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return {"training": transforms.Compose(
                [transforms.RandomResizedCrop(224),
                 transforms.RandomHorizontalFlip(), *end]),
            "validation": transforms.Compose(
                [transforms.Resize(256), transforms.CenterCrop(224), *end])}


def rows_of(loader):
    rows = 0
    for batch in loader:
        images = batch[0] if isinstance(batch, list) else batch.torch()["image"]
        rows += len(images)
    return rows


def rate(run, count):
    start = time.process_time()
    assert run() == count
    return count / (time.process_time() - start)


def ours(folder, transform, **more):
    image = {**images.image_settings(transform), **more}
    loader = penstock.ImageFolder(folder, image=image, batch_size=BATCH,
                                  num_workers=0, device="cpu", cache="none")
    return lambda: rows_of(loader)


def torchvision_pil(folder, name):
    loader = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, recipes()[name]), BATCH)
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


def ffcv(folder, name):
    import ffcv.loader
    import ffcv.writer
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.rgb_image import (CenterCropRGBImageDecoder,
                                       RandomResizedCropRGBImageDecoder)
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, ToTensor,
                                 ToTorchImage)

    file = folder + ".beton"
    ffcv.writer.DatasetWriter(
        file, {"image": RGBImageField(write_mode="jpg", jpeg_quality=90),
               "label": IntField()}, num_workers=1).from_indexed_dataset(
                   torchvision.datasets.ImageFolder(folder))
    decoder = (RandomResizedCropRGBImageDecoder((224, 224))
               if name == "training"
               else CenterCropRGBImageDecoder((224, 224), 224 / 256))
    steps = [decoder, *([RandomHorizontalFlip()] if name == "training" else []),
             ToTensor(), ToTorchImage(),
             NormalizeImage(numpy.array(MEAN) * 255, numpy.array(STD) * 255,
                            numpy.float32)]
    loader = ffcv.loader.Loader(
        file, batch_size=BATCH, num_workers=1,
        order=ffcv.loader.OrderOption.SEQUENTIAL,
        pipelines={"image": steps, "label": None})
    return lambda: sum(len(batch[0]) for batch in loader)


PEERS = {"torchvision": torchvision_pil,
         "torchvision_tensors": torchvision_tensors, "dali_cpu": dali,
         "turboloader": turboloader, "ffcv": ffcv}


def ways_of(name, folder):
    """What is measured, and why others are not."""
    ways, left_out = {}, {}
    for peer, make in PEERS.items():
        try:
            ways[peer] = make(folder, name)
        except Exception as error:  # whatever a peer that is not there raises
            left_out[peer] = f"{type(error).__name__}: {error}"[:200]
    ways["penstock"] = ours(folder, recipes()[name])
    ways["penstock_fast"] = ours(folder, recipes()[name], parity="fast")
    return ways, left_out


def check_equal(folder):
    """Validation draws nothing: the tensors must be torchvision's."""
    transform = recipes()["validation"]
    theirs = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, transform), BATCH)
    loader = penstock.ImageFolder(folder, transform, BATCH, num_workers=0,
                                  device="cpu")
    for (pictures, labels), batch in zip(theirs, loader):
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


def compare(name, folder, count, repeats):
    if name == "validation":
        check_equal(folder)
    ways, left_out = ways_of(name, folder)
    found = {way: [] for way in ways}
    for turn in range(repeats + 1):
        for way, run in list(ways.items()):
            try:
                value = rate(run, count)
            except Exception as error:
                left_out[way] = f"{type(error).__name__}: {error}"[:200]
                del ways[way], found[way]
                continue
            if turn > 0:
                found[way].append(value)
    medians = {way: statistics.median(values) for way, values in found.items()}
    return {"recipe": name, "equal": name == "validation" or None,
            "error_of_fast": error_of_fast(folder, name),
            "pictures_per_cpu_second": {
                way: spread(values) for way, values in found.items()},
            "left_out": left_out,
            "times_as_many": {way: medians["penstock"] / median
                              for way, median in medians.items()
                              if not way.startswith("penstock")},
            "fast_times_exact": medians["penstock_fast"] / medians["penstock"],
            "must_reach": MUST[name]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "pictures"
        folder.mkdir()
        size = write_pictures(folder, options.pictures)
        results = [compare(recipe, str(folder), options.pictures,
                           options.repeats) for recipe in recipes()]
    print_result(
        "peers_images", __doc__,
        f"bench/run peers_images --pictures {options.pictures} "
        f"--repeats {options.repeats}",
        {"machine": torch_machine(), "torchvision": torchvision.__version__,
         "pillow": PIL.__version__, "bytes_per_picture": size,
         "batch_size": BATCH, "results": results})


if __name__ == "__main__":
    main()
