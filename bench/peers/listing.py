#!/usr/bin/env python3
"""How long does it take to list the pictures of a large folder, beside torchvision?

A tree of 1,000 class folders with 1,281 files each (--files fewer), names as
ImageNet has them, is listed by torchvision's ImageFolder and by
penstock.ImageFolder, which also asks for sizes and times of all files; and again by
the latter, which finds the kept list. In turns, wall time and processor time, the
folders in the system's cache.

    bench/run peers_listing [--tree FOLDER] [--folders N] [--repeats N]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import tempfile
import time

import torchvision

import penstock
from peer_result import print_result, spread, torch_machine

FILES = 1281


def make_tree(root, folders):
    for number in range(folders):
        folder = root / f"n{number:08}"
        folder.mkdir(parents=True)
        for at in range(FILES):
            os.close(os.open(folder / f"n{number:08}_{at:05}.JPEG",
                             os.O_CREAT | os.O_WRONLY))


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return (time.perf_counter() - wall, time.process_time() - cpu), found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tree", type=pathlib.Path)
    parser.add_argument("--folders", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name + "/cache"
        tree = options.tree or pathlib.Path(name) / "tree"
        if options.tree is None:
            make_tree(tree, options.folders)
            time.sleep(3)  # younger lists are not kept

        def theirs():
            return len(torchvision.datasets.ImageFolder(tree))

        def ours():
            with penstock.ImageFolder(tree, image={"size": 8}, batch_size=256,
                                      num_workers=0, device="cpu",
                                      cache="none") as loader:
                return len(loader)

        times = {"torchvision": [], "first": [], "second": []}
        for turn in range(options.repeats + 1):
            shutil.rmtree(name + "/cache", ignore_errors=True)
            for way, call in (("torchvision", theirs), ("first", ours),
                              ("second", ours)):
                spent, _ = timed(call)
                if turn > 0:
                    times[way].append(spent)
        files = theirs()
    medians = {way: statistics.median(wall for wall, _ in spent)
               for way, spent in times.items()}
    print_result(
        "peers_listing", __doc__, "bench/run peers_listing",
        {"machine": torch_machine(), "torchvision": torchvision.__version__,
         "files": files,
         "wall_s": {way: spread([wall for wall, _ in spent])
                    for way, spent in times.items()},
         "cpu_s": {way: spread([cpu for _, cpu in spent])
                   for way, spent in times.items()},
         "torchvision_through_first": medians["torchvision"] / medians["first"],
         "torchvision_through_second":
             medians["torchvision"] / medians["second"],
         "must_reach": {"torchvision_through_first": 5, "second_s": 1}})


if __name__ == "__main__":
    main()
