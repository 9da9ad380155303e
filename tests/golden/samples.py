"""What golden tests of the Python package read and map with. The text of
Numbers, Shifted, flipped and centred is part of saved states: to change a
letter of them is to change what is expected."""
import random
import struct
import zlib

import numpy


class Numbers:
    """A source of 100 rows, made when they are read."""
    size = 100
    version = 3

    def read(self, ids):
        return {"n": ids, "halves": (ids[:, None] / 2).repeat(3, axis=1)}


class Shifted:
    """A function with a state of its own."""

    def __init__(self, by):
        self.by = by

    def __call__(self, row):
        return {"n": row["n"] + self.by, "halves": row["halves"]}


def flipped(row, rng):
    sign = 1 if rng.random() < 0.5 else -1
    return {"n": row["n"], "halves": sign * row["halves"] + rng.random()}


def centred(rows, rng):
    drawn = rng.integers(0, 1000, len(rows["n"]))
    return {"n": rows["n"] + drawn, "halves": rows["halves"] - 1}


class Drawn:
    """A map-style data set whose items draw from the global generators."""

    def __init__(self, length, bad=()):
        self.length, self.bad = length, bad

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if i in self.bad:
            raise ValueError(i)
        return i, random.random(), numpy.random.random()


class Ids(Drawn):
    def __getitem__(self, i):
        return super().__getitem__(i)[0]


class Stream:
    """An iterable data set."""

    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return iter(range(self.length))


class Share:
    """A sampler of one rank, another one in each epoch."""

    def __init__(self, length, rank, world):
        self.ids = list(range(rank, length, world))
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        at = self.epoch % len(self.ids)
        return iter(self.ids[at:] + self.ids[:at])


def picture(number):
    """A PNG file of noise, of a size of its own."""
    high, wide = 30 + number % 7, 28 + number % 5
    draw = random.Random(number)
    lines = b"".join(b"\0" + draw.randbytes(3 * wide) for _ in range(high))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
