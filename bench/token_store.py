"""Stores of tokens in Megatron's layout, made up for benchmarks."""
import struct

import numpy

VOCABULARY = 50257
PIECE = 1 << 20  # documents whose ids are drawn at once


def write(folder, lengths, random):
    """Documents of these lengths, of ids drawn from `random`, below
    `folder`: tokens.bin, whose path this returns, and tokens.idx."""
    lengths = numpy.asarray(lengths, numpy.int32)
    with open(folder / "tokens.bin", "wb") as tokens:
        for first in range(0, len(lengths), PIECE):
            count = int(lengths[first:first + PIECE].sum())
            random.integers(0, VOCABULARY, count, numpy.uint16).tofile(tokens)
    starts = numpy.concatenate([[0], numpy.cumsum(
        lengths, dtype=numpy.int64)[:-1]]) * 2
    with open(folder / "tokens.idx", "wb") as index:
        index.write(b"MMIDIDX\0\0" + struct.pack(
            "<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        index.write(lengths.tobytes() + starts.tobytes())
        index.write(numpy.arange(len(lengths) + 1,
                                 dtype=numpy.int64).tobytes())
    return folder / "tokens.bin"
