"""Whether the seed of a generator alone leads to the same order again.

A saved state holds the seed of the user's torch.Generator, not the kilobytes
of its own state: a resume seeds it and draws all earlier epochs once more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

_Place = tuple[int, Any]  # an epoch, and the generator's state


class Replay:
    """`exact` as long as that is so: the first epoch began where the
    generator was seeded, and each later one where the one before it was drawn
    to its end."""

    def __init__(self, generator: Any) -> None:
        self._generator, self.exact = generator, True
        self._begun: _Place | None = None
        self._next: _Place | None = None

    def begin(self, epoch: int) -> None:
        """Before anything of the epoch is drawn; again, when that was taken
        back."""
        now = epoch, self._generator.get_state()
        if self._begun is None and self._next is None:
            self._next = 0, type(self._generator)(
                self._generator.device).manual_seed(
                    self._generator.initial_seed()).get_state()
        self.exact &= _same(now, self._next) or _same(now, self._begun)
        self._begun, self._next = now, None

    def noted(self, batches: Iterator[Any], epoch: int,
              count: int | None) -> Iterator[Any]:
        """The batches of the epoch, `count` of them where that is known. With
        the last one their end is drawn, too: a loop that counts its steps
        does not ask for it."""
        self._expect(epoch + 1)  # if they draw nothing
        return self._until_end(batches, epoch, count)

    def _until_end(self, batches: Iterator[Any], epoch: int,
                   count: int | None) -> Iterator[Any]:
        for number, ids in enumerate(batches, 1):
            more: list[Any] = []
            if number == count:
                more = list(itertools.islice(batches, 1))
                self._expect(epoch + 1)
            yield ids
            yield from more
        self._expect(epoch + 1)

    def replayed(self, epoch: int) -> None:
        """The generator was seeded, and drawn from up to this epoch."""
        self._begun, self.exact = None, True
        self._expect(epoch)

    def _expect(self, epoch: int) -> None:
        self._next = epoch, self._generator.get_state()


def _same(one: _Place, other: _Place | None) -> bool:
    return (other is not None and one[0] == other[0]
            and bool((one[1] == other[1]).all()))
