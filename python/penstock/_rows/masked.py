"""Masked arrays of numpy, whose masked values are missing: NaN, where the dtype
has one."""

from __future__ import annotations

from typing import Any


class Masked(Exception):
    """Values are masked, of a dtype without NaN."""

    next = ("pass x.filled(0) or another replacement, or "
            "x.astype(\"float64\"), in which they become NaN")


def nan_where_masked(array: Any) -> Any:
    """The values of a masked array, NaN where they are masked; anything else
    unchanged. Raises Masked."""
    if not hasattr(array, "filled") or not hasattr(array, "mask"):
        return array
    import numpy

    masked = int(numpy.count_nonzero(array.mask))
    if not masked:
        return numpy.ma.getdata(array)
    if array.dtype.kind not in "fc":
        raise Masked(f"{masked} values of the array are masked, and "
                     f"{array.dtype} has no NaN")
    return array.filled(numpy.nan)
