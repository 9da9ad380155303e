"""Whether the seed of a generator alone leads to the same order again.

A saved state holds the seed of the user's torch.Generator, not the kilobytes
of its own state: a resume seeds it and draws all earlier epochs once more.
"""

from __future__ import annotations

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
              draws: bool) -> Iterator[Any]:
        """The epoch's batches. When they draw from the generator, their end
        is that of the epoch's draws."""
        if draws:
            return self._until_end(batches, epoch)
        self._next = epoch + 1, self._generator.get_state()
        return batches

    def _until_end(self, batches: Iterator[Any], epoch: int) -> Iterator[Any]:
        yield from batches
        self._next = epoch + 1, self._generator.get_state()

    def replayed(self, epoch: int) -> None:
        """The generator was seeded, and drawn from up to this epoch."""
        self._begun, self.exact = None, True
        self._next = epoch, self._generator.get_state()


def _same(one: _Place, other: _Place | None) -> bool:
    return (other is not None and one[0] == other[0]
            and bool((one[1] == other[1]).all()))
