"""What the examples of this folder share: a table of positions, a job over it,
and the check that a run which was resumed is the run that was not."""
import argparse
import atexit
import json
import pathlib
import subprocess
import sys
import tempfile

import penstock

JOB = pathlib.Path(__file__).parent.parent / "positions" / "job.json"


def arguments(about, *flags):
    """--rows and --steps of the run, --stop: the step of its checkpoint."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--stop", type=int, default=22)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def make_job(rows):
    """A job over a demonstration table, whose batches also tell the row."""
    folder = tempfile.TemporaryDirectory(prefix="penstock-frames-")
    atexit.register(folder.cleanup)
    table = pathlib.Path(folder.name) / "positions.sqlite"
    subprocess.run([sys.executable, "-m", "penstock", "demo", "positions",
                    "--rows", str(rows), "--seed", "1", "--to",
                    f"sqlite:{table}"], check=True, capture_output=True)
    job = json.loads(JOB.read_text())
    job["source"]["path"] = str(table)
    job["fields"]["row"] = {"columns": ["id"], "dtype": "int64"}
    job["loader"]["batch_size"] = 32
    return job


def rows_of(batch):
    """The rows of a batch: their ids in the table."""
    return [int(row) for row in batch["row"].reshape(-1)]


def assert_resumed(stop, whole, rest, weights, weights_of_rest):
    """`whole` and `rest` are the rows of each step, of the run and of what
    followed its checkpoint; their weights are equal bit for bit."""
    assert len(whole) > stop, f"{len(whole)} steps, of which {stop} are saved"
    assert rest == whole[stop:], "other rows after the checkpoint"
    assert weights.keys() == weights_of_rest.keys()
    for name, weight in weights.items():
        assert (weight == weights_of_rest[name]).all(), f"{name} differs"
    print(f"penstock {penstock.__version__}: resumed after step {stop} of "
          f"{len(whole)}: the same rows, the same weights; the next were "
          f"{rest[0][:4]}...")
