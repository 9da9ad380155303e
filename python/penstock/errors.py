"""What can go wrong, by whom it is addressed to.

Every error says what was done, on which thing, what was found and expected,
and what to try next: the attributes `what`, `where`, `why` and `next`. `code`
is stable and dotted, for scripts ("sqlite.locked"); docs/reference/errors
lists all.
"""

from __future__ import annotations

from typing import TypeVar

from .printing import printable

__all__ = ["Error", "RequestError", "SourceError", "TransformError",
           "DeviceError", "OutOfMemory", "InternalError"]


class Error(Exception):
    """An error of Penstock; its text is one line for people.

    >>> try:
    ...     raise made("source", "the file is gone", "sqlite.open")
    ... except OSError as error:
    ...     print(error.kind, error.code, error)
    source sqlite.open the file is gone
    """

    kind: str = ""
    code: str = ""
    what: str = ""
    where: str = ""
    why: str = ""
    next: str = ""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[object, ...]:
        return _filled, (type(self), str(self), self.code, self.what,
                         self.where, self.why, self.next)


class RequestError(Error, ValueError):
    """The settings or the call: exit code 2 of the program."""

    kind = "request"


class SourceError(Error, OSError):
    """The place where the data lives."""

    kind = "source"


class TransformError(Error, ValueError):
    """What the data says."""

    kind = "transform"


class DeviceError(Error, RuntimeError):
    """The accelerator."""

    kind = "device"


class OutOfMemory(Error, MemoryError):
    """A memory limit that is known to have been reached."""

    kind = "out_of_memory"


class InternalError(Error, RuntimeError):
    """A bug in Penstock."""

    kind = "internal"


_KINDS: dict[str, type[Error]] = {
    kind.kind: kind for kind in (RequestError, SourceError, TransformError,
                                 DeviceError, OutOfMemory, InternalError)}


_Kind = TypeVar("_Kind", bound=Error)


def made(kind: str, text: str, code: str = "", what: str = "", where: str = "",
         why: str = "", next: str = "") -> Error:
    """The exception of that kind; the engine calls this."""
    return _filled(_KINDS[kind], text, code, what, where, why, next)


def worded(kind: type[_Kind], code: str, what: str, where: str = "",
           why: str = "", next: str = "") -> _Kind:
    """An error of that class with its parts, in the engine's wording.

    >>> worded(RequestError, "a.code", "cannot count", "the sheep",
    ...        "found none", "bring some")
    RequestError('cannot count at the sheep: found none; bring some')
    """
    text = what + (f" at {where}" if where else "")
    text += (f": {why}" if why else "") + (f"; {next}" if next else "")
    return _filled(kind, text, code, what, where, why, next)


def said(error: BaseException) -> str:
    """Its type and text, whatever making that text raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, whose text cannot be made"


def again(kept: BaseException) -> BaseException:
    """What a function raised, once more: the engine calls this. A copy, so
    that what it keeps does not learn which frames each has been raised through.

    >>> first = worded(SourceError, "a.code", "cannot count")
    >>> again(first)
    SourceError('cannot count')
    >>> again(first) is first
    False
    """
    if not isinstance(kept, Error):
        return kept
    made = _filled(type(kept), str(kept), kept.code, kept.what, kept.where,
                   kept.why, kept.next)
    made.__cause__ = kept.__cause__
    return made


def refused(code: str, what: str, where: str, why: str,
            next: str) -> RequestError:
    """A RequestError with its parts."""
    return worded(RequestError, code, what, where, why, next)


def _filled(kind: type[_Kind], text: str, code: str, what: str, where: str,
            why: str, next: str) -> _Kind:
    error = kind(printable(text))
    error.code, error.why = code, printable(why)
    error.what, error.where, error.next = (
        printable(part, lines=False) for part in (what, where, next))
    return error
