"""Photo-like JPEG files of 500 x 375 pixels in class folders: noise whose spectrum
falls as that of photos does, so that a file has about 85 KB, as photos have."""
import io

import numpy
from PIL import Image

WIDTH, HEIGHT = 500, 375


def photo(draw):
    frequency = numpy.hypot(numpy.fft.fftfreq(HEIGHT)[:, None],
                            numpy.fft.rfftfreq(WIDTH)[None])
    frequency[0, 0] = 1 / WIDTH

    def noise(power):
        shape = frequency.shape
        waves = draw.normal(size=shape) + 1j * draw.normal(size=shape)
        found = numpy.fft.irfft2(waves / frequency**power, (HEIGHT, WIDTH))
        return found / found.std()

    light = noise(1.25)
    pixels = numpy.stack([light + 0.5 * noise(1.45) for _ in range(3)], -1)
    pixels = pixels / pixels.std() * 55 + 120
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def write_pictures(folder, count):
    draw = numpy.random.default_rng(1)
    total = 0
    for at in range(count):
        of_class = folder / f"class{at % 4}"
        of_class.mkdir(exist_ok=True)
        file = io.BytesIO()
        photo(draw).save(file, "JPEG", quality=90)
        total += len(file.getvalue())
        (of_class / f"{at:05}.jpg").write_bytes(file.getvalue())
    return total / count
