"""Arguments: torch's names, and help with those that are not known."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Callable, Iterable, Mapping, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

# Arguments of torch.utils.data.DataLoader that decide what a batch of Loader
# holds. To ignore them would be wrong.
ELSEWHERE: Mapping[str, str] = {
    "sampler": "the order is set by 'shuffle', 'weights' and 'seed'",
    "batch_sampler": "the order is set by 'shuffle', 'seed' and 'batch_size'",
    "collate_fn": "the fields say how rows become a batch",
    "worker_init_fn": "there are no worker processes: nothing to set up",
    "generator": "the order is set by 'seed'",
    "dataset": "the first argument, 'source', takes it",
    "num_replicas": "the argument is called 'world'",
    "world_size": "the argument is called 'world'",
}

# Those that change no batch, and what happens instead.
NO_MEANING: Mapping[str, str] = {
    "pin_memory": "batches are always staged in pinned memory when they are "
                  "copied to a GPU",
    "pin_memory_device": "batches are always staged in pinned memory when "
                         "they are copied to a GPU",
    "persistent_workers": "threads live as long as the loader",
    "timeout": "a reader that fails raises an error, and Ctrl-C ends a wait",
    "multiprocessing_context": "there are no worker processes",
    "in_order": "batches always come in order",
}

_told: set[str] = set()


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that resembles `word` most, or "".

    >>> nearest("batchsize", ["batch_size", "seed"])
    'batch_size'
    >>> nearest("xyzzy", ["batch_size", "seed"])
    ''
    """
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return close[0] if close else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What follows the name of an argument that is not known."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean '{near}'?" if near else "choose one of: " + ", ".join(
        names)


def checked(elsewhere: Mapping[str, str]) -> Callable[
        [Callable[_Given, _Made]], Callable[_Given, _Made]]:
    """Of an argument that the function does not know, says what is near, or
    where `elsewhere` says that it has gone.

    >>> @checked({"who": "it is called 'name'"})
    ... def greet(*, name: str) -> str: return name
    >>> greet(nmae="you")
    Traceback (most recent call last):
    TypeError: greet() has no argument 'nmae': did you mean 'name'?
    >>> greet(who="you")
    Traceback (most recent call last):
    TypeError: greet() has no argument 'who': it is called 'name'
    """
    def changed(call: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        names = [name for name in inspect.signature(call).parameters
                 if name != "self"]
        shown = call.__qualname__.removesuffix(".__init__").split(".")[-1]

        @functools.wraps(call)
        def wrapper(*given: _Given.args, **named: _Given.kwargs) -> _Made:
            for name in named:
                if name not in names:
                    why = elsewhere.get(name) or did_you_mean(name, names)
                    raise TypeError(
                        f"{shown}() has no argument '{name}': {why}")
            return call(*given, **named)

        return wrapper

    return changed


def tell_no_meaning(given: Mapping[str, object]) -> None:
    """Says of each such argument, once in a process, that it does nothing."""
    for name, value in given.items():
        if not value or name in _told:
            continue
        _told.add(name)
        warnings.warn(f"'{name}' is ignored: {NO_MEANING[name]}",
                      stacklevel=4)
