#!/usr/bin/env python3
"""Makes changes.json: what torchvision.transforms.v2.functional makes of pictures
of Pillow, for the parameters that stand beside it, and of boxes, and the magnitudes of its
RandAugment and TrivialAugmentWide.

Needs torchvision 0.26.0 and Pillow 13.0.0. Pixels are drawn by a formula that the
test has, too.
"""
import hashlib
import json
import pathlib
import random

import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import RandAugment, TrivialAugmentWide
from torchvision.transforms.v2 import functional

FOLDER = pathlib.Path(__file__).resolve().parent
DRAWN = random.Random(23)
SIZES = [(37, 29), (32, 32), (61, 17), (3, 3), (2, 5), (224, 224)]
WAYS = ("nearest", "bilinear", "bicubic")


def drawn(width, height, mode):
    channels = 3 if mode == "RGB" else 1
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
    smooth = x * 5 + y * 3 + c * 60 + x * y * (c + 1) // 9
    rough = (x * 7919 + y * 104729 + c * 1299709) % 101
    pixels = ((smooth % 200) + rough // 2).astype(numpy.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])


def uniform(low, high):
    return float(numpy.float32(DRAWN.uniform(low, high)))


def parameters():
    """(change, numbers) many times over."""
    for _ in range(6):
        yield 1, [uniform(-180, 180)]
        yield 2, [uniform(-180, 180), DRAWN.randint(-9, 9), DRAWN.randint(-9, 9),
                  uniform(0.5, 2), uniform(-30, 30), uniform(-30, 30), 0]
        yield 2, [0, 0, 0, 1, uniform(-40, 40), 0, 1]
        for change in (3, 4, 5, 7):
            yield change, [uniform(0, 2.5)]
        yield 6, [uniform(-0.5, 0.5)]
        yield 8, [DRAWN.randint(1, 8)]
        yield 9, [uniform(0, 256)]
    for angle in (0, 90, 180, 270, -90):
        yield 1, [angle]
    for factor in (0, 1):
        for change in (3, 4, 5, 7):
            yield change, [factor]
    yield 2, [0, 5, -3, 1, 0, 0, 0]
    for change in (10, 11, 12, 15, 16):
        yield change, []


def changed(image, change, numbers, way, fill):
    moved = {"interpolation": InterpolationMode(way), "fill": fill}
    if change == 1:
        return functional.rotate(image, numbers[0], **moved)
    if change == 2:
        angle, right, down, scale, x, y, corner = numbers
        return functional.affine(
            image, angle, [int(right), int(down)], scale, [x, y],
            center=[0, 0] if corner else None, **moved)
    number = numbers[0] if numbers else None
    return {3: lambda: functional.adjust_brightness(image, number),
            4: lambda: functional.adjust_contrast(image, number),
            5: lambda: functional.adjust_saturation(image, number),
            6: lambda: functional.adjust_hue(image, number),
            7: lambda: functional.adjust_sharpness(image, number),
            8: lambda: functional.posterize(image, int(number)),
            9: lambda: functional.solarize(image, number),
            10: lambda: functional.autocontrast(image),
            11: lambda: functional.equalize(image),
            12: lambda: functional.invert(image),
            15: lambda: functional.vertical_flip(image),
            16: lambda: functional.rgb_to_grayscale(
                image, 3 if image.mode == "RGB" else 1)}[change]()


def changes():
    found = []
    for change, numbers in parameters():
        for way in WAYS if change in (1, 2) else ("nearest",):
            size, mode = DRAWN.choice(SIZES), DRAWN.choice(["RGB", "RGB", "L"])
            fill = [DRAWN.randint(0, 255) for _ in mode]
            if DRAWN.random() < 0.5:
                fill = [0] * len(mode)
            image = changed(drawn(*size, mode), change, numbers, way, fill)
            found.append({
                "change": change, "numbers": numbers, "interpolation": way,
                "fill": fill, "size": list(size), "mode": mode,
                "sha256": hashlib.sha256(image.tobytes()).hexdigest()})
    return found


def blurs():
    found = []
    for kernel, sigma in (([3, 3], 0.7), ([5, 7], 1.3), ([9, 9], 2.0),
                          ([23, 1], 4.0)):
        image = functional.gaussian_blur(drawn(37, 29, "RGB"), kernel,
                                         [sigma, sigma])
        found.append({"numbers": [*kernel, sigma, sigma],
                      "bytes": image.tobytes().hex()})
    return found


def magnitudes():
    found = []
    for kind, table in (("rand_augment", RandAugment._AUGMENTATION_SPACE),
                        ("trivial_augment_wide",
                         TrivialAugmentWide._AUGMENTATION_SPACE)):
        for bins in (31, 10):
            for width, height in ((224, 224), (61, 17)):
                found.append({
                    "kind": kind, "bins": bins, "size": [width, height],
                    "by_change": [
                        [] if (made := of[0](bins, height, width)) is None
                        else [float(one) for one in made]
                        for of in table.values()]})
    return found


def boxes():
    """Boxes of pictures of 40 x 30 pixels that are resized to 64 x 48, mirrored
    and moved."""
    found = []
    for change, numbers in ((1, [30.0]), (1, [-77.5]), (15, []),
                            (2, [20.0, 0, 0, 0.75, 10.0, -5.0, 0]),
                            (2, [-130.0, 0, 0, 1.5, 0.0, 20.0, 0])):
        box = tv_tensors.BoundingBoxes(
            [[4, 3, 18, 27], [0, 0, 40, 30], [30, 20, 39, 29]],
            format="XYXY", canvas_size=(30, 40), dtype=torch.float32)
        box = functional.horizontal_flip(functional.resize(box, [48, 64]))
        if change == 1:
            box = functional.rotate(box, numbers[0])
        elif change == 15:
            box = functional.vertical_flip(box)
        else:
            angle, _, _, scale, x, y, _ = numbers
            box = functional.affine(box, angle, [0, 0], scale, [x, y])
        found.append({"change": change, "numbers": numbers,
                      "boxes": box.tolist()})
    return found


if __name__ == "__main__":
    (FOLDER / "changes.json").write_text(json.dumps(
        {"pillow": PIL.__version__, "torchvision": torchvision.__version__,
         "changes": changes(), "blurs": blurs(), "boxes": boxes(),
         "magnitudes": magnitudes()})
        + "\n")
