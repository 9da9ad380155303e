"""Whether a loss is a sum over rows or a mean of them."""

from __future__ import annotations

import math

_NEAR = 0.2  # of what is expected: random masks and batch norm differ a little


def reduction_of(first: float, second: float, both: float,
                 rows: tuple[int, int]) -> str | None:
    """"sum" or "mean", by the losses of two groups of rows and that of both
    together; None where neither explains it, or the losses cannot tell.

    >>> reduction_of(6.0, 2.0, 8.0, (3, 1))
    'sum'
    >>> reduction_of(2.0, 2.0, 2.0, (3, 1))
    'mean'
    >>> reduction_of(2.0, 2.0, 9.0, (3, 1)) is None
    True
    """
    total = first + second
    mean = (first * rows[0] + second * rows[1]) / sum(rows)
    if not all(map(math.isfinite, (total, mean, both))):
        return None
    apart = abs(total - mean)
    if apart < 1e-6 * max(abs(first), abs(second), 1e-30):
        return None
    if abs(both - total) < _NEAR * apart:
        return "sum"
    return "mean" if abs(both - mean) < _NEAR * apart else None
