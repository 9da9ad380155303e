#!/usr/bin/env python3
"""Draws shapes, a folder for each class: bright circles, crosses, squares and
triangles of any colour, size and place on dark ground, as PNG files.

    python3 make_shapes.py [FOLDER [PICTURES_OF_EACH]]
"""
import pathlib
import random
import struct
import sys
import zlib

SIDE = 64
# Half the width of a shape at a height, both in the shape's half height.
SHAPES = {
    "circle": lambda y: (1 - y * y) ** 0.5,
    "cross": lambda y: 1 if abs(y) < 0.3 else 0.3,
    "square": lambda y: 0.85,
    "triangle": lambda y: (y + 1) / 2,
}


def colour(draw, low, high):
    return bytes(draw.randint(low, high) for _ in range(3))


def picture(draw, half_width):
    """The lines of a picture, each with PNG's filter type 0 before it."""
    back, front = colour(draw, 0, 100), colour(draw, 150, 255)
    half = draw.uniform(12, 24)
    x0, y0 = (draw.uniform(half, SIDE - half) for _ in range(2))
    lines = []
    for at in range(SIDE):
        y = (at + 0.5 - y0) / half
        width = half * half_width(y) if abs(y) < 1 else 0
        left, right = round(x0 - width), round(x0 + width)
        lines.append(b"\0" + back * left + front * (right - left)
                     + back * (SIDE - right))
    return b"".join(lines)


def png(lines):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "shapes")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    draw = random.Random(1)
    for name, half_width in SHAPES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / name / f"{number:04}.png").write_bytes(
                png(picture(draw, half_width)))
    print(f"{count} pictures of each of {len(SHAPES)} shapes in {folder}")


if __name__ == "__main__":
    main()
