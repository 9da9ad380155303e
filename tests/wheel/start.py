"""How long `import penstock` takes beside `import numpy`, and `penstock --help`:
run by the Python of an environment that holds the wheel.

Exit code 1 when a median is above what is allowed.
"""
import statistics
import subprocess
import sys
import time

from penstock import program

PAIRS = 20
MOST_IMPORT_MS, MOST_HELP_MS = 20, 60


def took(*command):
    """Milliseconds."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def told(what, times, most):
    median = statistics.median(times)
    low, high = min(times), max(times)
    print(f"{what}: median {median:.1f} ms of {len(times)} "
          f"({low:.1f} to {high:.1f}), at most {most} ms")
    return median <= most


def main():
    def imports(name):
        return took(sys.executable, "-c", f"import {name}")

    # Once before, so that both start from files that are in memory.
    imports("penstock")
    pairs = [(imports("numpy"), imports("penstock")) for _ in range(PAIRS)]
    helps = [took(program.path(), "--help") for _ in range(PAIRS)]
    good = [told("import penstock, beyond import numpy",
                 [ours - theirs for theirs, ours in pairs], MOST_IMPORT_MS),
            told("penstock --help", helps, MOST_HELP_MS)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
