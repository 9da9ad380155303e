#!/usr/bin/env python3
"""Draws a small data set of pictures: shapes, a folder for each class.

    pip install numpy Pillow
    python make_shapes.py shapes            # 4 classes of 500 pictures
    penstock peek images:shapes --sheet sheet.html
"""
import argparse
import math
import pathlib

import numpy
from PIL import Image, ImageDraw

CLASSES = ("circle", "square", "star", "triangle")
SIZE = (200, 160)


def shape(kind: str, draw: numpy.random.Generator) -> Image.Image:
    dark, light = draw.integers(0, 120, 3), draw.integers(120, 256, 3)
    picture = Image.new("RGB", SIZE, tuple(map(int, dark)))
    pen = ImageDraw.Draw(picture)
    fill = tuple(map(int, light))
    x, y = int(draw.integers(60, 140)), int(draw.integers(50, 110))
    size = int(draw.integers(25, 48))
    if kind == "circle":
        pen.ellipse([x - size, y - size, x + size, y + size], fill=fill)
    elif kind == "square":
        pen.rectangle([x - size, y - size, x + size, y + size], fill=fill)
    else:
        corners, inner = (10, 0.4) if kind == "star" else (3, 1.0)
        points = []
        for at in range(corners):
            far = size * (inner if kind == "star" and at % 2 else 1.0)
            turn = 2 * math.pi * at / corners
            points.append((x + far * math.sin(turn), y - far * math.cos(turn)))
        pen.polygon(points, fill=fill)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pictures", type=int, default=500,
                        help="of each class")
    options = parser.parse_args()
    draw = numpy.random.default_rng(4)
    for kind in CLASSES:
        (options.folder / kind).mkdir(parents=True, exist_ok=True)
        for at in range(options.pictures):
            shape(kind, draw).save(options.folder / kind / f"{at:05}.jpg",
                                   quality=90)


if __name__ == "__main__":
    main()
