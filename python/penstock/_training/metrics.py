"""What predictions of held-out rows come to, over all of them together."""

from __future__ import annotations

from typing import Any


class Classes:
    """Predictions of classes: accuracy, macro F1, and the AUC of two classes.

    Keeps four numbers of each truth where the model computes.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._seen: list[Any] = []

    def add(self, losses: Any, weight: Any, truth: Any,
            prediction: Any) -> None:
        score = prediction[..., -1] - prediction[..., 0] \
            if prediction.shape[-1] == 2 else losses * float("nan")
        self._seen.append(self._torch.stack([
            part.detach().double().flatten() for part in (
                losses, weight, truth, prediction.argmax(-1), score)]))

    def take(self) -> dict[str, float | None]:
        """ "val_loss" and the rest; nothing where no truth was seen."""
        rows = self._rows()
        if rows is None:
            return {}
        losses, _, truth, guess, score = rows
        made: dict[str, float | None] = {
            "val_loss": float(losses.mean()),
            "val_accuracy": float((truth == guess).double().mean())}
        if not bool(self._torch.isnan(score).any()):
            made["val_auc"] = self._auc(score, truth)
        made["val_macro_f1"] = self._macro_f1(truth, guess)
        return made

    def _rows(self) -> Any:
        if not self._seen:
            return None
        rows = self._torch.cat(self._seen, 1).cpu()
        self._seen = []
        rows = rows[:, rows[1] > 0]
        return rows if rows.shape[1] else None

    def _auc(self, score: Any, truth: Any) -> float | None:
        """By ranks (Mann and Whitney): rows of equal score share theirs."""
        second = truth == truth.max()
        count = float(second.sum())
        others = len(truth) - count
        if count == 0 or others == 0:
            return None
        _, place, many = self._torch.unique(
            score, return_inverse=True, return_counts=True)
        ranks = (many.cumsum(0).double() - (many.double() - 1) / 2)[place]
        above = float(ranks[second].sum()) - count * (count + 1) / 2
        return above / (count * others)

    def _macro_f1(self, truth: Any, guess: Any) -> float:
        wide = int(max(truth.max(), guess.max())) + 1
        there = self._torch.bincount(truth.long(), minlength=wide).double()
        told = self._torch.bincount(guess.long(), minlength=wide).double()
        right = self._torch.bincount(truth[truth == guess].long(),
                                     minlength=wide).double()
        met = there + told > 0
        return float((2 * right[met] / (there + told)[met]).mean())


class Numbers:
    """Predictions of numbers: RMSE and MAE, in the target's own units."""

    def __init__(self, torch: Any, units: list[float]) -> None:
        self._torch, self._units = torch, units
        self._sums: Any = None

    def add(self, losses: Any, weight: Any, truth: Any,
            prediction: Any) -> None:
        error = (prediction - truth).detach().double()
        if self._units:
            error = error * self._torch.tensor(
                self._units, dtype=self._torch.float64, device=error.device)
        weight = weight.double()
        sums = self._torch.stack([
            (part * weight).sum() for part in (
                losses.detach().double(), error * error, error.abs(),
                self._torch.ones_like(error))])
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self) -> dict[str, float | None]:
        if self._sums is None:
            return {}
        losses, squares, sizes, count = self._sums.tolist()
        self._sums = None
        if count == 0:
            return {}
        return {"val_loss": losses / count, "val_rmse": (squares / count) ** 0.5,
                "val_mae": sizes / count}
