"""One line on standard error that says how a loop goes.

    ep 2/10 412/980 ██████░░░░░░░░ [03:10<04:22] 2.16 it/s | AU 71 % <- data 22 %

The arrow points at where the missing time goes. The line is the engine's, as
`penstock train` shows it: it fits the terminal, and what else there is to say
(memory, processors) follows where there is room.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import (TYPE_CHECKING, Any, Callable, Iterable, Iterator,
                    Protocol, TextIO, TypeVar)

from .printing import printable

if TYPE_CHECKING:
    from .explanation import Explanation

_Batch = TypeVar("_Batch")
_Made = TypeVar("_Made", covariant=True)

_REDRAWN_S = 0.25  # on a terminal and in a notebook
_PLAIN_S = 30.0    # a line of its own, elsewhere


class Progressing(Protocol[_Made]):
    """What `progress()` takes: every loader of this package."""

    def progress(self, *, epochs: int = 0, file: TextIO | None = None
                 ) -> Iterator[_Made]: ...


def progress(loader: Progressing[_Made], *, epochs: int = 0,
             file: TextIO | None = None) -> Iterator[_Made]:
    """An epoch of `loader`, as `for batch in loader` gives it, and a line on
    standard error (or `file`): redrawn four times a second on a terminal and
    in a notebook, a plain line every 30 s elsewhere. `epochs`, where there is a
    last one, is for the time that is left."""
    return loader.progress(epochs=epochs, file=file)


class Screen:
    """Where a line is shown. It never fails: a loop is worth more."""

    def __init__(self, file: TextIO | None,
                 now: Callable[[], float] = time.monotonic) -> None:
        # None: no file, or it failed.
        self._file: TextIO | None = sys.stderr if file is None else file
        self._now = now
        self._live = _is_redrawn(self._file)
        self._drawn = 0  # characters of the line that the cursor stands after
        self._next = now() + (_REDRAWN_S if self._live else _PLAIN_S)

    def is_due(self) -> bool:
        return self._file is not None and self._now() >= self._next

    def columns(self) -> int:
        """That a line may fill; 0: there is no limit."""
        return _width(self._file) - 1 if self._live else 0

    def show(self, text: str) -> None:
        if self._live:
            text = text[:self.columns()]
            self._write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
            self._next = self._now() + _REDRAWN_S
        else:
            self._write(text + "\n")
            self._next = self._now() + _PLAIN_S

    def end(self, text: str) -> None:
        """The last state of the line stays."""
        if self._live and text:
            self.show(text)
        if self._drawn:
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            if self._file is not None:
                self._file.write(text)
                self._file.flush()
        except (OSError, ValueError):  # full, gone or closed: say no more
            self._file = None


def shown(batches: Iterable[_Batch], line: Callable[[int], str],
          screen: Screen) -> Iterator[_Batch]:
    """`batches`, with the line after each that is due, in so many columns.
    Drawing comes before the next batch is taken, so that Ctrl-C loses none."""
    last = ""
    try:
        for batch in batches:
            yield batch
            del batch  # or its memory would wait for the next one
            if screen.is_due():
                screen.show(line(screen.columns()))
        last = line(screen.columns())
    finally:
        screen.end(last)


class Shown(Iterator[_Batch]):
    """Batches with their line, and the verdict of the loader that makes
    them, for who watches them."""

    def __init__(self, batches: Iterator[_Batch],
                 explain: Callable[[], Explanation]) -> None:
        self._batches, self.explain = batches, explain

    def __iter__(self) -> Iterator[_Batch]:
        return self._batches

    def __next__(self) -> _Batch:
        return next(self._batches)


def _is_redrawn(file: TextIO | None) -> bool:
    try:
        return file is not None and (
            file.isatty() or type(file).__module__.startswith("ipykernel"))
    except (AttributeError, ValueError):  # an object of the user's; closed
        return False


def _width(file: TextIO | None) -> int:
    if file is None:
        return 80
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):
        return 200  # a notebook


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


#: For who wants to hear nothing.
NOWHERE: Any = _Nowhere()


class Listener:
    """Shows what a run or a preparation says, as the program does."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._screen = Screen(file)
        self._last = ""

    def note(self, line: str) -> None:
        self.end()
        with contextlib.suppress(OSError, ValueError):
            print(printable(line), file=self._file or sys.stderr, flush=True)

    def columns(self) -> int:
        return self._screen.columns()

    def progress(self, line: str) -> None:
        self._last = line = printable(line, lines=False)
        if self._screen.is_due():
            self._screen.show(line)

    def end(self) -> None:
        self._screen.end(self._last)
        self._last = ""
