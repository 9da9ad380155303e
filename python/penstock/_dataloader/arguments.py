"""Arguments of DataLoader, checked as torch checks them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ..arguments import nearest
from ..errors import RequestError, refused


def _wrong(setting: str, why: str, next: str) -> RequestError:
    return refused("settings.value", "cannot make a DataLoader", setting, why,
                   next)


def is_iterable(dataset: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):
        return True
    if hasattr(dataset, "__getitem__"):
        return False
    if hasattr(dataset, "__iter__"):
        return True
    raise refused(
        "loader.dataset", "cannot make a DataLoader", "dataset",
        f"found {dataset!r:.80}, which has neither __getitem__ nor __iter__",
        "give a map-style data set (__getitem__ and __len__) or an iterable")


def length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:
        return None


def check_own(iterable: bool, on_bad: str, workers: str, seeds: str,
              seed: Any) -> None:
    """Those that torch's DataLoader has not."""
    _one_of("on_bad", on_bad, ("stop", "substitute", "mask"))
    _one_of("workers", workers, ("auto", "processes", "threads"))
    _one_of("seeds", seeds, ("auto", "batch", "worker"))
    _check_seed(seed)
    if on_bad != "stop" and iterable:
        raise refused(
            "loader.on_bad", "cannot make a DataLoader", f"on_bad={on_bad}",
            "an iterable data set cannot return another sample",
            "leave on_bad at \"stop\"")


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        near = nearest(str(value), allowed)
        raise _wrong(name, f"found {value!r}, allowed is one of "
                     + ", ".join(allowed),
                     f"did you mean '{near}'?" if near else "give one of them")


def _check_seed(seed: Any) -> None:
    if seed is not None and not (isinstance(seed, int)
                                 and 0 <= seed < 1 << 64):
        raise _wrong("seed", f"found {seed!r}, expected an integer from 0 to "
                     "2^64 - 1", "leave seed out to use torch's initial seed")


def check_workers(num_workers: int, timeout: float,
                  prefetch_factor: int | None, persistent_workers: bool,
                  context: Any) -> None:
    for name, value in (("num_workers", num_workers), ("timeout", timeout),
                        ("prefetch_factor", prefetch_factor or 0)):
        if value < 0:
            raise _wrong(name, f"{name} option should be non-negative, found "
                         f"{value}", "give 0 or more")
    if num_workers > 0:
        return _check_context(context)
    for name, asked in (("prefetch_factor", prefetch_factor is not None),
                        ("persistent_workers", persistent_workers),
                        ("timeout", timeout > 0),
                        ("multiprocessing_context", context is not None)):
        if asked:
            raise _wrong(name, f"{name} option could only be specified with "
                         "num_workers > 0", "leave it out, or set num_workers")


def _check_context(context: Any) -> None:
    if context is None:
        return
    import multiprocessing.context

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise _wrong("multiprocessing_context", "found no valid start "
                         f"method: {context!r}", "give \"fork\", or leave it "
                         "out")
    elif not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError("multiprocessing_context option should be a context "
                        f"object or a start method, but got {context!r}")
    if not is_fork(context):
        warnings.warn("this multiprocessing_context has no effect: workers are "
                      "forked by a clean server process", stacklevel=5)


def is_fork(context: Any) -> bool:
    """Whether workers are to be forked from the program itself."""
    return context == "fork" or getattr(
        context, "get_start_method", str)() == "fork"


def check_sampling(iterable: bool, batch_size: Any, shuffle: bool | None,
                   sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if iterable:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler),
                            ("batch_sampler", batch_sampler)):
            if value is not None:
                raise _wrong(name, "an iterable data set comes in its own "
                             f"order: expected unspecified {name} option, but "
                             f"got {name}={value}",
                             "shuffle in the data set's __iter__")
    if sampler is not None and shuffle:
        raise _exclusive("sampler", "shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise _exclusive("batch_sampler", "batch_size, shuffle, sampler, "
                             "and drop_last")
    elif batch_size is None:
        if drop_last:
            raise _exclusive("batch_size=None", "drop_last")
    elif not isinstance(batch_size, int) or isinstance(batch_size, bool) or \
            batch_size <= 0:
        raise _wrong("batch_size", "batch_size should be a positive integer "
                     f"value, but got batch_size={batch_size!r}",
                     "None returns items, not batches")


def _exclusive(one: str, others: str) -> RequestError:
    return _wrong(one.split("=")[0], f"{one} option is mutually exclusive "
                  f"with {others}", "leave one of the two out")


def warn_of_ranks() -> None:
    """Lightning and Accelerate give ranks their shares of torch's own loaders
    alone."""
    group = sys.modules.get("torch.distributed")
    if group is None or not group.is_available() or not group.is_initialized():
        return
    ranks = group.get_world_size()
    if ranks > 1:
        warnings.warn(f"each of the {ranks} ranks gets all samples of the "
                      "data set: give "
                      "sampler=torch.utils.data.DistributedSampler(dataset), "
                      "unless you want that", stacklevel=4)


def warn_of_workers(workers: int) -> None:
    cpus = len(os.sched_getaffinity(0))
    if workers > cpus:
        warnings.warn(f"{workers} workers on {cpus} processors: a suggested "
                      f"max number of workers is {cpus}, unless items wait "
                      "most of the time (loader.explain() shows it)",
                      stacklevel=5)


def described(loader: Any, own: bool, iterable: bool, threads: bool,
              batches: int | None) -> str:
    """A loader in a line, for people."""
    about = [type(loader.dataset).__name__]
    samples = None if iterable else length(loader.dataset)
    if samples is not None:
        about[0] += f" of {samples:,} samples"
    if loader.batch_size is not None:
        about.append(f"batch_size={loader.batch_size}")
    about += [f"{name}=True" for name in (
        "shuffle", "drop_last", "pin_memory", "persistent_workers")
        if getattr(loader, name)]
    if not own and not iterable:
        about.append(f"sampler={type(loader.sampler).__name__}")
    if loader.num_workers:
        about.append(f"num_workers={loader.num_workers}"
                     + (" (threads)" if threads else ""))
    told = "" if batches is None else f"; {batches:,} batches an epoch"
    return f"{type(loader).__name__}({', '.join(about)}{told})"
