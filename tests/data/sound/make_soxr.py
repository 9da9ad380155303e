"""Makes soxr.f32 of the sounds of this folder: what soxr (pip install soxr) makes of
at_44100.wav at 16 kHz and of at_8000.wav at 16 kHz, one after the other."""
import pathlib

import numpy as np
import soundfile
import soxr

HERE = pathlib.Path(__file__).resolve().parent
made = []
for rate in (44100, 8000):
    samples, found = soundfile.read(HERE / f"at_{rate}.wav", dtype="float32")
    assert found == rate
    made.append(soxr.resample(samples, rate, 16000, quality="HQ"))
    print(rate, len(samples), "->", len(made[-1]))
(HERE / "soxr.f32").write_bytes(np.concatenate(made).astype("<f4").tobytes())
