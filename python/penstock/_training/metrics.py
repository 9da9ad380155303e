"""What predictions of held-out rows come to, over all of them together."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from . import outcomes


class Samples:
    """The ids of the rows, where each row has one truth."""

    def __init__(self) -> None:
        self._ids: list[int] | None = []

    def add(self, losses: Any, samples: Sequence[int] | None) -> None:
        if samples is None or losses.numel() != len(samples):
            self._ids = None
        elif self._ids is not None:
            self._ids.extend(samples)

    def take(self) -> list[int] | None:
        """None where they do not belong to one truth each."""
        ids, self._ids = self._ids, []
        return ids

    def put(self, ids: list[int] | None) -> None:
        self._ids = ids


def _joined(torch: Any, shares: Sequence[Mapping[str, Any]]
            ) -> tuple[list[Any], list[int] | None]:
    """The columns that ranks have seen, and their ids: in the order of the ids,
    in which one process sees them, where these are known."""
    seen = [share["seen"] for share in shares if share["seen"] is not None]
    of_ranks = [share["samples"] for share in shares]
    if not seen or any(ids is None for ids in of_ranks):
        return seen, None
    ids = [each for of_rank in of_ranks for each in of_rank]
    order = torch.tensor(ids).argsort(stable=True)
    return [torch.cat(seen, 1)[:, order]], [ids[at] for at in order.tolist()]


class Classes:
    """Predictions of classes: accuracy, macro F1, and the AUC of two classes.

    Keeps five numbers of each truth where the model computes. `counts`: train
    rows of each class, where they are known.
    """

    def __init__(self, torch: Any, counts: Sequence[int] = ()) -> None:
        self._torch, self._counts = torch, counts
        self._seen: list[Any] = []
        self._samples = Samples()
        self._wide = 0  # classes that predictions have

    def add(self, losses: Any, weight: Any, truth: Any, prediction: Any,
            samples: Sequence[int] | None = None) -> None:
        self._samples.add(losses, samples)
        self._wide = max(self._wide, prediction.shape[-1])
        score = prediction[..., -1] - prediction[..., 0] \
            if prediction.shape[-1] == 2 else losses * float("nan")
        self._seen.append(self._torch.stack([
            part.detach().double().flatten() for part in (
                losses, weight, truth, prediction.argmax(-1), score)]))

    def take(self) -> dict[str, Any]:
        """ "val_loss" and the rest, and "details" where each row has one truth;
        nothing where no truth was seen."""
        samples = self._samples.take()
        rows = self._rows()
        if rows is None:
            return {}
        kept = rows[1] > 0
        losses, _, truth, guess, score = rows[:, kept]
        made: dict[str, Any] = {
            "val_loss": float(losses.mean()),
            "val_accuracy": float((truth == guess).double().mean())}
        if not bool(self._torch.isnan(score).any()):
            made["val_auc"] = self._auc(score, truth)
        made["val_macro_f1"] = self._macro_f1(truth, guess)
        if samples is not None:
            made["details"] = outcomes.of_classes(
                self._torch, outcomes.Rows(losses, truth, guess,
                                           _of_kept(samples, kept)),
                self._wide, self._counts)
        return made

    def share(self) -> dict[str, Any]:
        made = {"seen": _on_host(self._torch, self._seen),
                "samples": self._samples.take(), "wide": self._wide}
        self._seen = []
        return made

    def join(self, shares: Sequence[Mapping[str, Any]]) -> None:
        self._wide = max(share["wide"] for share in shares)
        self._seen, samples = _joined(self._torch, shares)
        self._samples.put(samples)

    def _rows(self) -> Any:
        if not self._seen:
            return None
        rows = self._torch.cat(self._seen, 1).cpu()
        self._seen = []
        return rows if bool((rows[1] > 0).any()) else None

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


def _on_host(torch: Any, seen: list[Any]) -> Any:
    return torch.cat(seen, 1).cpu() if seen else None


def _of_kept(samples: Sequence[int], kept: Any) -> list[int]:
    return [samples[at] for at in kept.nonzero().flatten().tolist()]


class Numbers:
    """Predictions of numbers: RMSE and MAE, in the target's own units. Of rows
    of one number each it keeps four numbers, for what the report shows.

    `unit`, `zero`, `mean`: of a target of one number, as outcomes.of_numbers()
    has them; empty for any other.
    """

    def __init__(self, torch: Any, units: list[float],
                 own: Mapping[str, Any]) -> None:
        self._torch, self._units, self._own = torch, units, own
        self._sums: Any = None
        self._seen: list[Any] = []
        self._samples = Samples()

    def add(self, losses: Any, weight: Any, truth: Any, prediction: Any,
            samples: Sequence[int] | None = None) -> None:
        error = (prediction - truth).detach().double()
        if self._own:
            self._samples.add(losses, samples)
            self._seen.append(self._torch.stack([
                part.detach().double().flatten() for part in (
                    losses, weight, truth, prediction)]))
        if self._units:
            error = error * self._torch.tensor(
                self._units, dtype=self._torch.float64, device=error.device)
        weight = weight.double()
        sums = self._torch.stack([
            (part * weight).sum() for part in (
                losses.detach().double(), error * error, error.abs(),
                self._torch.ones_like(error))])
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self) -> dict[str, Any]:
        if self._sums is None:
            return {}
        losses, squares, sizes, count = self._sums.tolist()
        self._sums = None
        details = self._details()
        if count == 0:
            return {}
        return {"val_loss": losses / count, "val_rmse": (squares / count) ** 0.5,
                "val_mae": sizes / count, **details}

    def share(self) -> dict[str, Any]:
        made = {"seen": _on_host(self._torch, self._seen),
                "samples": self._samples.take(),
                "sums": None if self._sums is None else self._sums.cpu()}
        self._sums, self._seen = None, []
        return made

    def join(self, shares: Sequence[Mapping[str, Any]]) -> None:
        sums = [share["sums"] for share in shares if share["sums"] is not None]
        self._sums = sum(sums[1:], sums[0]) if sums else None
        self._seen, samples = _joined(self._torch, shares)
        self._samples.put(samples)

    def _details(self) -> dict[str, Any]:
        samples, seen = self._samples.take(), self._seen
        self._seen = []
        if not seen or samples is None:
            return {}
        rows = self._torch.cat(seen, 1).cpu()
        kept = rows[1] > 0
        if not bool(kept.any()) or not bool(
                rows[:, kept].isfinite().all()):
            return {}
        losses, _, truth, guess = rows[:, kept]
        return {"details": outcomes.of_numbers(
            self._torch, outcomes.Rows(losses, truth, guess,
                                       _of_kept(samples, kept)), **self._own)}
