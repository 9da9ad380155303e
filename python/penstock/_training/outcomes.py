"""What a validation saw of rows, beyond its metrics, as the built-in models give
it for the report of a run: by numbers of classes and of samples, which the
report turns into names and keys. Each part is bounded, however many rows and
classes there are."""

from __future__ import annotations

import math
from typing import Any, Sequence

MOST_CLASSES, MOST_POINTS, WORST_ROWS, BINS = 40, 400, 20, 31


class Rows:
    """Four float64 tensors [rows] on the host, and the rows' ids."""

    def __init__(self, losses: Any, truth: Any, guess: Any,
                 samples: Sequence[int]) -> None:
        self.losses, self.truth, self.guess = losses, truth, guess
        self.samples = samples

    def worst(self, shown: Any) -> list[dict[str, Any]]:
        """Those of the highest loss. `shown` makes of a number what its truth
        and its guess are."""
        order = self.losses.sort(descending=True, stable=True).indices
        return [{"sample": int(self.samples[at]),
                 "loss": _finite(self.losses[at]),
                 "truth": shown(float(self.truth[at])),
                 "guess": shown(float(self.guess[at]))}
                for at in order[:WORST_ROWS].tolist()]


def of_classes(torch: Any, rows: Rows, classes: int,
               counts: Sequence[int]) -> dict[str, Any]:
    """ "baseline", "confusion", "by_class" and "worst". `counts`: train rows of
    each class; others than `classes` of them are not known."""
    truth, guess = rows.truth.long(), rows.guess.long()
    there = torch.bincount(truth, minlength=classes)
    said = torch.bincount(guess, minlength=classes)
    right = torch.bincount(truth[truth == guess], minlength=classes)
    order = there.sort(descending=True, stable=True).indices[
        :MOST_CLASSES].tolist()
    return {
        "baseline": _most_frequent(truth, there, counts),
        "confusion": _confusion(torch, truth, guess, classes, sorted(order)),
        "by_class": [{"class": at, "rows": int(there[at]),
                      "precision": _share(right[at], said[at]),
                      "recall": _share(right[at], there[at])}
                     for at in order],
        "worst": rows.worst(int)}


def of_numbers(torch: Any, rows: Rows, unit: float, zero: float,
               mean: float | None) -> dict[str, Any]:
    """ "baseline", "residuals" and "worst", in the target's own unit, of which a
    number of the rows is `unit`, and 0 is `zero`. `mean`: of the train rows;
    None: not known."""
    truth = zero + unit * rows.truth
    errors = unit * (rows.guess - rows.truth)
    constant = float(truth.mean()) if mean is None else mean
    low, high = float(errors.min()), float(errors.max())
    each = (len(truth) - 1) // MOST_POINTS + 1
    return {
        "baseline": {
            "of": "val" if mean is None else "train", "mean": constant,
            "val_rmse": math.sqrt(float((truth - constant).square().mean())),
            "val_mae": float((truth - constant).abs().mean())},
        "residuals": {
            "mean": float(errors.mean()),
            "histogram": {"from": low, "to": high,
                          "counts": _histogram(torch, errors, low, high)},
            "points": torch.stack((truth, truth + errors), 1)[
                ::each].tolist()},
        "worst": rows.worst(lambda number: zero + unit * number)}


def _finite(number: Any) -> float | None:
    return float(number) if math.isfinite(number) else None


def _share(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole else None


def _most_frequent(truth: Any, there: Any,
                   counts: Sequence[int]) -> dict[str, Any]:
    """What guessing the most frequent class for every row comes to; its loss is
    that of guessing the shares of the classes."""
    known = len(counts) == len(there)
    of_class = there.new_tensor(counts) if known else there
    shares = of_class.double() / of_class.sum()
    loss = float(-shares[truth].log().mean())
    return {"of": "train" if known else "val",
            "class": int(of_class.argmax()),
            "val_accuracy": float((truth == of_class.argmax()).double().mean()),
            "val_loss": _finite(loss)}


def _confusion(torch: Any, truth: Any, guess: Any, classes: int,
               order: list[int]) -> dict[str, Any]:
    """Counts [truth][guess] of the classes of `order`, and of all others
    together."""
    wide = len(order) + (len(order) < classes)
    place = torch.full((classes,), len(order))
    place[order] = torch.arange(len(order))
    counts = torch.bincount(place[truth] * wide + place[guess],
                            minlength=wide * wide)
    return {"classes": order, "others": classes - len(order),
            "counts": counts.reshape(wide, wide).tolist()}


def _histogram(torch: Any, errors: Any, low: float, high: float) -> list[int]:
    width = (high - low) / BINS
    bins = torch.zeros_like(errors) if width == 0 else \
        ((errors - low) / width).clamp(0, BINS - 1)
    counts: list[int] = torch.bincount(bins.long(), minlength=BINS).tolist()
    return counts
