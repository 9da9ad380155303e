"""One task: items come from the data set and become a batch.

The same for worker processes, threads and the thread of the loop.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import said
from .collate import (collate_by_numpy, default_collate, default_convert,
                      same, tensor_later, tensor_now, torch_module)

Seeds = Sequence[int]  # of a batch: of each grain, then of its collate_fn

_MASK = (1 << 64) - 1
_SUBSTITUTE = 0x737562            # "sub"
_TRIES = 10
GRAINS = 8  # places in a batch where the generators are seeded again


def asks_many(dataset: Any) -> bool:
    """Whether the data set answers for a whole batch at a time."""
    subset = getattr(sys.modules.get("torch.utils.data"), "Subset", None)
    while subset is not None and getattr(
            type(dataset), "__getitems__", None) is subset.__getitems__:
        dataset = dataset.dataset  # it would ask one by one all the same
    return callable(getattr(dataset, "__getitems__", None))


def grain_of(ids: Any) -> int:
    """Rows between two seedings: a function of the batch alone, so that the
    same rows see the same numbers, whichever worker fetches them."""
    return max(1, -(-count_of(ids) // GRAINS))


def seed_generators(seed: int, numpy_seed: Any = None) -> None:
    """Python's, numpy's and torch's global generators of this process."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed >> 7 & 0xFFFFFFFF if numpy_seed is None
                          else numpy_seed)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.default_generator.manual_seed(seed & ((1 << 63) - 1))


def seeded_rows(seeds: Seeds | None, grain: int,
                first_row: int) -> Callable[[int], None]:
    """A function that seeds the generators where a row begins a grain."""
    if seeds is None:
        return lambda position: None
    drawn = seeds

    def at(position: int) -> None:
        number, inside = divmod(first_row + position, grain)
        if not inside:
            seed_generators(drawn[number])
    return at


def count_of(ids: Any) -> int:
    return len(ids) if isinstance(ids, (list, tuple)) else 1


class Bad:
    """An item that could not be had, when `on_bad` is not "stop"."""

    def __init__(self, index: Any, error: BaseException) -> None:
        self.index = index
        self.error = said(error)[:500]


BadRows = Sequence[tuple[int, Bad]]  # each with its row in the batch


class Fetcher:
    """Asks a map-style data set."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None,
                 settings: Settings) -> None:
        self.dataset, self.settings = dataset, settings
        self.collate_fn = collate_fn
        self._many = (dataset.__getitems__ if settings.batched
                      and asks_many(dataset) else None)

    def items(self, ids: Any, seeds: Seeds | None = None, grain: int = 1,
              first_row: int = 0) -> tuple[Any, list[tuple[int, Bad]]]:
        """(items, bad ones). An error names the index that raised it. In place
        of a list of items, __getitems__ may give the batch itself."""
        seed_at = seeded_rows(seeds, grain, first_row)
        bad: list[tuple[int, Bad]] = []
        if self._many is not None and self.settings.on_bad == "stop":
            seed_at(0)
            given: Any = self._many(ids)
            if isinstance(given, list) and len(given) != len(ids) and \
                    self.collate_fn is None:
                raise ValueError(f"__getitems__ was asked for {len(ids)} "
                                 f"items and gave {len(given)}")
            return given, bad
        items = []
        for position, index in enumerate(ids):
            seed_at(position)
            try:
                items.append(self.dataset[index])
            except Exception as error:
                if self.settings.on_bad == "stop":
                    note_detail(error, self._named(index))
                    raise
                bad.append((first_row + position, Bad(index, error)))
                items.append(self._instead(index, error))
        return items, bad

    def _named(self, index: Any) -> str:
        said, at_start = f"dataset[{index!r}]", self.settings.length
        now = at_start
        try:
            now = len(self.dataset)
        except Exception:
            pass  # it has none, or has none any more
        if at_start is not None and now != at_start:
            said += f"; its length was {at_start} and is now {now}"
        return said

    def _instead(self, index: Any, error: Exception) -> Any:
        """A sample that a draw keyed by the bad index names; the same
        whoever fetches it and in whatever epoch."""
        from .._engine import Random  # a worker has none up to here

        sample = (index & _MASK if isinstance(index, int)
                  else zlib.crc32(repr(index).encode()))
        draws = Random(self.settings.seed, 0, sample, _SUBSTITUTE)
        length = self.settings.length or 0
        tries = _TRIES if length else 0
        for _ in range(tries):
            try:
                return self.dataset[draws.below(length)]
            except Exception as another:
                error = another
        note_detail(error, f"{self._named(index)}, and {tries} samples in its "
                    "place")
        raise error

    def collated(self, items: Any, bad: BadRows, ids: Sequence[Any],
                 seeds: Seeds | None = None) -> Any:
        """The batch; with on_bad "mask", (batch, weights)."""
        settings = self.settings
        if self.collate_fn is not None:
            if seeds is not None:
                seed_generators(seeds[GRAINS])
            try:
                batch = self.collate_fn(items)
            except Exception as error:
                if settings.batched:
                    note_detail(error, f"collate_fn of {len(ids)} items")
                raise
        elif settings.batched and isinstance(items, list):
            batch = default_collate(items, settings.to_tensor, ids)
        else:
            batch = default_convert(items, settings.to_tensor)
        if settings.on_bad != "mask":
            return batch
        weights = [1.0] * len(ids)
        for row, _ in bad:
            weights[row] = 0.0
        return [batch, collate_by_numpy(weights, settings.to_tensor)]

    def single(self, index: Any,
               seeds: Seeds | None = None) -> tuple[Any, BadRows]:
        """For batch_size None: one index, one item."""
        items, bad = self.items([index], seeds)
        return self.collated(items[0], bad, [index], seeds), bad

    def batch(self, ids: Any, seeds: Seeds | None = None,
              grain: int = 1) -> tuple[Any, BadRows]:
        if not self.settings.batched:
            return self.single(ids, seeds)
        items, bad = self.items(ids, seeds, grain)
        return self.collated(items, bad, ids, seeds), bad


class Stream:
    """Asks an iterable data set for the next batch, StopIteration at its
    end."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None,
                 settings: Settings) -> None:
        self.settings = settings
        self._fetch = Fetcher(dataset, collate_fn, settings)
        self._items, self._ended, self._taken = iter(dataset), False, 0

    def batch(self, count: Any, discard: bool = False) -> Any:
        if self._ended:
            raise StopIteration
        if not self.settings.batched:
            item = next(self._items)
            self._taken += 1
            return None if discard else self._collated(
                item, [self._taken - 1])
        items = []
        for _ in range(count):
            try:
                items.append(next(self._items))
            except StopIteration:
                self._ended = True
                break
        first, self._taken = self._taken, self._taken + len(items)
        if not items or (self.settings.drop_last and len(items) < count):
            raise StopIteration
        return None if discard else self._collated(
            items, range(first, self._taken))

    def _collated(self, items: Any, ids: Sequence[int]) -> Any:
        try:
            return self._fetch.collated(items, (), ids)
        except StopIteration as error:
            raise no_end(error) from error


def no_end(error: StopIteration) -> RuntimeError:
    """For one of the user's code, which would end the loop in silence."""
    detail = detail_of(error)
    return RuntimeError("StopIteration was raised where a batch was made"
                        + (f" ({detail})" if detail else ""))


def note_detail(error: BaseException, detail: str) -> None:
    """Lets `error` say what was requested when it was raised."""
    setattr(error, "_penstock_detail", detail)


def detail_of(error: BaseException) -> str:
    """What was requested when `error` was raised, or ""."""
    return str(getattr(error, "_penstock_detail", ""))


class Settings:
    """What a worker has to know besides the data set."""

    def __init__(self, batched: bool, drop_last: bool, on_bad: str,
                 length: int | None, seed: int, tensors: bool) -> None:
        self.batched, self.drop_last = batched, drop_last
        self.on_bad, self.length, self.seed = on_bad, length, seed
        self._tensors = tensors
        self.in_worker = False

    @property
    def to_tensor(self) -> Callable[[Any], Any]:
        """What becomes of an array that was collated."""
        if not self._tensors:
            return same
        if torch_module() is not None:
            return tensor_now
        return tensor_later if self.in_worker else same
