"""Makes the sounds of this folder (with soundfile), and what torchaudio 2.11.0
makes of them: golden.json, whose arrays are in golden.f32, one after the other.
"""
import json
import pathlib

import numpy as np
import soundfile
import torch
import torchaudio

HERE = pathlib.Path(__file__).resolve().parent
assert torchaudio.__version__.startswith("2.11.0")


def sound(rate, seconds, seed, channels=1):
    """A chirp, a hum and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(rate * seconds)) / rate
    rows = [0.3 * np.sin(2 * np.pi * (200 + 900 * c + 1500 * t / seconds) * t)
            + 0.2 * np.sin(2 * np.pi * 50 * t)
            + 0.1 * rng.standard_normal(t.size) for c in range(channels)]
    return np.array(rows).astype("f4")


golden, arrays, at = [], [], 0


def keep(array):
    """Where it begins in golden.f32, and its shape."""
    global at
    array = np.ascontiguousarray(array, dtype="<f4")
    arrays.append(array)
    at += array.size
    return {"begin": at - array.size, "shape": list(array.shape)}


def add(name, file, settings, result):
    golden.append({"name": name, "file": file, "settings": settings,
                   **keep(result)})


mono = sound(16000, 0.25, 1)
soundfile.write(HERE / "mono.wav", mono[0], 16000, subtype="FLOAT")
stereo = sound(16000, 0.1, 2, 2)
pcm = np.round(stereo * 20000).astype("i2")
for ending in ("wav", "flac"):
    soundfile.write(HERE / f"stereo.{ending}", pcm.T, 16000)
soundfile.write(HERE / "lossy.ogg", mono[0], 16000)
soundfile.write(HERE / "lossy.mp3", mono[0], 16000)
soundfile.write(HERE / "empty.wav", mono[0][:0], 16000)

as_read = pcm.astype("f4") / 32768
for ending in ("wav", "flac"):
    add(f"{ending}, both channels", f"stereo.{ending}",
        {"seconds": 0.1, "channels": "stereo"}, as_read)
    add(f"{ending}, mixed", f"stereo.{ending}", {"seconds": 0.1},
        as_read.mean(0, keepdims=True))
add("mono as stereo", "mono.wav", {"seconds": 0.25, "channels": "stereo"},
    np.repeat(mono, 2, 0))
add("from the middle", "mono.wav", {"seconds": 0.1}, mono[:, 1200:2800])
add("from the start", "mono.wav", {"seconds": 0.1, "crop": "start"},
    mono[:, :1600])
add("filled up", "mono.wav", {"seconds": 0.3},
    np.pad(mono, ((0, 0), (0, 800))))

for old, new in ((44100, 16000), (8000, 16000), (48000, 44100),
                 (22050, 16000), (16000, 4000)):
    wave = sound(old, 0.06, old)
    file = f"at_{old}.wav"
    soundfile.write(HERE / file, wave[0], old, subtype="FLOAT")
    made = torchaudio.functional.resample(torch.from_numpy(wave), old, new)
    length = made.shape[1]
    add(f"{old} to {new}", file, {"seconds": length / new, "rate": new}, made)
    few = min(300, length // 2)
    first = (length - few) // 2
    add(f"{old} to {new}, the middle", file,
        {"seconds": few / new, "rate": new}, made[:, first:first + few])

short = sound(16000, 0.25, 3)
for mel in ({"n_mels": 40},
            {"n_fft": 512, "win_length": 400, "hop_length": 160, "n_mels": 64},
            {"n_fft": 1024, "hop_length": 256, "n_mels": 80, "f_min": 20,
             "f_max": 7600, "mel_scale": "slaney", "norm": "slaney"},
            {"n_fft": 490, "n_mels": 23},
            {"n_fft": 401, "hop_length": 100, "n_mels": 23, "f_max": 6000},
            {"n_fft": 626, "n_mels": 20, "power": "magnitude"}):
    named = {**mel, "power": 1.0 if mel.get("power") else 2.0,
             "norm": mel.get("norm")}
    waves = torch.from_numpy(mono).double()
    power = torchaudio.transforms.MelSpectrogram(16000, **named).double()(waves)
    settings = {"seconds": 0.25, "mel": {**mel, "log": "none"}}
    add(f"mel {mel}", "mono.wav", settings, power)
    db = torchaudio.transforms.AmplitudeToDB(mel.get("power", "power"),
                                             80.0)(power)
    add(f"decibels {mel}", "mono.wav", {"seconds": 0.25, "mel": mel}, db)
named = {"n_fft": 512, "hop_length": 160, "n_mels": 64}
for log in ("db", "ln"):
    made = torchaudio.transforms.MFCC(
        16000, 20, log_mels=log == "ln", melkwargs=named).double()(
            torch.from_numpy(mono).double())
    add(f"mfcc {log}", "mono.wav",
        {"seconds": 0.25, "mel": {**named, "n_mfcc": 20, "log": log}}, made)
loud = torch.from_numpy(as_read).double()
power = torchaudio.transforms.MelSpectrogram(16000, n_mels=30).double()(loud)
add("decibels of both channels", "stereo.wav",
    {"seconds": 0.1, "channels": "stereo",
     "mel": {"n_mels": 30, "top_db": 30}},
    torchaudio.transforms.AmplitudeToDB("power", 30.0)(power))

# Bands of one bin, which show the last bits of the window where that bin is quiet.
narrow = {"hop_length": 40, "n_mels": 80}
power = torchaudio.transforms.MelSpectrogram(16000, **narrow).double()(
    torch.from_numpy(mono).double())
add("narrow bands", "mono.wav",
    {"seconds": 0.25, "mel": {**narrow, "log": "none"}}, power)

(HERE / "golden.json").write_text(
    "[\n" + ",\n".join(map(json.dumps, golden)) + "\n]\n")
(HERE / "golden.f32").write_bytes(b"".join(a.tobytes() for a in arrays))
