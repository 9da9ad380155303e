#!/usr/bin/env python3
"""How fast are log-mel spectrograms beside torchaudio's, and are they equal?

Waveforms of 10 s at 16 kHz (noise, a chirp, a hum) become log-mel spectrograms,
n_fft 400, hop 160, 80 bands, dB: (a) by torchaudio's MelSpectrogram and
AmplitudeToDB, one clip at a time and a batch at a time, on one thread, and (b) by
the program bench_sound, in turns; of both processor time counts. Then 44.1 kHz to
16 kHz by both. The powers are compared with torchaudio's own in float64.

    python3 sound.py BENCH_SOUND [--clips N] [--repeats N]

in an environment with torch and torchaudio 2.11.0 and numpy; where these are
missing it says so.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from result import commit, spread  # noqa: E402

try:
    import numpy
    import torch
    import torchaudio
except ImportError as missing:
    sys.exit(f"the peer is left out: {missing}")

MEL = {"n_fft": 400, "hop_length": 160, "n_mels": 80}


def waves_of(clips):
    draw = numpy.random.default_rng(1)
    t = numpy.arange(160_000) / 16_000
    return torch.from_numpy(numpy.array(
        [0.05 * draw.standard_normal(t.size)
         + 0.3 * numpy.sin(2 * numpy.pi * (100 + 300 * t + 20 * c) * t)
         + 0.1 * numpy.sin(2 * numpy.pi * 50 * t)
         for c in range(clips)]).astype("f4"))


def cpu_ms(act, clips):
    before = time.process_time()
    act()
    return (time.process_time() - before) * 1e3 / clips


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--clips", type=int, default=20)
    options.add_argument("--repeats", type=int, default=9)
    options = options.parse_args()
    torch.set_num_threads(1)
    waves = waves_of(options.clips)
    power = torchaudio.transforms.MelSpectrogram(16_000, **MEL)
    decibels = torchaudio.transforms.AmplitudeToDB("power", 80.0)
    loud = torch.full((1, 121_552), 0.25)
    resample = torchaudio.transforms.Resample(44_100, 16_000)
    found = {name: [] for name in ("one", "batch", "resample", "ours",
                                   "our_resample")}
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "waves").write_bytes(waves.numpy().tobytes())
        for turn in range(options.repeats + 1):
            kept = {"one": [], **{n: [] for n in found}} if turn == 0 else found
            kept["one"].append(cpu_ms(
                lambda: [decibels(power(w[None])) for w in waves],
                options.clips))
            kept["batch"].append(cpu_ms(
                lambda: decibels(power(waves[:, None])), options.clips))
            kept["resample"].append(cpu_ms(lambda: resample(loud), 1))
            done = subprocess.run(
                [options.program, str(options.clips), "1", at / "waves",
                 at / "spectra"], capture_output=True, check=True)
            ours = json.loads(done.stdout)
            kept["ours"].append(
                ours["results"][0]["cpu_ms_per_clip"]["median"])
            kept["our_resample"].append(
                ours["results"][1]["cpu_ms_per_clip"]["median"])
        spectra = numpy.fromfile(at / "spectra", "f4")
    exact = torchaudio.transforms.AmplitudeToDB("power", 80.0)(
        torchaudio.transforms.MelSpectrogram(16_000, **MEL).double()(
            waves.double()[:, None])).numpy().ravel()
    torchs = decibels(power(waves[:, None])).numpy().ravel()
    # 10 log10 of a power: a difference of d dB is one of 10^(d/10) - 1.
    apart = 10 ** (numpy.abs(spectra - exact) / 10) - 1
    print(json.dumps({
        "bench": "peers_sound",
        "question": __doc__.strip().splitlines()[0],
        "command": "bench/run peers_sound", "commit": commit(),
        "machine": ours["machine"],
        "peers": {"torch": torch.__version__,
                  "torchaudio": torchaudio.__version__},
        "results": [
            {"workload": "log-mel of 10 s at 16 kHz, processor ms per clip",
             "torchaudio, a clip at a time": spread(found["one"]),
             "torchaudio, a batch": spread(found["batch"]),
             "penstock": spread(found["ours"]),
             "times": min(spread(found["one"])["median"],
                          spread(found["batch"])["median"])
             / spread(found["ours"])["median"],
             "must_reach": 2},
            {"workload": "44.1 kHz to 16 kHz, 44,100 samples, processor ms",
             "torchaudio": spread(found["resample"]),
             "penstock": spread(found["our_resample"]),
             "times": spread(found["resample"])["median"]
             / spread(found["our_resample"])["median"]},
            {"workload": "power relative to torchaudio's in float64",
             "penstock, largest": float(apart.max()),
             "penstock, median": float(numpy.median(apart)),
             "torchaudio in float32, largest": float(
                 (10 ** (numpy.abs(torchs - exact) / 10) - 1).max()),
             "must_reach": 1e-5}]}, indent=2))


if __name__ == "__main__":
    main()
