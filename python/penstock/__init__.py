"""Training data, read, prepared and fed by native threads.

    import penstock

    loader = penstock.open("job.json")
    for batch in loader:                  # one epoch
        tensors = batch.torch()           # name -> tensor, without a copy

or without a job file:

    loader = penstock.Loader("sqlite:train.sqlite#rows",
                             fields={"x": ["a", "b"], "y": ["label"]},
                             batch_size=256, shuffle=True)

or training a torch module of your own in the program's run:

    penstock.train("job.json", model=Net)

or over a data set of torch's kind:

    loader = penstock.DataLoader(dataset, batch_size=64, num_workers=4)

and predicting rows with the model of a run:

    penstock.predict("runs/latest", "new.csv", out="answers.csv")

with the rows of a job read and kept ahead of training:

    penstock.prepare("job.json")

or over a folder of pictures, as torchvision's ImageFolder:

    loader = penstock.ImageFolder("train", transform, batch_size=64)

jobs of a service on this machine (`penstock serve`):

    penstock.Client().submit("a name", {"epochs": 10})

a step that survives a shortage of memory:

    guard = penstock.OomGuard(optimizer, model)

What limits the loop that is there already:

    for batch in penstock.watch(loader):
        ...

Neither torch nor numpy is imported before it is asked for, and no thread is
started before a loader is opened. Messages go to the logger "penstock".
"""

import os
from typing import TYPE_CHECKING

try:
    from ._engine import Batch, Field
    from ._engine import version as __version__
except ImportError as failed:
    # It lacks its library, or one of another build stands in its place.
    if "penstock" not in str(failed):
        raise
    raise ImportError(
        f"{failed}. Penstock's package is incomplete, or parts of it come from "
        "another build: libpenstock_core.so belongs in lib/penstock of the "
        f"folder {os.path.dirname(__file__)}. Next: pip install "
        "--force-reinstall penstock") from failed
from .errors import (DeviceError, Error, InternalError, OutOfMemory,
                     RequestError, SourceError, TransformError)
from .loader import Loader, open
from .monitor import Monitor, trace
from .progress import progress

__all__ = ["Batch", "Client", "DataLoader", "DeviceError", "Error", "Field",
           "ImageFolder", "InternalError", "Loader", "Monitor", "OomGuard",
           "OutOfMemory", "RequestError", "SourceError", "Tokenizer",
           "TransformError", "__version__", "bench", "clear_device_cache",
           "device_info", "estimate_memory", "evaluate", "fast_math",
           "get_worker_info", "max_batch_size", "open", "predict", "prepare",
           "progress", "show", "start", "stop", "trace", "train", "watch"]

try:
    _began_in = os.getcwd()  # which "" on sys.path has meant
except OSError:
    _began_in = ""

if TYPE_CHECKING:
    from .benching import bench
    from .client import Client
    from .dataloader import DataLoader, get_worker_info, start, stop
    from .device_cache import clear_device_cache
    from .images import ImageFolder, show
    from .memory import (OomGuard, device_info, estimate_memory, fast_math,
                         max_batch_size)
    from .predictions import evaluate, predict
    from .preparing import prepare
    from .tokenizer import Tokenizer
    from .training import train
    from ._watch.watched import watch
else:
    _LATER = {"bench": "benching", "Client": "client",
              "DataLoader": "dataloader",
              "get_worker_info": "dataloader", "start": "dataloader",
              "stop": "dataloader", "clear_device_cache": "device_cache",
              "ImageFolder": "images", "show": "images",
              "OomGuard": "memory", "device_info": "memory",
              "estimate_memory": "memory", "fast_math": "memory",
              "max_batch_size": "memory",
              "evaluate": "predictions", "predict": "predictions",
              "prepare": "preparing", "Tokenizer": "tokenizer",
              "train": "training", "watch": "_watch.watched"}

    def __getattr__(name):
        """What few need is imported when it is asked for."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute "
                                 f"{name!r}")
        import importlib

        module = importlib.import_module(f"{__name__}.{_LATER[name]}")
        return globals().setdefault(name, getattr(module, name))

    def __dir__():
        return sorted({*globals(), *__all__})
