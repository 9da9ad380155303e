"""What an epoch of a loader gives."""

import numpy


def all_rows(loader):
    """The batches of an epoch, put together."""
    found = {}
    for batch in loader:
        for name, array in batch.numpy().items():
            found.setdefault(name, []).append(array.copy())
    return {name: numpy.concatenate(parts) for name, parts in found.items()}
