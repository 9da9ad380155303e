#!/usr/bin/env python3
"""Makes sound events, one second each at 16 kHz, in noise: chirps that rise, chirps
that fall, clicks, a hum, and noise alone. They are drawn at random, the same ones
whenever it is run.

    python3 make_events.py [FILE.h5 [EVENTS]]   their log-mel spectrograms in HDF5, in
                                                chunks of 64 with shuffle and deflate
    python3 make_events.py FOLDER/ [EVENTS]     the sounds: WAV files in a folder for
                                                each class

It needs numpy, and h5py for HDF5 (pip install numpy h5py).
"""
import pathlib
import sys
import wave

import numpy as np

RATE = 16000
CLASSES = ["chirp_down", "chirp_up", "click", "hum", "noise"]
WINDOW, HOP, BANDS = 512, 256, 32
CHUNK = 64  # spectrograms that are packed together


def event(of_class, draw):
    """The samples of one event, without noise."""
    t = np.arange(RATE) / RATE
    if of_class.startswith("chirp"):
        begin, length = draw.uniform(0.05, 0.4), draw.uniform(0.2, 0.5)
        low, high = draw.uniform(300, 1200), draw.uniform(2500, 6000)
        if of_class == "chirp_down":
            low, high = high, low
        u = np.clip(t - begin, 0, length)
        phase = low * u + (high - low) * u * u / (2 * length)
        return np.sin(2 * np.pi * phase) * np.sin(np.pi * u / length)
    if of_class == "click":
        after = t - draw.uniform(0.05, 0.95, (draw.integers(2, 7), 1))
        inside = (after >= 0) & (after < 0.02)
        after = np.where(inside, after, 0)
        return 2 * (inside * np.exp(-after * 400) * np.sin(9000 * after)).sum(0)
    if of_class == "hum":
        pitch, k = draw.uniform(45, 130), np.arange(1, 6)[:, None]
        return (np.sin(2 * np.pi * pitch * k * t) / k).sum(0)
    return np.zeros(RATE)


def sound(number):
    """An event and its class: 16 bits a sample."""
    draw = np.random.default_rng([1, number])
    of_class = CLASSES[number % len(CLASSES)]
    samples = (draw.uniform(0.1, 0.3) * event(of_class, draw)
               + draw.uniform(0.01, 0.05) * draw.standard_normal(RATE))
    return np.round(32767 * samples.clip(-1, 1)).astype("<i2"), of_class


def filters():
    """[frequencies, bands]: triangles that are equally wide in mel (HTK's)."""
    most = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, most, BANDS + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, WINDOW // 2 + 1)[:, None]
    rising = (frequencies - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - frequencies) / np.diff(edges)[1:]
    return np.minimum(rising, falling).clip(0)


def spectrogram(samples, bands):
    """[bands, times] in decibels: what the field kind `audio` makes of them."""
    padded = np.pad(samples / 32768, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(frames * hann)) ** 2 @ bands
    decibels = 10 * np.log10(power.T.clip(1e-10))
    return decibels.clip(decibels.max() - 80)


def write_hdf5(path, events):
    import h5py

    bands = filters()
    shape = spectrogram(sound(0)[0], bands).shape
    with h5py.File(path, "w") as file:
        spectrograms = file.create_dataset(
            "spectrogram", (events, *shape), "float16",
            chunks=(min(CHUNK, events), *shape), shuffle=True,
            compression="gzip", compression_opts=4)
        classes = file.create_dataset("class", (events,), h5py.string_dtype())
        for first in range(0, events, CHUNK):
            some = [sound(at) for at in range(first,
                                              min(first + CHUNK, events))]
            spectrograms[first:first + len(some)] = [
                spectrogram(samples, bands) for samples, _ in some]
            classes[first:first + len(some)] = [name for _, name in some]


def write_sounds(folder, events):
    for name in CLASSES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for at in range(events):
        samples, of_class = sound(at)
        path = folder / of_class / f"{at:05}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(samples.tobytes())


def main():
    to = sys.argv[1] if len(sys.argv) > 1 else "events.h5"
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    write = write_sounds if to.endswith("/") else write_hdf5
    write(pathlib.Path(to), events)
    print(f"{events} events in {to}")


if __name__ == "__main__":
    main()
