"""The arguments of DataLoader, checked as torch checks them."""
import difflib
import os
import sys
import warnings

from .errors import RequestError


def is_iterable(dataset):
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):
        return True
    if hasattr(dataset, "__getitem__"):
        return False
    if hasattr(dataset, "__iter__"):
        return True
    raise RequestError(
        "loader.dataset", "this is no data set", type(dataset).__name__,
        "it has neither __getitem__ nor __iter__",
        "give a map-style data set (__getitem__ and __len__) or an iterable")


def length(dataset):
    try:
        return len(dataset)
    except TypeError:
        return None


def refuse_unknown(unknown, known):
    if not unknown:
        return
    name = next(iter(unknown))
    near = difflib.get_close_matches(name, known, 1)
    raise TypeError(f"DataLoader() got an unexpected argument {name!r}"
                    + (f"; did you mean {near[0]!r}?" if near else ""))


def one_of(name, value, allowed):
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, 1)
        raise RequestError(
            "settings.value", f"{name} has a value that it cannot have",
            repr(value), f"it is one of {', '.join(allowed)}",
            f"did you mean {near[0]!r}?" if near else "")


def check_seed(seed):
    if seed is not None and not (isinstance(seed, int)
                                 and 0 <= seed < 1 << 64):
        raise RequestError(
            "settings.value", "seed has a value that it cannot have",
            repr(seed), "it is an integer from 0 to 2^64 - 1, or None")


def check_workers(num_workers, timeout, prefetch_factor, persistent_workers,
                   context):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; "
                         "use num_workers=0 to fetch in the loop itself")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified with "
                         "num_workers > 0")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if num_workers == 0 and timeout:
        raise ValueError("timeout option needs num_workers > 0")
    if context is None:
        return
    if num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with "
                         "num_workers > 0")
    import multiprocessing

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(f"multiprocessing_context option should specify "
                             f"a valid start method in {methods!r}, but got "
                             f"{context!r}")
    elif not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError("multiprocessing_context option should be a context "
                        f"object or a start method, but got {context!r}")
    warnings.warn("multiprocessing_context has no effect: helpers are forked "
                  "by a clean server process", stacklevel=3)


def check_sampling(iterable, batch_size, shuffle, sampler, batch_sampler,
                    drop_last):
    if iterable:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler),
                            ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(
                    f"DataLoader with an iterable data set: expected "
                    f"unspecified {name} option, but got {name}={value}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with "
                             "batch_size, shuffle, sampler, and drop_last")
    elif batch_size is None:
        if drop_last:
            raise ValueError("batch_size=None option disables auto-batching "
                             "and is mutually exclusive with drop_last")
    elif not isinstance(batch_size, int) or isinstance(batch_size, bool) or \
            batch_size <= 0:
        raise ValueError("batch_size should be a positive integer value, but "
                         f"got batch_size={batch_size}")


def warn_of_workers(workers):
    cpus = len(os.sched_getaffinity(0))
    if workers > cpus:
        warnings.warn(f"{workers} workers on {cpus} processors: a suggested "
                      f"max number of workers is {cpus}", stacklevel=5)
