"""What an object with `read(ids)` has, for `penstock.Loader`."""

from ._rows.callables import Source

__all__ = ["Source"]
