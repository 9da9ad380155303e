"""What an object with `read(positions)` has, for `penstock.Loader`."""

from ._rows.sources import PositionSource

__all__ = ["PositionSource"]
