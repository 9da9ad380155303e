"""The command line `penstock`, which comes with this package."""

from __future__ import annotations

import os
import pathlib
import sys

from .arrow_files import libraries


def path() -> pathlib.Path:
    """Where the program is."""
    return pathlib.Path(__file__).parent / "bin" / "penstock"


def main() -> None:
    """Becomes the program, with this process's arguments."""
    program = str(path())
    # By which the program trains users' own models.
    os.environ.setdefault("PENSTOCK_PYTHON", sys.executable)
    # Whose libraries the program's plugin for Parquet uses.
    if pyarrow := libraries():
        os.environ.setdefault("PENSTOCK_ARROW_DIR",
                              str(pathlib.Path(pyarrow).parent))
    os.execv(program, [program, *sys.argv[1:]])
