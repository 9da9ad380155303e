"""How long `import penstock` takes beside `import numpy`, and `penstock --help`:
run by the Python of an environment that holds the wheel.

Prints wall time and, which a busy machine changes less, processor time. Exit code
1 when a median of wall time is above what is allowed.
"""
import resource
import statistics
import subprocess
import sys
import time

from penstock import program

PAIRS = 20
MOST_IMPORT_MS, MOST_HELP_MS = 20, 60


def processor_s():
    """Of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def took(*command):
    """Milliseconds of wall time and of a processor."""
    begin, before = time.perf_counter(), processor_s()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ((time.perf_counter() - begin) * 1000,
            (processor_s() - before) * 1000)


def told(what, times, most=None):
    wall, processor = (sorted(kind) for kind in zip(*times))
    median = statistics.median(wall)
    print(f"{what}: median {median:.1f} ms of {len(wall)} "
          f"({wall[0]:.1f} to {wall[-1]:.1f}), "
          f"{statistics.median(processor):.1f} ms of a processor"
          + (f"; at most {most} ms" if most else ""))
    return most is None or median <= most


def main():
    def imports(name):
        return took(sys.executable, "-c", f"import {name}")

    # Once before, so that both start from files that are in memory.
    imports("penstock")
    pairs = [(imports("numpy"), imports("penstock")) for _ in range(PAIRS)]
    helps = [took(program.path(), "--help") for _ in range(PAIRS)]
    beyond = [[of - base for of, base in zip(ours, theirs)]
              for theirs, ours in pairs]
    told("import numpy", [theirs for theirs, _ in pairs])
    told("import penstock", [ours for _, ours in pairs])
    good = [told("import penstock, beyond import numpy", beyond,
                 MOST_IMPORT_MS),
            told("penstock --help", helps, MOST_HELP_MS)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
