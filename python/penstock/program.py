"""The command line `penstock`, which comes with this package."""

from __future__ import annotations

import os
import pathlib
import sys

from ._rows.arrow_files import folder_of


def path() -> pathlib.Path:
    """Where the program is."""
    return pathlib.Path(__file__).parent / "bin" / "penstock"


def main() -> None:
    """Becomes the program, with this process's arguments."""
    program = str(path())
    # By which the program trains users' own models, and reads files by a pyarrow
    # that no plugin fits.
    os.environ.setdefault("PENSTOCK_PYTHON", sys.executable)
    # Whose libraries its plugins use, for Parquet and for training.
    for package, variable in (("pyarrow", "PENSTOCK_ARROW_DIR"),
                              ("torch", "PENSTOCK_TORCH_DIR")):
        if folder := folder_of(package):
            os.environ.setdefault(variable, str(pathlib.Path(folder).parent))
    os.execv(program, [program, *sys.argv[1:]])
