"""Draws the small pictures of this folder, and writes what Pillow makes of them.

    pip install numpy Pillow && python make.py

golden.json holds, by file: its size as it is looked at, the SHA-256 of the bytes of
convert("RGB") and convert("L") after ImageOps.exif_transpose(), and of parts that
are cropped and resized: [left, top, width, height, new width, new height, filter].
"""

import hashlib
import io
import json
import pathlib
import random

import numpy
import PIL
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent
DRAWN = random.Random(17)
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def drawn(width: int, height: int, channels: int) -> numpy.ndarray:
    noise = numpy.random.default_rng(DRAWN.randrange(1 << 30))
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [
        127 + 100 * numpy.sin(x / (3 + 2 * c) + y / (5 + c)) + noise.normal(0, 15, x.shape)
        for c in range(channels)
    ]
    pixels = numpy.stack(waves, -1).clip(0, 255).astype(numpy.uint8)
    return pixels[:, :, 0] if channels == 1 else pixels


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = drawn(width, height, channels)
    if mode == "CMYK":
        return Image.frombytes(mode, (width, height), pixels.tobytes())
    return Image.fromarray(pixels)


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def save(name: str, image: Image.Image, **options: object) -> None:
    image.save(FOLDER / name, **options)


def draw_all() -> None:
    for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
        for progressive in (False, True):
            name = f"{subsampling.replace(':', '')}_{'p' if progressive else 'b'}.jpg"
            size = (DRAWN.randint(17, 33), DRAWN.randint(17, 33))
            save(name, picture(*size), quality=88, subsampling=subsampling,
                 progressive=progressive)
    for width, height in ((1, 1), (1, 33), (33, 1), (7, 5), (16, 16), (31, 32)):
        save(f"odd_{width}x{height}.jpg", picture(width, height), quality=90)
    save("restarts.jpg", picture(50, 40), quality=90, restart_marker_blocks=2)
    save("grey.jpg", picture(21, 19, "L"), quality=90)
    save("cmyk.jpg", picture(23, 17, "CMYK"), quality=90)
    for orientation in range(1, 9):
        save(f"exif_{orientation}.jpg", picture(24, 15), quality=90,
             exif=turned(orientation))
    for mode in ("L", "LA", "RGB", "RGBA"):
        save(f"{mode.lower()}.png", picture(19, 13, mode))
    for colours in (2, 16, 200):
        save(f"palette_{colours}.png", picture(19, 13).quantize(colours))
    save("palette_clear.png", picture(19, 13).quantize(16), transparency=0)
    save("bits.png", picture(19, 13, "L").convert("1"))
    save("exif_6.png", picture(19, 13), exif=turned(6))
    wide = numpy.random.default_rng(3).integers(0, 65536, (13, 19), dtype=numpy.uint16)
    wide[0] %= 256
    save("wide.png", Image.fromarray(wide))
    save("lossy.webp", picture(29, 23), quality=80)
    save("lossless.webp", picture(29, 23), lossless=True)
    save("clear.webp", picture(29, 23, "RGBA"), quality=80)
    save("exif_8.webp", picture(29, 23), quality=80, exif=turned(8))
    save("colours.gif", picture(37, 29).quantize(200))
    save("few.gif", picture(8, 3).quantize(3))
    save("plain.gif", picture(21, 19, "L"), interlace=0)
    save("moving.gif", picture(19, 13).quantize(16), save_all=True,
         append_images=[picture(19, 13).quantize(16)], transparency=3)
    save_offset("offset.gif", picture(19, 13).quantize(16))


def save_offset(name: str, image: Image.Image) -> None:
    """A GIF file whose screen is larger than its picture, with a clear colour."""
    file = io.BytesIO()
    image.save(file, "GIF", transparency=5)
    data = bytearray(file.getvalue())
    data[6:10] = (23).to_bytes(2, "little") + (17).to_bytes(2, "little")
    at = data.index(b"\x2c\0\0\0\0")
    data[at + 1:at + 5] = (2).to_bytes(2, "little") + (3).to_bytes(2, "little")
    (FOLDER / name).write_bytes(data)


def sha(image: Image.Image) -> str:
    return hashlib.sha256(image.tobytes()).hexdigest()


def golden(path: pathlib.Path) -> dict:
    shown = ImageOps.exif_transpose(Image.open(io.BytesIO(path.read_bytes())))
    rgb = shown.convert("RGB")
    width, height = rgb.size
    parts = []
    for name, kind in FILTERS.items():
        w, h = DRAWN.randint(1, width), DRAWN.randint(1, height)
        left, top = DRAWN.randint(0, width - w), DRAWN.randint(0, height - h)
        new = DRAWN.randint(1, 40), DRAWN.randint(1, 40)
        part = rgb.crop((left, top, left + w, top + h)).resize(new, kind)
        parts.append({"crop": [left, top, w, h], "size": list(new), "filter": name,
                      "sha256": sha(part)})
    return {"size": [width, height], "rgb": sha(rgb), "grey": sha(shown.convert("L")),
            "parts": parts}


if __name__ == "__main__":
    draw_all()
    files = sorted(p for p in FOLDER.iterdir() if p.suffix in (".jpg", ".png", ".webp", ".gif"))
    found = {"pillow": PIL.__version__, "files": {p.name: golden(p) for p in files}}
    (FOLDER / "golden.json").write_text(json.dumps(found, indent=1) + "\n")
