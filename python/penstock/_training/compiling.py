"""`model.compile`: torch.compile() of the user's module."""

from __future__ import annotations

import os
import shutil
from typing import Any, Mapping

from ..errors import refused

_COMPILERS = ("g++", "c++", "clang++", "gcc", "cc", "clang")


def compiled(torch: Any, module: Any, settings: Mapping[str, Any],
             switches: Any) -> Any:
    """The module, whose calls are compiled where the job asks for it. Its class
    and the names of its weights stay the same."""
    mode = settings.get("compile", "off")
    if mode == "off":
        return module
    if not _compiler():
        raise refused(
            "model.compile", "cannot compile the model", "model.compile",
            f'found "{mode}", and there is no C compiler: none of '
            f"{', '.join(_COMPILERS)} is in PATH, and CXX and CC name none",
            'install one (apt-get install g++), or set model.compile to "off"')
    module.compile(mode=mode)
    return module


def _compiler() -> str | None:
    named = [os.environ[name] for name in ("CXX", "CC") if os.environ.get(name)]
    for each in (*named, *_COMPILERS):
        if found := shutil.which(each.split()[0]):
            return found
    return None
