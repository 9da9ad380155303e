"""Which settings of a DataLoader are best for a data set, measured.

    found = penstock.bench(dataset, batch_size=64)
    print(found)                             # a table, and the best
    loader = penstock.DataLoader(dataset, batch_size=64, **found.settings)

The loader is penstock.DataLoader; `loader=torch.utils.data.DataLoader` measures
another one that takes the same arguments.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .errors import RequestError, refused

_WORTH_IT = 0.02  # of a rate: what the noise may be
_WARM_UP = 2  # batches: the first ones start the workers
_COMPUTES = 0.5  # of its time: what does less waits
_MOST_THAT_WAIT = 32  # workers: each takes memory, too


class Setting:
    """The arguments of a loader, and the rates that it had with them."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.rates: list[float] = []
        self.first_batch_s: list[float] = []

    @property
    def rate(self) -> float:
        """Samples per second: the median."""
        return statistics.median(self.rates)

    def is_better_than(self, present: Setting) -> bool:
        """By more than the noise: than rounds of the same settings differ by."""
        return self.rate - present.rate > max(
            _WORTH_IT * present.rate, self.spread + present.spread)

    @property
    def spread(self) -> float:
        return max(self.rates) - min(self.rates)

    def report(self) -> dict[str, Any]:
        return {**self.arguments,
                "rate": {"median": self.rate, "min": min(self.rates),
                         "max": max(self.rates)},
                "first_batch_s": statistics.median(self.first_batch_s)}


class Bench:
    """What was measured. `str()` is a table; `report` a dictionary:
    {"settings": [{"num_workers", "prefetch_factor", "pin_memory",
    "persistent_workers", "rate": {"median", "min", "max"}, "first_batch_s"}],
    "present", "best": places in that list, "gain", "rounds", "ceiling",
    "best_of_ceiling", "cumulative": [{"what", "rate"}]}. Rates are samples per
    second; `ceiling` is that of the steps alone, None without `step`."""

    def __init__(self, tried: Sequence[Setting], ceiling: float | None,
                 cumulative: list[dict[str, Any]]) -> None:
        present = tried[0]
        best = max((present, *(setting for setting in tried
                               if setting.is_better_than(present))),
                   key=lambda setting: setting.rate)
        #: The arguments of the best, for a loader.
        self.settings: dict[str, Any] = {
            key: value for key, value in best.arguments.items()
            if value is not None}
        self.report: dict[str, Any] = {
            "settings": [setting.report() for setting in tried],
            "present": 0, "best": list(tried).index(best),
            "gain": best.rate / present.rate - 1, "rounds": len(present.rates),
            "ceiling": ceiling,
            "best_of_ceiling": best.rate / ceiling if ceiling else None,
            "cumulative": cumulative}

    def _words(self, at: int) -> list[str]:
        """What the table says beside a setting."""
        best, rates = self.report["best"], [
            one["rate"]["median"] for one in self.report["settings"]]
        found = [("best", at == best and rates[at] == max(rates)),
                 ("chosen", at == best and rates[at] < max(rates)),
                 ("(noise)", rates[at] > rates[best]),
                 ("(present)", at == self.report["present"])]
        return [word for word, is_so in found if is_so]

    def _noise(self) -> float:
        """The most by which rounds of a setting differ, as a share of it."""
        rates = (one["rate"] for one in self.report["settings"])
        return max(float((rate["max"] - rate["min"]) / rate["median"])
                   for rate in rates)

    def __str__(self) -> str:
        rows = [("workers", "prefetch", "pinned", "persistent", "samples/s",
                 "min", "max", "first", "")]
        for at, one in enumerate(self.report["settings"]):
            rate = one["rate"]
            rows.append((
                str(one["num_workers"]), str(one["prefetch_factor"] or "-"),
                "yes" if one["pin_memory"] else "no",
                "yes" if one["persistent_workers"] else "no",
                f"{rate['median']:.0f}", f"{rate['min']:.0f}",
                f"{rate['max']:.0f}", f"{1e3 * one['first_batch_s']:.0f} ms",
                " ".join(self._words(at))))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(
            row, widths)).rstrip() for row in rows]
        lines += [f"{step['what']}: {step['rate']:.0f} samples/s"
                  for step in self.report["cumulative"]]
        if self.report["ceiling"]:
            lines.append(
                f"the steps alone: {self.report['ceiling']:.0f} samples/s; the "
                f"best reaches {100 * self.report['best_of_ceiling']:.0f} % of "
                "that")
        gain = 100 * self.report["gain"]
        lines.append(
            f"best: {gain:.0f} % faster than the present settings"
            if self.report["best"] != self.report["present"] else
            "keep the present settings: no other is faster by more than 2 % "
            "and the noise")
        if any("(noise)" in self._words(at)
               for at in range(len(self.report["settings"]))):
            lines.append("(noise): a higher rate, but rounds with the same "
                         f"setting differ by up to {100 * self._noise():.0f} "
                         "%")
        if self.report["best"] != self.report["present"] and \
                self.report["rounds"] == 1:
            lines.append("measured in one round: the noise is unknown")
        return "\n".join(lines)

    __repr__ = __str__


def bench(dataset: Any, *, batch_size: int = 64, num_workers: int = 0,
          prefetch_factor: int | None = None, pin_memory: bool = False,
          persistent_workers: bool = False,
          workers: Sequence[int] | None = None,
          prefetch: Sequence[int] = (2, 4), seconds: float = 1.0,
          repeats: int = 3, step: Callable[[Any], Any] | None = None,
          loader: Callable[..., Any] | None = None, progress: bool = True,
          **arguments: Any) -> Bench:
    """Measures a data set under several settings of a DataLoader, each for
    about `seconds`, `repeats` times, one after the other so that what changes
    on the machine meets all of them.

    `num_workers`, `prefetch_factor`, `pin_memory` and `persistent_workers` are
    the present settings, to which the best is compared; `workers` and
    `prefetch` those that are tried (default: 0, 1, 2, 4, ... up to the
    processors, or, where items mostly wait, to as many as these can carry, 32 at
    most; 2 and 4).
    Pinning is tried where there is an accelerator.
    `step(batch)` is what the loop does with a batch; without it the input
    alone is measured. Other arguments (collate_fn, sampler, ...) go to the
    loader. Starts worker processes: call it under if __name__ == "__main__".
    """
    if batch_size < 1 or repeats < 1 or not seconds > 0 or any(
            number < 0 for number in (workers or ())) or any(
            number < 1 for number in prefetch):
        raise refused("bench.numbers", "cannot measure with these "
                                       "settings", "penstock.bench()",
                      "at least one of these numbers is too small",
                      "use at least one repeat, more than 0 seconds, and no "
                      "negative numbers")
    make = loader if loader is not None else _ours()
    meter = _Meter(lambda setting: make(
        dataset, batch_size=batch_size, **arguments, **{
            key: value for key, value in setting.items()
            if value is not None}), step, seconds, progress)
    tried = [Setting(num_workers=num_workers, prefetch_factor=prefetch_factor,
                     pin_memory=pin_memory,
                     persistent_workers=persistent_workers)]
    counts = list(workers) if workers is not None else \
        _counts(meter.computing(tried[0].arguments))
    for arguments_of in _settings(counts, prefetch):
        if all(arguments_of != one.arguments for one in tried):
            tried.append(Setting(**arguments_of))
    ceilings = []
    for number in range(repeats):
        which = f"round {number + 1} of {repeats}"
        if step is not None:
            ceilings.append(meter.ceiling(tried[0].arguments, which))
        for setting in tried:
            meter.measure(setting, which)
    meter.end()
    ceiling = statistics.median(ceilings) if ceilings else None
    return Bench(tried, ceiling, _cumulative(tried))


def _ours() -> Callable[..., Any]:
    from .dataloader import DataLoader

    return DataLoader


def _counts(computing: float) -> list[int]:
    """Of workers that compute for this share of their time: while they wait,
    they need no processor."""
    most = cpus = len(os.sched_getaffinity(0))
    if computing < _COMPUTES:
        most = max(cpus, min(_MOST_THAT_WAIT, int(cpus / max(computing, 0.01))))
    counts = [0]
    count = 1
    while count < most:
        counts.append(count)
        count *= 2
    return [*counts, most]


def _has_accelerator() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.accelerator.is_available())


def _settings(workers: Iterable[int],
              prefetch: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Each thing alone, so that what it gains can be told."""
    for count in workers:
        for pinned in (False, True) if _has_accelerator() else (False,):
            for persistent in (False, True) if count else (False,):
                for ahead in prefetch if count else (None,):
                    yield {"num_workers": count, "prefetch_factor": ahead,
                           "pin_memory": pinned,
                           "persistent_workers": persistent}


def _cumulative(tried: Sequence[Setting]) -> list[dict[str, Any]]:
    """The best rate as one thing after the other is allowed."""
    least = min((setting.arguments["prefetch_factor"] for setting in tried
                 if setting.arguments["prefetch_factor"]), default=None)
    alone: dict[str, Callable[[Any], bool]] = {
        "num_workers": lambda value: value == 0,
        "pin_memory": lambda value: not value,
        "persistent_workers": lambda value: not value,
        "prefetch_factor": lambda value: value in (None, least)}
    names = {"num_workers": "+ workers", "pin_memory": "+ pinned",
             "persistent_workers": "+ persistent",
             "prefetch_factor": "+ more batches ahead"}

    def best() -> list[float]:
        return [setting.rate for setting in tried if all(
            rule(setting.arguments[key]) for key, rule in alone.items())]

    steps = [{"what": "in the loop's own process", "rate": max(best())}
             ] if best() else []
    for key, what in names.items():
        tried_at_all = any(not alone[key](setting.arguments[key])
                           for setting in tried)
        del alone[key]
        if tried_at_all and best():
            steps.append({"what": what, "rate": max(best())})
    return steps


class _Meter:
    def __init__(self, make: Callable[[dict[str, Any]], Any],
                 step: Callable[[Any], Any] | None, seconds: float,
                 progress: bool) -> None:
        self._make, self._step, self._seconds = make, step, seconds
        self._resident: Any = None  # a batch; see ceiling()
        self._progress = progress and sys.stderr is not None and \
            sys.stderr.isatty()

    def measure(self, setting: Setting, which: str) -> None:
        self._say(f"{which}: {setting.arguments}")
        began = time.perf_counter()
        loader = self._make(setting.arguments)
        rows = warm = 0
        first = start = end = 0.0
        while True:
            seen = rows
            for batch in loader:
                now = time.perf_counter()
                if not first:
                    first = now - began
                if self._step is not None:
                    self._step(batch)
                warm += 1
                if warm <= _WARM_UP:
                    start = time.perf_counter()
                    continue
                rows += _rows(batch)
                end = time.perf_counter()
                if end - start >= self._seconds:
                    break
            # A data set of fewer batches than that is gone over again.
            if end - start >= self._seconds or (rows == seen
                                                and warm > _WARM_UP):
                break
            if warm == 0:
                raise _no_batches()
        del loader
        setting.first_batch_s.append(first)
        setting.rates.append(rows / max(end - start, 1e-9))

    def _alone(self, arguments: dict[str, Any]) -> Iterator[Any]:
        """Batches that this process makes."""
        return iter(self._make({**arguments, "num_workers": 0,
                                "prefetch_factor": None,
                                "persistent_workers": False}))

    def computing(self, arguments: dict[str, Any]) -> float:
        """Of the time that making a batch takes, the share on a processor."""
        self._say("what making a batch takes")
        wall = cpu = 0.0
        batches = self._alone(arguments)
        for _ in range(_WARM_UP + 1):  # the last one counts
            began, before = time.perf_counter(), time.process_time()
            if next(batches, None) is None:
                break
            wall = time.perf_counter() - began
            cpu = time.process_time() - before
        return cpu / wall if wall else 1.0

    def ceiling(self, arguments: dict[str, Any], which: str) -> float:
        """The steps over one batch that is there already."""
        assert self._step is not None
        self._say(f"{which}: the steps alone")
        if self._resident is None:
            self._resident = next(self._alone(arguments), None)
        if self._resident is None:
            raise _no_batches()
        batch = self._resident
        self._step(batch)
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < self._seconds:
            self._step(batch)
            steps += 1
        return steps * _rows(batch) / (time.perf_counter() - start)

    def _say(self, line: str) -> None:
        if self._progress:
            print(f"\r\x1b[2K{line}"[:80], end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._progress:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _no_batches() -> RequestError:
    return refused("bench.no_batches", "there is nothing to measure",
                   "penstock.bench()", "the data set has no batches",
                   "give a data set with rows")


def _rows(batch: Any) -> int:
    from ._watch.watching import _rows_of

    return _rows_of(batch)
