"""Which samples, in which order: pure functions of a seed and a position.

The same keyed permutation as the engine's (penstock/sampling), for a whole
array of positions at once: a balanced Feistel network of six rounds over the
next even power of two, walked until it falls inside.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_SHUFFLE = 0x6F72646572  # "order"
_LEAST_HALF_BITS = 3
_ROUNDS = 6
_BLOCK = 4096  # positions that are worked out at a time


def _mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class Random:
    """The engine's counter-based draws: a key gives a stream of its own."""

    def __init__(self, seed: int, epoch: int, sample: int,
                 operation: int) -> None:
        state = _mix((seed + _STEP) & _MASK)
        for number, part in enumerate((epoch, sample, operation), 2):
            state = _mix(state ^ ((part + number * _STEP) & _MASK))
        self._state = state

    def next(self) -> int:
        self._state = (self._state + _STEP) & _MASK
        return _mix(self._state)

    def below(self, n: int) -> int:
        return self.next() * n >> 64


def _mix_array(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


class Permutation:
    """A keyed bijection of 0..n-1 that needs no memory."""

    def __init__(self, n: int, key: int) -> None:
        self._n = n
        bits = (n - 1).bit_length()
        self._half_bits = max((bits + 1) // 2, _LEAST_HALF_BITS)
        random = Random(key, 0, 0, 0)
        self._keys = [np.uint64(random.next()) for _ in range(_ROUNDS)]

    def __call__(self, positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The images of an array of positions, as int64."""
        at = np.array(positions, dtype=np.uint64)
        self._round_trip(at, slice(None))
        outside = np.flatnonzero(at >= self._n)
        while len(outside):
            self._round_trip(at, outside)
            outside = outside[at[outside] >= self._n]
        return at.astype(np.int64)

    def _round_trip(self, at: npt.NDArray[np.uint64],
                    which: slice | npt.NDArray[np.intp]) -> None:
        half = np.uint64((1 << self._half_bits) - 1)
        shift = np.uint64(self._half_bits)
        left, right = at[which] >> shift, at[which] & half
        for key in self._keys:
            left, right = right, left ^ (_mix_array(right + key) & half)
        at[which] = (left << shift) | right


class Order:
    """The samples of each step of each epoch. `n` samples, `batch_size` of
    them in a step; without shuffling they come as they are."""

    def __init__(self, n: int, batch_size: int, seed: int = 0,
                 shuffle: bool = False, drop_last: bool = False) -> None:
        self.n, self.batch_size, self.seed = n, batch_size, seed
        self.shuffle, self.drop_last = shuffle, drop_last
        self._epoch: int | None = None
        self._block: list[int] | None = None
        self._begin = self._end = 0  # the positions that the block covers

    def steps(self) -> int:
        whole, rest = divmod(self.n, self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    def ids(self, epoch: int, step: int) -> list[int]:
        """The samples of a step, as a list of int. No step is walked to."""
        begin = step * self.batch_size
        end = min(begin + self.batch_size, self.n)
        if not self.shuffle:
            return list(range(begin, end))
        if self._epoch != epoch:
            key = Random(self.seed, epoch, 0, _SHUFFLE).next()
            self._permutation = Permutation(self.n, key)
            self._epoch, self._block = epoch, None
        if self._block is None or not (self._begin <= begin
                                       and end <= self._end):
            self._begin = begin
            self._end = min(max(begin + _BLOCK, end), self.n)
            self._block = self._permutation(
                np.arange(self._begin, self._end, dtype=np.uint64)).tolist()
        return self._block[begin - self._begin:end - self._begin]
