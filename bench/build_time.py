#!/usr/bin/env python3
"""How long does one wait for a first build?

    bench/build_time.py [--check]

Clones this repository into an empty folder and times `pip install .` there, in a
fresh environment, its downloads within; with --check also ./check, whose
minutes of each part it takes from what it prints. ccache knows nothing at first.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from result import ROOT, print_result, processor


def seconds_of(command, folder):
    """How long it took, and what it said."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(command, cwd=folder, text=True,
                              capture_output=True,
                              env={**os.environ, "CCACHE_DIR": cache})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n"
                 f"{(done.stdout + done.stderr)[-2000:]}")
    return round(time.monotonic() - began, 1), done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true",
                        help="also ./check, which takes half an hour")
    check = parser.parse_args().check
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder, "penstock")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        python = pathlib.Path(folder, "python")
        subprocess.run([sys.executable, "-m", "venv", python], check=True)
        seconds, _ = seconds_of([python / "bin/pip", "install", "."], clone)
        results["pip install ."] = {"seconds": seconds, "must_reach": 180}
        if check:
            seconds, said = seconds_of(["./check"], clone)
            results["./check"] = {
                "seconds": seconds, "must_reach": 2700,
                "parts": {name: 60 * int(minutes) + int(rest)
                          for minutes, rest, name in re.findall(
                              r"^ *(\d+):(\d\d)  (.+)$", said, re.M)}}
    print_result("build_time", __doc__,
                 "bench/build_time.py" + (" --check" if check else ""),
                 {"machine": processor(), "results": results})


if __name__ == "__main__":
    main()
