"""The largest batch that fits, and is worth it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ..errors import OutOfMemory, refused, worded
from .peak import peak_bytes
from .shortage import is_shortage
from .snapshot import TrainingState

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch

_HEADROOM = 0.08  # of the limit, for fragments and longer rows
_GAIN = 1.05  # in rows per second: less is not worth twice the batch


class Probe(NamedTuple):
    """What a step with a batch took: bytes at its peak, and seconds."""

    bytes: int
    seconds: float


def search(probe: Callable[[int], Probe | None], limit: int, most: int
           ) -> tuple[int, list[int]]:
    """The largest batch of at most `most` rows whose step fits into `limit`
    bytes less 8 %, or a smaller one from which on rows per second do not grow;
    0 where one row does not fit. Also the sizes that were tried.

    `probe(rows)` runs a step, and returns None where memory is short. Sizes
    double, but do not go beyond what fits by the line through the last two
    peaks. Only a size that was tried and fitted is returned.
    """
    tried: list[int] = []
    room = int(limit * (1 - _HEADROOM))
    measured: dict[int, Probe] = {}

    def fits(rows: int) -> bool:
        tried.append(rows)
        found = probe(rows)
        if found is None or found.bytes > room:
            return False
        measured[rows] = found
        return True

    rows = 1
    if not fits(rows):
        return 0, tried
    while rows < most:
        wanted = min(2 * rows, most, _rows_on_line(measured, room, most))
        if wanted <= rows:
            break
        if not fits(wanted):
            return _between(rows, wanted, fits), tried
        gained = (wanted / measured[wanted].seconds
                  / (rows / measured[rows].seconds))
        if rows >= 4 and gained < 1 + (_GAIN - 1) * (wanted / rows - 1):
            break  # the rate has stopped growing
        rows = wanted
    return rows, tried


def _between(fitted: int, failed: int, fits: Callable[[int], bool]) -> int:
    """Where the line was wrong: halves the interval, at most three times."""
    for _ in range(3):
        middle = (fitted + failed) // 2
        if middle == fitted:
            break
        if fits(middle):
            fitted = middle
        else:
            failed = middle
    return fitted


def _rows_on_line(measured: dict[int, Probe], room: int, most: int) -> int:
    """How many rows fit by the line through the two largest measured sizes. One
    row is left out: from two rows on there may be memory that it does not
    need."""
    sizes = [rows for rows in sorted(measured) if rows > 1]
    if len(sizes) < 2:
        return most
    less, more = sizes[-2:]
    row = (measured[more].bytes - measured[less].bytes) / (more - less)
    if row <= 0:
        return most
    return more + int((room - measured[more].bytes) / row)


def max_batch_size(model: torch.nn.Module,
                   make_batch: Callable[[int], Any],
                   step: Callable[[torch.nn.Module, Any], Any], *,
                   most: int = 65536, memory_bytes: int | None = None) -> int:
    """The largest number of rows with which a step of training fits in memory
    with 8 % to spare, or the smaller one from which on a larger batch trains no
    more rows per second.

    Args:
        model: where its parameters are, memory is measured.
        make_batch: `make_batch(rows)` returns a batch on that device. Use the
            longest rows of the data.
        step: `step(model, batch)` runs the whole step: forward, backward and
            the optimizer.
        most: the largest batch to try.
        memory_bytes: the limit for tensors besides those that exist now.
            Default on a GPU: what is free. Required on the host.

    Parameters, buffers, gradients, optimizers (all that hold a parameter of the
    model) and random states are the same afterwards, bit for bit. Raises
    OutOfMemory, memory.too_small, where one row does not fit.
    """
    device = next(model.parameters()).device
    limit = _free_bytes(device) if memory_bytes is None else memory_bytes
    kept = TrainingState(model)

    def probe(rows: int) -> Probe | None:
        try:
            batch = make_batch(rows)
            step(model, batch)  # the first one makes the optimizer's state
            held = peak_bytes(lambda: step(model, batch), device)
            return Probe(held + kept.grown_bytes(),
                         _seconds(lambda: step(model, batch), device))
        except Exception as error:
            if not is_shortage(error):
                raise
        return None

    try:
        rows, tried = search(_emptied(probe, device), limit, most)
    finally:
        kept.restore()
    if rows == 0:
        raise worded(OutOfMemory, "memory.too_small",
                     "a step with one row does not fit in memory",
                     str(device), f"{limit} bytes are free",
                     "use a smaller model, or activation checkpointing")
    logging.getLogger("penstock").info(
        "max_batch_size: %d rows (tried %s)", rows,
        ", ".join(map(str, tried)))
    return rows


def _seconds(work: Callable[[], Any], device: torch.device) -> float:
    """The shortest of up to five runs within a fifth of a second."""
    best, spent = float("inf"), 0.0
    for _ in range(5):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        took = time.perf_counter() - began
        best, spent = min(best, took), spent + took
        if spent > 0.2:
            break
    return best


def _emptied(probe: Callable[[int], Probe | None], device: torch.device
             ) -> Callable[[int], Probe | None]:
    """The same, without what torch keeps of the sizes before."""
    def one(rows: int) -> Probe | None:
        found = probe(rows)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        return found

    return one


def _free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        raise refused("memory.no_limit", "cannot search for a batch size",
                      f"device {device}", "the host's memory has no limit that "
                      "torch reports", "give memory_bytes=...")
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)
