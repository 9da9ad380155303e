#!/usr/bin/env python3
"""What does it cost to check, after each chunk, that a file has not changed?

A CSV file, a Parquet file and a folder of JPEG images are streamed with
`cache="none"`. Each epoch is run by the package of this build and, in turn, by a
second build in which `check_same_file` and `check_unchanged_since` return at
once (`--without`: the folder that holds its `penstock` package). Each pair gives
a ratio of times; "cost" is the median of the ratios less 1.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

from result import print_result, processor, spread

KINDS = ("csv", "parquet", "images")
STREAM = """
import sys, time
import penstock
path, batch, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
loader = penstock.Loader(path, batch_size=batch, cache="none", num_workers=1,
                         device="cpu")
def epoch():
    return sum(1 for _ in loader)
epoch()
begun = time.perf_counter(), time.process_time()
for _ in range(epochs):
    epoch()
print(time.perf_counter() - begun[0], time.process_time() - begun[1])
"""


def write(kind, folder, rows):
    import numpy
    random = numpy.random.default_rng(1)
    path = folder / f"data.{kind}"
    if kind == "csv":
        numpy.savetxt(path, random.normal(size=(rows, 8)), "%.6f", ",",
                      header=",".join("abcdefgh"), comments="")
    elif kind == "parquet":
        import pyarrow
        from pyarrow import parquet
        parquet.write_table(pyarrow.table(dict(zip(
            "abcdefgh", random.normal(size=(8, rows))))), path,
            row_group_size=10_000)
    else:
        from PIL import Image
        path = folder / "images"
        for at in range(rows):
            (path / str(at % 2)).mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 255, (96, 96, 3), "uint8")).save(
                path / str(at % 2) / f"{at}.jpg")
    return path


def seconds(package, *arguments):
    """Wall and processor seconds of the epochs of a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", STREAM, *map(str, arguments)], check=True,
        stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(package),
                                                "PATH": "/usr/bin:/bin"})
    return tuple(map(float, ended.stdout.split()))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--package", required=True, type=pathlib.Path)
    arguments.add_argument("--without", required=True, type=pathlib.Path)
    arguments.add_argument("--pairs", type=int, default=24)
    arguments.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    given = arguments.parse_args()
    sizes = {"csv": (200_000, 1024, 4), "parquet": (500_000, 1024, 10),
             "images": (1_000, 64, 2)}
    results = []
    with tempfile.TemporaryDirectory() as name:
        for kind in given.kinds:
            rows, batch, epochs = sizes[kind]
            path = write(kind, pathlib.Path(name), rows)
            named = f"images:{path}" if kind == "images" else path
            ratios, taken = {"wall": [], "processor": []}, []
            for pair in range(given.pairs):
                order = [given.package, given.without]
                of = {at: seconds(at, named, batch, epochs)
                      for at in (order if pair % 2 else order[::-1])}
                for at, what in enumerate(ratios):
                    ratios[what].append(
                        of[given.package][at] / of[given.without][at])
                taken.append(of[given.package][0])
            results.append({
                "kind": kind, "rows": rows, "batch_size": batch,
                "seconds": spread(taken),
                "ratio": {what: spread(all_) for what, all_ in ratios.items()},
                "cost": {what: round(statistics.median(all_) - 1, 4)
                         for what, all_ in ratios.items()}})
            print(kind, results[-1]["cost"], file=sys.stderr)
    print_result("file_checks", __doc__, "python bench/file_checks.py --package "
                 "FOLDER --without FOLDER", {"machine": processor(),
                                 "must_reach": {"cost": 0.01},
                                 "results": results})


if __name__ == "__main__":
    main()
