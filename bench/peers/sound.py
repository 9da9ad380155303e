#!/usr/bin/env python3
"""How fast are log-mel spectrograms beside torchaudio's, and are they equal?

Waveforms of 10 s at 16 kHz (noise, a chirp, a hum) become log-mel spectrograms,
n_fft 400, hop 160, 80 bands, dB: (a) by torchaudio's MelSpectrogram and
AmplitudeToDB, one clip at a time and a batch at a time, on one thread, and (b) by
the program bench_sound, in turns; of both processor time counts. Then 44.1 kHz to
16 kHz by both.

The powers are compared with torchaudio's in float64: its spectrogram and its
product with the filter bank, which it makes in float32. That bank has other last
bits on other processors: 10 ** x is computed by SLEEF with AVX2, and by libm, which
rounds it right, without (ATEN_CPU_CAPABILITY=default). So powers are compared with
both, and the two with each other.

    python3 sound.py BENCH_SOUND [--clips N] [--repeats N]

in an environment with torch and torchaudio 2.11.0 and numpy; where these are
missing it reports it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from peer_result import print_result, spread

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


class Torchaudio:
    def __init__(self):
        self.power = torchaudio.transforms.MelSpectrogram(16_000, **MEL)
        self.decibels = torchaudio.transforms.AmplitudeToDB("power", 80.0)
        self.resample = torchaudio.transforms.Resample(44_100, 16_000)

    def spectra(self, waves):
        return self.decibels(self.power(waves[:, None]))

    def exact_spectra(self, waves, bank):
        """In float64, with that filter bank."""
        power = torchaudio.transforms.MelSpectrogram(16_000, **MEL)
        power.mel_scale.fb = bank
        return self.decibels(power.double()(waves.double()[:, None]))

    def times(self, waves):
        """Processor time, ms: of a clip, alone and in a batch, and of a second
        from 44.1 kHz."""
        loud = torch.full((1, 121_552), 0.25)
        return {"one": cpu_ms(lambda: [self.decibels(self.power(w[None]))
                                       for w in waves], len(waves)),
                "batch": cpu_ms(lambda: self.spectra(waves), len(waves)),
                "resample": cpu_ms(lambda: self.resample(loud), 1)}


MAKE_BANK = f"""
import sys, torchaudio
scale = torchaudio.transforms.MelSpectrogram(16_000, **{MEL}).mel_scale
sys.stdout.buffer.write(scale.fb.numpy().tobytes())
"""


def bank_of(capability):
    """torchaudio's filter bank as made on such a processor."""
    done = subprocess.run(
        [sys.executable, "-c", MAKE_BANK], capture_output=True, check=True,
        env={**os.environ, **({"ATEN_CPU_CAPABILITY": capability}
                              if capability else {})})
    return torch.from_numpy(numpy.frombuffer(done.stdout, "f4").reshape(
        -1, MEL["n_mels"]).copy())


def our_times(program, clips, folder):
    """The same of ours, which leaves its spectra in `folder`, and what it
    says of the machine."""
    done = subprocess.run([program, str(clips), "1", folder / "waves",
                           folder / "spectra"], capture_output=True, check=True)
    told = json.loads(done.stdout)
    ours, resample = (one["cpu_ms_per_clip"]["median"]
                      for one in told["results"][:2])
    return {"ours": ours, "our_resample": resample}, told["machine"]


def results_of(found, apart):
    found = {name: spread(times) for name, times in found.items()}
    ours, ours_resampled = (found[name]["median"]
                            for name in ("ours", "our_resample"))
    return [
        {"workload": "log-mel of 10 s at 16 kHz, processor ms per clip",
         "torchaudio, a clip at a time": found["one"],
         "torchaudio, a batch": found["batch"], "penstock": found["ours"],
         "times": min(found["one"]["median"], found["batch"]["median"]) / ours,
         "must_reach": 2},
        {"workload": "44.1 kHz to 16 kHz, 44,100 samples, processor ms",
         "torchaudio": found["resample"], "penstock": found["our_resample"],
         "times": found["resample"]["median"] / ours_resampled},
        {"workload": "power relative to torchaudio's in float64",
         **{f"{name}, {which}": float(of(values))
            for name, values in apart.items()
            for which, of in (("largest", numpy.max),
                              ("median", numpy.median))},
         "must_reach": 1e-5}]


def all_apart(peer, waves, ours):
    """Of ours and of torchaudio's."""
    rounded = peer.exact_spectra(waves, bank_of("default")).numpy().ravel()
    exact = peer.exact_spectra(waves, bank_of("")).numpy().ravel()
    theirs = peer.spectra(waves).numpy().ravel()
    return {"penstock, beside its bank without AVX2":
            powers_apart(ours, rounded),
            "penstock, beside its bank here": powers_apart(ours, exact),
            "its bank without AVX2, beside its bank here":
            powers_apart(rounded, exact),
            "torchaudio in float32, beside its bank here":
            powers_apart(theirs, exact)}


def powers_apart(decibels, exact):
    """10 log10 of a power: a difference of d dB is one of 10^(d/10) - 1."""
    return 10 ** (numpy.abs(decibels - exact) / 10) - 1


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--clips", type=int, default=20)
    options.add_argument("--repeats", type=int, default=9)
    options = options.parse_args()
    torch.set_num_threads(1)
    waves, peer = waves_of(options.clips), Torchaudio()
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "waves").write_bytes(waves.numpy().tobytes())
        for _ in range(options.repeats + 1):
            theirs = peer.times(waves)
            ours, machine = our_times(options.program, options.clips, at)
            turns.append({**theirs, **ours})
        spectra = numpy.fromfile(at / "spectra", "f4")
    found = {name: [turn[name] for turn in turns[1:]] for name in turns[0]}
    print_result(
        "peers_sound", __doc__, "bench/run peers_sound",
        {"machine": machine,
         "peers": {"torch": torch.__version__,
                   "torchaudio": torchaudio.__version__},
         "results": results_of(found, all_apart(peer, waves, spectra))})


if __name__ == "__main__":
    main()
