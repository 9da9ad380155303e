#!/usr/bin/env python3
"""Writes a folder of sound events that are drawn at random: one second each, at 16
kHz, in noise, as WAV files in a folder for each class: chirps that rise, chirps that
fall, clicks, a hum, and noise alone.

    python3 make_events.py [FOLDER [EVENTS]]
"""
import math
import pathlib
import random
import struct
import sys
import wave

RATE = 16000
CLASSES = ["chirp_down", "chirp_up", "click", "hum", "noise"]


def event(of_class, draw):
    """The samples of one event, without noise."""
    begin = draw.uniform(0.05, 0.4)
    length = draw.uniform(0.2, 0.5)
    low, high = draw.uniform(300, 1200), draw.uniform(2500, 6000)
    if of_class == "chirp_down":
        low, high = high, low
    pitch = draw.uniform(45, 130)
    clicks = [draw.uniform(0.05, 0.95) for _ in range(draw.randint(2, 6))]
    for i in range(RATE):
        t = i / RATE
        if of_class.startswith("chirp"):
            u = t - begin
            inside = 0 <= u <= length
            phase = low * u + (high - low) * u * u / (2 * length)
            yield (math.sin(2 * math.pi * phase)
                   * math.sin(math.pi * u / length)) if inside else 0.0
        elif of_class == "click":
            yield sum(math.exp(-(t - c) * 400) * math.sin(9000 * (t - c))
                      for c in clicks if 0 <= t - c < 0.02) * 2
        elif of_class == "hum":
            yield sum(math.sin(2 * math.pi * pitch * k * t) / k
                      for k in range(1, 6))
        else:
            yield 0.0


def write(path, of_class, draw):
    loud = draw.uniform(0.1, 0.3)
    noise = draw.uniform(0.01, 0.05)
    samples = [loud * x + draw.gauss(0, noise) for x in event(of_class, draw)]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(struct.pack(
            f"<{RATE}h", *(round(32767 * max(-1.0, min(1.0, x)))
                           for x in samples)))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "events")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    draw = random.Random(1)
    for at in range(count):
        of_class = CLASSES[at % len(CLASSES)]
        (folder / of_class).mkdir(parents=True, exist_ok=True)
        write(folder / of_class / f"{at:05}.wav", of_class, draw)


if __name__ == "__main__":
    main()
