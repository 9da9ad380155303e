"""Which modules the helper processes import ahead, and how.

An import that a data set needs is then made once, in a process that all
workers are forked from, instead of in each of them.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import types
from collections.abc import Iterable
from typing import Any

_PIPE_BYTES = 4096  # what is written at once arrives in one piece
_LEVELS = 4         # of things in things that are looked at
_THINGS = 200
_MIDDLE_BEFORE_OLD = 1000  # collections
_NOT_HERE = ("penstock", "__main__", "__mp_main__")


def cuda_is_in_use() -> bool:
    """A process that has initialised CUDA cannot be forked."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def _is_or_is_in(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(package + ".")
               for package in packages)


class Preloader:
    """Imports modules by their names. What fails is left for who needs it."""

    def __init__(self) -> None:
        self.excluded: tuple[str, ...] = ()
        self.took_cuda: str | None = None  # the module that initialised it

    def load(self, names: Iterable[str]) -> None:
        """Imports nothing once CUDA was initialised here, and never what is
        excluded. Meanwhile the collector looks at what is new: through all that
        was imported it would go again and again."""
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, _MIDDLE_BEFORE_OLD)
        try:
            self._load(names)
        finally:
            # One of the modules may have set its own.
            if gc.get_threshold() == (young, middle, _MIDDLE_BEFORE_OLD):
                gc.set_threshold(young, middle, old)

    def _load(self, names: Iterable[str]) -> None:
        for name in names:
            if name in sys.modules or _is_or_is_in(name, _NOT_HERE) or \
                    _is_or_is_in(name, self.excluded):
                continue
            if cuda_is_in_use():
                return
            try:
                importlib.import_module(name)
            except BaseException:  # SystemExit, too
                pass
            if cuda_is_in_use():
                self.took_cuda = name


def _is_found_by_name(name: str, module: Any) -> bool:
    spec = getattr(module, "__spec__", None)
    return (spec is not None and spec.name == name
            and not _is_or_is_in(name, _NOT_HERE))


def imported_here() -> list[str]:
    """The modules of this process, in the order of their imports."""
    return [name for name, module in list(sys.modules.items())
            if _is_found_by_name(name, module)]


def needed_by(things: Iterable[object]) -> list[str]:
    """The modules that define the classes and functions of these things and of
    what they hold; where that is the main module, those that it names."""
    names: dict[str, None] = {}
    level, seen = list(things), 0
    for _ in range(_LEVELS):
        below: list[object] = []
        for thing in level:
            if seen >= _THINGS:
                return list(names)
            seen += 1
            defined = thing if isinstance(thing, (
                type, types.FunctionType)) else type(thing)
            _add_module(defined, names)
            below += _held_by(thing)
        level = below
    return list(names)


def _held_by(thing: object) -> list[object]:
    try:
        held = list(vars(thing).values())
    except TypeError:
        held = []
    if isinstance(thing, (list, tuple)):
        held += thing[:8]
    return held


def _add_module(defined: object, names: dict[str, None]) -> None:
    name = getattr(defined, "__module__", None)
    if not isinstance(name, str):
        return
    if name in ("__main__", "__mp_main__"):
        for value in list(vars(sys.modules[name]).values()):
            name = (value.__name__ if isinstance(value, types.ModuleType)
                    else getattr(value, "__module__", None))
            if isinstance(name, str) and _is_found_by_name(
                    name, sys.modules.get(name)):
                names.setdefault(name)
    elif _is_found_by_name(name, sys.modules.get(name)):
        names.setdefault(name)


_known: set[str] = set()


def known_here() -> set[str]:
    """The names of the modules of this process, gathered before it forks: to
    count references to a thousand names is to write to as many pages, which
    processes share as long as nobody writes to them."""
    if len(_known) < len(sys.modules):
        _known.update(sys.modules)
    return _known


class NewModules:
    """Tells what this process has imported since, over a pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._known = pipe, known_here()
        self._count = len(sys.modules)

    def tell(self) -> None:
        if len(sys.modules) == self._count:
            return
        new: list[str] = []
        try:
            for name in reversed(sys.modules):  # the last ones first
                if name in self._known:
                    break
                new.append(name)
        except RuntimeError:
            return  # a thread imports just now
        self._count = len(sys.modules)
        self._known.update(new)
        send_names(self._pipe, [name for name in reversed(new)
                                if _is_found_by_name(
                                    name, sys.modules.get(name))])


def send_names(pipe: int, names: Iterable[str]) -> None:
    line = b""
    try:
        for name in names:
            more = name.encode() + b"\n"
            if len(line) + len(more) > _PIPE_BYTES:
                os.write(pipe, line)
                line = b""
            line += more
        if line:
            os.write(pipe, line)
    except OSError:
        pass  # it is full, or nobody reads it: they are imported again then


def received_names(pipe: int) -> list[str]:
    """What has arrived on a pipe that does not block."""
    text = b""
    try:
        while piece := os.read(pipe, 1 << 16):
            text += piece
    except OSError:
        pass  # no more for now
    return text.decode(errors="replace").split()
