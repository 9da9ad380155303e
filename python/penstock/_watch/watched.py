"""One line around whatever a loop iterates over, which says what limits it:

    for batch in penstock.watch(loader):
        train(batch)

What is watched behaves as before: it is a proxy of the same class, as far as
isinstance() can see, whose attributes and operators are those of the loop.
"""

from __future__ import annotations

import collections.abc
import contextlib
import copy
import functools
import operator
import os
from typing import Any, Generic, Iterable, Iterator, TextIO, TypeVar

from ..explanation import Explanation
from ..page import with_page
from .timed_items import Stamped
from .watching import Watch

_Batch = TypeVar("_Batch")

_SHOWN_AFTER_S = 30.0

# What Python does with any object by itself, or Watched does.
_NOT_FORWARDED = frozenset((
    "__abstractmethods__", "__annotations__", "__class__", "__class_getitem__", "__copy__", "__deepcopy__", "__del__",
    "__delattr__", "__dict__", "__dir__", "__doc__", "__firstlineno__",
    "__getattr__", "__getattribute__", "__getnewargs__", "__getnewargs_ex__",
    "__getstate__", "__init__", "__init_subclass__", "__iter__", "__module__",
    "__new__", "__next__", "__orig_bases__", "__parameters__", "__reduce__",
    "__reduce_ex__", "__setattr__", "__setstate__", "__slots__",
    "__static_attributes__", "__subclasshook__", "__weakref__"))


class Epoch(Iterator[_Batch]):
    """An iteration, watched: `send`, `throw` and all else are those of the
    iterator behind it."""

    def __init__(self, watch: Watch) -> None:
        self._batches: Iterator[Any]
        self._counts = False  # for __del__(), should the next line raise
        self._watch = watch
        self._batches, self._counts = watch.begin()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._batches)

    def __iter__(self) -> Epoch[_Batch]:
        return self

    def __next__(self) -> _Batch:
        batch: _Batch = self._next(next, self._batches)
        return batch

    def _next(self, ask: Any, *arguments: Any) -> Any:
        if self._counts:
            self._watch.batch_wanted()
        try:
            batch = ask(*arguments)
        except StopIteration:
            self._end(left=False)
            raise
        except BaseException:
            if self._counts:
                self._counts = False
                self._watch.failed()
            raise
        made = None
        if isinstance(batch, Stamped):
            made, batch = batch.made, batch.batch
        if self._counts:
            self._watch.batch_came(batch, made)
        return batch

    def _end(self, left: bool) -> None:
        if self._counts:
            self._counts = False
            self._watch.end(left)

    def __length_hint__(self) -> int:
        return operator.length_hint(self._batches)

    def __getattr__(self, name: str) -> Any:
        if name in ("_batches", "_counts", "_watch"):  # while it is made
            raise AttributeError(name)
        found = getattr(self._batches, name)
        if name == "close":
            return self._closing(found)
        return functools.partial(self._next, found) \
            if name in ("send", "throw") else found

    def _closing(self, close: Any) -> Any:
        def closed() -> Any:
            self._end(left=True)
            return close()
        return closed

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._batches.__reduce_ex__(protocol)

    def __del__(self) -> None:
        self._end(left=True)


class Watched(Generic[_Batch]):
    """A loop's iterable, watched: see watch()."""

    __slots__ = ("__weakref__", "_penstock_watch")
    _penstock_watch: Watch

    def __init__(self, watch: Watch) -> None:
        object.__setattr__(self, "_penstock_watch", watch)

    def __iter__(self) -> Iterator[_Batch]:
        return Epoch(self._penstock_watch)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was not made whole
            self._penstock_watch.dropped()

    def explain(self) -> Explanation:
        """What limits the loop, and what to change; any time."""
        return self._penstock_watch.explain()

    def report(self, path: str | os.PathLike[str] | None = None
               ) -> dict[str, Any]:
        """The numbers and the verdict as a dict, and with `path` also as a
        page (HTML) like that of a run: "au" and "parts" (None and
        empty after too few batches), "samples_per_s", "verdict",
        "worst_steps", "pauses", "machine", and for a DataLoader of torch
        "drop_in", the predicted gain of penstock's."""
        watch_ = self._penstock_watch
        return with_page(watch_.report(), path,
                         f"a loop over a {type(watch_.loop).__name__}")

    # -- all else is the loop's

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        found: dict[str, Any] = self._penstock_watch.loop.__dict__
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "_penstock_watch":  # while it is made
            raise AttributeError(name)
        return getattr(self._penstock_watch.loop, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._penstock_watch.loop, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._penstock_watch.loop, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._penstock_watch.loop), "explain", "report"})

    def __copy__(self) -> Any:
        return self._again(copy.copy(self._penstock_watch.loop))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._again(copy.deepcopy(self._penstock_watch.loop, memo))

    def _again(self, loop: Any) -> Any:
        watch_ = self._penstock_watch
        return watch(loop, file=watch_.file, after_s=watch_.after_s)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        watch_ = self._penstock_watch
        return _unpickled, (watch_.loop, watch_.after_s)


def _unpickled(loop: Any, after_s: float) -> Any:
    return watch(loop, after_s=after_s)


def _forwarded(name: str, found: Any) -> Any:
    """A special method, which Python looks for in the class alone."""
    if not callable(found):
        return property(lambda self: getattr(self._penstock_watch.loop, name)
                        ) if hasattr(found, "__get__") else found

    def forward(self: Any, *arguments: Any, **named: Any) -> Any:
        loop = self._penstock_watch.loop
        made = getattr(type(loop), name)(loop, *map(_behind, arguments),
                                         **named)
        return self if made is loop else made

    return forward


def _behind(one: Any) -> Any:
    return one._penstock_watch.loop if isinstance(one, Watched) else one


def _next_of(self: Any) -> Any:
    return next(self._penstock_watch.loop)


@functools.lru_cache(maxsize=256)
def _class_for(loop: type) -> type[Watched[Any]]:
    """A class whose special methods are those of the loop's class."""
    names = {name: getattr(loop, name) for name in dir(loop)
             if name.startswith("__") and name.endswith("__")
             and name not in _NOT_FORWARDED}
    own: dict[str, Any] = {name: _forwarded(name, found)
                           for name, found in names.items()}
    if hasattr(loop, "__next__"):
        own["__next__"] = _next_of
    own["__slots__"] = ()
    own["__class__"] = property(lambda self: type(self._penstock_watch.loop))
    own["__doc__"] = loop.__doc__
    own["__module__"], own["__qualname__"] = loop.__module__, loop.__qualname__
    made = type(loop.__name__, (Watched,), own)  # the name in Python's errors
    for of in collections.abc.Sequence, collections.abc.Mapping:
        if issubclass(loop, of):
            of.register(made)  # for `match`
    return made


def watch(loop: Iterable[_Batch], *, file: TextIO | None = None,
          after_s: float = _SHOWN_AFTER_S) -> Watched[_Batch]:
    """Watches a loop: `for batch in penstock.watch(loader): ...`.

    `loop` is a DataLoader of torch, or anything else that gives batches. After
    `after_s` seconds of the loop, and at its end (when no more epochs can
    come, or the program ends), the verdict is printed to `file` (standard
    error): what limits, why, what to change and what that would give. `.explain()` gives it at any time, `.report()` as
    a dictionary. All else is the loop's: attributes that are read and set, its
    length, its truth, `isinstance()`, operators, `with`. What is watched
    already is returned unchanged.
    """
    if isinstance(loop, Watched):
        return loop
    return _class_for(type(loop))(Watch(loop, file, after_s))
