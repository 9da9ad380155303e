"""What the benchmarks of DataLoaders have in common: runs in processes of their
own, which have imported torch and the package before they begin, and the memory
and processor time of the processes below them."""
import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys

import torch

from peer_result import ROOT, machine_of, print_result, spread

BATCH = 64


def options_of(doc, repeats, **one):
    """A parser; `one` describes the arguments of a single run, --one."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    parser.add_argument("--program", default=ROOT / "build/bin/penstock")
    parser.add_argument("--package", default=str(ROOT / "build/python"),
                        help="the folder of a build with the package penstock")
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--one", **one)
    return parser


def begin(options):
    """Imports the package from the folder that was named: both sides do, to be
    alike."""
    sys.path.insert(0, options.package)
    penstock = importlib.import_module("penstock")
    assert penstock.DataLoader
    torch.set_num_threads(1)


def run(file, options, *one):
    """What a process of its own prints for --one."""
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", file, "--package", options.package,
         "--one", *map(str, one)],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def in_turns(sides, repeats, one):
    """The spread of each number that `one` gives of a side."""
    runs = {side: [] for side in sides}
    for _ in range(repeats):
        for side in sides:
            runs[side].append(one(side))
    return {side: {name: spread([found[name] for found in these])
                   for name in these[0]} for side, these in runs.items()}


def tree(of):
    """The processes below `of`."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    found, grown = set(), {of}
    while grown:
        grown = {pid for pid, parent in parents.items()
                 if parent in grown} - found
        found |= grown
    return found


def pss_bytes(pids):
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines()
                     if line.startswith("Pss:"))
    return total * 1024


def cpu_s(pids):
    """Processor time that they have used."""
    ticks = 0
    for pid in pids:
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        ticks += sum(map(int, stat.rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def print_runs(bench, doc, command, options, more):
    print_result(bench, doc, command, {
        "machine": machine_of(options.program),
        "load_average": os.getloadavg(),
        "peers": {"torch": torch.__version__,
                  "python": sys.version.split()[0]},
        "batch_size": BATCH, **more})
