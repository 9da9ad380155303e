#!/usr/bin/env python3
"""Makes boxes.json: what torchvision.transforms.v2.functional makes of bounding
boxes in two, three and four steps, for the parameters that stand beside them.

Needs torchvision 0.26.0.
"""
import json
import pathlib
import random

import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional

FOLDER = pathlib.Path(__file__).resolve().parent
DRAWN = random.Random(17)
CASES = 48


def uniform(low, high):
    return float(torch.tensor(DRAWN.uniform(low, high)))


def boxes_of(width, height):
    """The whole picture, and small ones, that stay within it more often."""
    found = [[0.0, 0.0, float(width), float(height)]]
    for _ in range(3):
        left, top = uniform(0, width - 4), uniform(0, height - 4)
        found.append([left, top,
                      left + uniform(2, min(width - left, width / 3)),
                      top + uniform(2, min(height - top, height / 3))])
    return found


def change():
    """A change as NAME_augment shows it, and its numbers."""
    kind = DRAWN.choice((1, 1, 2, 2, 2, 15))
    if kind == 1:
        return [1, DRAWN.choice((uniform(-180, 180), uniform(-40, 40), 90.0, 180.0))]
    if kind == 2:
        return [2, uniform(-60, 60), DRAWN.randint(-9, 9), DRAWN.randint(-9, 9),
                uniform(0.6, 1.5), uniform(-20, 20), uniform(-20, 20)]
    return [15]


def changed(boxes, numbers):
    if numbers[0] == 1:
        return functional.rotate(boxes, numbers[1])
    if numbers[0] == 2:
        _, angle, right, down, scale, x, y = numbers
        return functional.affine(boxes, angle, [right, down], scale, [x, y])
    return functional.vertical_flip(boxes)


def case():
    width, height = DRAWN.randint(20, 90), DRAWN.randint(20, 90)
    size = [DRAWN.randint(16, 64), DRAWN.randint(16, 64)]
    made = {"width": width, "height": height, "size": size,
            "flipped": int(DRAWN.random() < 0.5),
            "changes": [change() for _ in range(DRAWN.choice((1, 1, 2, 2, 3)))],
            "before": boxes_of(width, height)}
    boxes = tv_tensors.BoundingBoxes(
        made["before"], format="XYXY", canvas_size=(height, width),
        dtype=torch.float32)
    if DRAWN.random() < 0.75:
        high, wide = DRAWN.randint(8, height), DRAWN.randint(8, width)
        top, left = DRAWN.randint(0, height - high), DRAWN.randint(0, width - wide)
        made["crop"] = [top, left, high, wide]
        boxes = functional.resized_crop(boxes, top, left, high, wide, size)
    else:
        made["resize"] = DRAWN.randint(max(size), 80)
        boxes = functional.center_crop(
            functional.resize(boxes, [made["resize"]]), size)
    if made["flipped"]:
        boxes = functional.horizontal_flip(boxes)
    for numbers in made["changes"]:
        boxes = changed(boxes, numbers)
    return {**made, "boxes": functional.clamp_bounding_boxes(boxes).tolist()}


if __name__ == "__main__":
    cases = [json.dumps(case()) for _ in range(CASES)]
    (FOLDER / "boxes.json").write_text(
        f'{{"torchvision": "{torchvision.__version__}", "cases": [\n'
        + ",\n".join(cases) + "\n]}\n")
