#!/usr/bin/env python3
"""Draws shapes, a folder for each class: circles, crosses, squares and triangles
of any colour and place before noise, as PNG files.

    python3 make_shapes.py [FOLDER [PICTURES_OF_EACH]]
"""
import pathlib
import random
import struct
import sys
import zlib

SIDE = 64
SHAPES = {
    "circle": lambda x, y: x * x + y * y < 1,
    "cross": lambda x, y: (abs(x) < 0.3 or abs(y) < 0.3)
    and abs(x) < 1 and abs(y) < 1,
    "square": lambda x, y: abs(x) < 0.8 and abs(y) < 0.8,
    "triangle": lambda x, y: -0.9 < y < 0.9 and abs(x) < (y + 0.9) / 1.8,
}


def colour(draw):
    return [draw.randint(0, 255) for _ in range(3)]


def picture(draw, inside):
    back, front = colour(draw), colour(draw)
    while sum(abs(a - b) for a, b in zip(back, front)) < 200:
        front = colour(draw)
    size = draw.uniform(10, 20)
    x0, y0 = (draw.uniform(size, SIDE - size) for _ in range(2))
    lines = []
    for y in range(SIDE):
        line = bytearray([0])  # no filter
        for x in range(SIDE):
            of = front if inside((x - x0) / size, (y - y0) / size) else back
            noise = draw.getrandbits(5) - 16
            line += bytes(min(255, max(0, c + noise)) for c in of)
        lines.append(bytes(line))
    return b"".join(lines)


def png(lines):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b""))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "shapes")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    draw = random.Random(1)
    for name, inside in SHAPES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / name / f"{number:04}.png").write_bytes(
                png(picture(draw, inside)))
    print(f"{count} pictures of each of {len(SHAPES)} shapes in {folder}")


if __name__ == "__main__":
    main()
