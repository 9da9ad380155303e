"""The first lines of the process that servers are forked from, run as a
program of their own.

The package `penstock` stands in sys.modules without having been loaded: a
worker needs this part of it and no engine. It is loaded when it is asked
for another name than those of the drop-in, as a data set's module may.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any


class Later(types.ModuleType):
    """`penstock`, loaded when a name of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("DataLoader", "get_worker_info", "start", "stop"):
            return getattr(importlib.import_module("penstock.dataloader"),
                           name)
        package: Any = self
        package.__class__ = types.ModuleType
        package.__spec__.loader.exec_module(package)
        return getattr(package, name)


def stand_in(folder: str) -> None:
    spec: Any = importlib.util.spec_from_file_location(
        "penstock", f"{folder}/__init__.py",
        submodule_search_locations=[folder])
    package = sys.modules["penstock"] = importlib.util.module_from_spec(spec)
    package.__class__ = Later


if __name__ == "__main__":
    stand_in(sys.argv[1])
    from penstock._dataloader.origin import main

    main(int(sys.argv[2]))
