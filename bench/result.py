"""What the results of benchmarks in Python have in common."""
import pathlib
import statistics
import subprocess


def spread(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "repeats": len(values)}


def commit():
    told = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"],
                          cwd=pathlib.Path(__file__).parent,
                          capture_output=True, text=True, check=False)
    return told.stdout.strip() or None
