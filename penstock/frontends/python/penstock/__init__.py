"""Training data, read, prepared and fed by native threads.

    import penstock

    loader = penstock.open("job.json")
    for batch in loader:                  # one epoch
        tensors = batch.torch()           # name -> tensor, without a copy

or without a job file:

    loader = penstock.Loader("sqlite:train.sqlite#rows",
                             fields={"x": ["a", "b"], "y": ["label"]},
                             batch_size=256, shuffle=True)

Neither torch nor numpy is imported before it is asked for, and no thread is
started before a loader is opened. Messages go to the logger "penstock".
"""

from ._engine import Batch, Field
from ._engine import version as __version__
from .errors import (DeviceError, Error, InternalError, OutOfMemory,
                     RequestError, SourceError, TransformError)
from .loader import Loader, open

__all__ = ["Batch", "DeviceError", "Error", "Field", "InternalError", "Loader",
           "OutOfMemory", "RequestError", "SourceError", "TransformError",
           "__version__", "open"]
