"""Where the job service listens, for the service and its clients."""

from __future__ import annotations

import os
import pathlib


def default_socket() -> pathlib.Path:
    """penstock/service.sock in $XDG_RUNTIME_DIR, else in /tmp/penstock-UID."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = (pathlib.Path(runtime) / "penstock" if runtime
              else pathlib.Path(f"/tmp/penstock-{os.getuid()}"))
    return folder / "service.sock"
