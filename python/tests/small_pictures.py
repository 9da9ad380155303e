"""Small pictures of many kinds, drawn where Pillow is."""

import io
import struct
import zlib

import numpy


def png_of_16_bits(width, height, numbers):
    """A file of RGB, of which Pillow writes none."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + row.astype(">u2").tobytes()
                    for row in numbers.reshape(height, width, 3))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 16, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw_kinds(folder):
    """Pictures of all sides from 1 to 33 in all ways that Pillow writes JPEG, and of
    kinds that it does not write: 4:4:0, YCCK, PNG of 16 bits in colour."""
    from PIL import Image

    drawn = numpy.random.default_rng(17)

    def pixels(width, height, channels=3):
        return drawn.integers(0, 256, (height, width, channels), "uint8")

    def jpeg(picture, **how):
        file = io.BytesIO()
        picture.save(file, "JPEG", **how)
        return file.getvalue()

    for side in range(1, 34):
        for width, height in ((side, 34 - side), (side, side)):
            for way in range(3):
                (folder / f"{width}_{height}_{way}.jpg").write_bytes(jpeg(
                    Image.fromarray(pixels(width, height)), subsampling=way,
                    progressive=(side + way) % 2 == 0))
    # As many blocks, in another order: of 4:2:2 luma is 2 x 1, of 4:4:0 1 x 2.
    flat = jpeg(Image.fromarray(pixels(32, 32)), subsampling=1)
    assert flat.count(b"\x01\x21\0") == 1
    (folder / "440.jpg").write_bytes(flat.replace(b"\x01\x21\0", b"\x01\x12\0"))
    inks = jpeg(Image.fromarray(pixels(19, 21, 4), "CMYK"))
    adobe = inks.index(b"Adobe") + 11
    assert inks[adobe] == 0
    (folder / "ycck.jpg").write_bytes(inks[:adobe] + b"\2" + inks[adobe + 1:])
    (folder / "rgb_16.png").write_bytes(png_of_16_bits(
        9, 7, drawn.integers(0, 65536, 9 * 7 * 3, "uint16")))
