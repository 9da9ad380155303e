"""What a step minimises and a validation measures: the loss that the module
gives, or one that is named, of what it predicts."""

from __future__ import annotations

from typing import Any, Mapping, NoReturn, Protocol, Sequence

from ..errors import refused
from .metrics import Classes, Numbers
from .module import Field

Tensors = Mapping[str, Any]


class Objective(Protocol):
    """Both are given what the module returned for a batch."""

    def loss(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        """The mean loss of the batch's rows, a tensor [], and how many rows, or
        tokens, it is the mean of."""

    def sums(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        """The sum of the losses, and of what they count: loss() is their
        quotient."""

    def look(self, answer: Any, batch: Tensors,
             samples: Sequence[int] | None = None) -> None:
        """Takes a batch of held-out rows into account. `samples`: their ids;
        None: not known."""

    def seen(self) -> dict[str, Any]:
        """What look() saw since the last call; "val_loss" and others, and
        "details" of rows where their samples are known."""

    def share(self) -> Any:
        """What look() saw on this rank since the last call, of tensors, numbers
        and lists; it is then forgotten."""

    def take(self, shares: Sequence[Any]) -> None:
        """As if look() had seen what the ranks have shared."""


def refuse_loss(why: str, next: str) -> NoReturn:
    raise refused("model.loss", "cannot train on the output of the model",
                  "the model's forward()", why, next)


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"a {type(value).__name__}"
    return f"a tensor of shape {list(shape)}"


def parts_of(answer: Any) -> dict[str, Any]:
    """What a forward() returned, by name: a mapping, or an object such as
    Transformers' that has `loss` or `logits`; else {}."""
    if isinstance(answer, Mapping):
        return dict(answer)
    return {name: getattr(answer, name) for name in ("loss", "logits")
            if getattr(answer, name, None) is not None}


def checked_loss(torch: Any, loss: Any) -> Any:
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        refuse_loss(f"the model returned {_described(loss)}, expected a loss: "
                    "one number", "return the mean over the rows, or return "
                    "predictions and name the predicted field as model.target")
    if not loss.is_floating_point():
        refuse_loss(f"the loss is {loss.dtype}", "return a float")
    return loss.reshape(()).float()


class Returned:
    """The module gives its loss: a tensor [], or a mapping with "loss" and
    other numbers, which a validation measures too. Its "count" is what the loss
    is the mean of, tokens say; by default rows that are no padding."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._sums: dict[str, Any] = {}
        self._rows: Any = 0

    def _loss_in(self, answer: Any) -> Any:
        return parts_of(answer).get("loss", answer)

    def loss(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        return (checked_loss(self._torch, self._loss_in(answer)),
                self._count(answer, batch))

    def _count(self, answer: Any, batch: Tensors) -> Any:
        count = parts_of(answer).get("count")
        if count is not None:
            return count.detach().reshape(()).double() if isinstance(
                count, self._torch.Tensor) else float(count)
        weight = batch.get("weight")
        return len(next(iter(batch.values()))) if weight is None \
            else weight.sum().double()

    def sums(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        return checked_loss(self._torch, self._loss_in(answer)), 0

    def look(self, answer: Any, batch: Tensors,
             samples: Sequence[int] | None = None) -> None:
        found = {"loss": checked_loss(self._torch, self._loss_in(answer))}
        for name, value in parts_of(answer).items():
            if name not in ("loss", "count") and isinstance(
                    value, (int, float, self._torch.Tensor)) and (
                    not hasattr(value, "numel") or value.numel() == 1):
                found[name] = value
        rows = self._count(answer, batch)
        for name, value in found.items():
            value = value.detach().reshape(()).double() if hasattr(
                value, "detach") else float(value)
            self._sums[name] = self._sums.get(name, 0) + value * rows
        self._rows = self._rows + rows

    def seen(self) -> dict[str, Any]:
        rows, sums = float(self._rows), self._sums
        self._rows, self._sums = 0, {}
        return {"val_" + name: float(value) / rows
                for name, value in sums.items()} if rows else {}

    def share(self) -> Any:
        rows, sums = float(self._rows), self._sums
        self._rows, self._sums = 0, {}
        return {"rows": rows,
                "sums": {name: float(sum) for name, sum in sums.items()}}

    def take(self, shares: Sequence[Any]) -> None:
        for share in shares:
            self._rows = self._rows + share["rows"]
            for name, sum in share["sums"].items():
                self._sums[name] = self._sums.get(name, 0) + sum


class Named:
    """A loss by its name, of predictions and a field of the batch. Rows that
    are padding, are masked, or have no truth weigh nothing."""

    def __init__(self, torch: Any, name: str, target: Field,
                 smoothing: float) -> None:
        self._torch, self._target = torch, target
        self._name = _chosen(name, target)
        self.smoothing = smoothing if self._name == "cross_entropy" else 0.0
        classes = target.classes or []
        #: Classes that may be a truth, where an unknown one is behind them.
        self._known = len(classes) - 1 if classes[-1:] == [None] else None
        if self._name in ("cross_entropy", "binary_cross_entropy"):
            self._metrics: Classes | Numbers = Classes(
                torch, target.statistics.get("counts") or ())
        else:
            self._metrics = Numbers(torch, _units(target), _own(target))

    def loss(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        total, counted = self.sums(answer, batch)
        return total / counted.clamp_min(1), counted

    def sums(self, answer: Any, batch: Tensors) -> tuple[Any, Any]:
        losses, weight, _, _ = self._rows(answer, batch, self.smoothing)
        return (losses * weight).sum(), weight.sum()

    def look(self, answer: Any, batch: Tensors,
             samples: Sequence[int] | None = None) -> None:
        losses, weight, truth, prediction = self._rows(answer, batch, 0.0)
        self._metrics.add(losses, weight, truth, prediction, samples)

    def seen(self) -> dict[str, Any]:
        return self._metrics.take()

    def share(self) -> Any:
        return self._metrics.share()

    def take(self, shares: Sequence[Any]) -> None:
        self._metrics.join(shares)

    # -- predictions of rows, with or without a truth

    @classmethod
    def of_predictions(cls, torch: Any, settings: Mapping[str, Any],
                       fields: Mapping[str, Field],
                       learning: Mapping[str, Any]) -> Named:
        """That of a model that is to make predictions. Raises RequestError,
        code predict.no_target, for one that gives its loss alone."""
        target = settings.get("target", "")
        if not target:
            raise refused(
                "predict.no_target", "cannot make predictions",
                "model.target", "the model gives its loss, and what it "
                "predicts is not known", "name the field that it predicts as "
                "model.target, and train again")
        return cls(torch, settings["loss"], fields[target],
                   float(learning["label_smoothing"]))

    def answers(self) -> dict[str, Any]:
        """What the numbers of a row are: {"of", "names"}."""
        if self._name == "binary_cross_entropy":
            known = (self._target.classes or [])[:2]
            return {"of": "one_class",
                    "names": known if len(known) == 2 else [False, True]}
        if self._name == "cross_entropy":
            classes = self._target.classes or []
            return {"of": "one_class", "names": classes[:self._known]}
        entries = _entries(self._target.statistics)
        names = list(self._target.statistics)
        if self._target.size == 1 or len(entries) != self._target.size:
            names = [self._target.name] if self._target.size == 1 else [
                f"{self._target.name}_{at}" for at in range(self._target.size)]
        return {"of": "values", "names": names}

    def predicted(self, answer: Any, batch: Tensors, rows: int) -> Any:
        """[rows, numbers]: probabilities, or numbers in their own units. Where
        the batch has the target, seen() takes it into account."""
        if self._target.name in batch:
            self.look(answer, batch)
        prediction = self._prediction(answer)
        if self._name == "binary_cross_entropy":
            second = prediction.reshape(rows, 1).sigmoid()
            return self._torch.cat((1 - second, second), 1)
        if self._name == "cross_entropy":
            wide = len(self.answers()["names"])
            return prediction.reshape(rows, -1)[:, :wide].softmax(1)
        prediction = prediction.reshape(rows, -1).double()
        entries = _entries(self._target.statistics)
        if len(entries) != prediction.shape[1]:
            return prediction
        columns = []
        for at, entry in enumerate(entries):
            column = prediction[:, at]
            if entry.get("standardize", True):
                column = column * entry["divisor"] + entry["mean"]
            columns.append(column.expm1() if entry.get("log1p") else column)
        return self._torch.stack(columns, 1)

    def _prediction(self, answer: Any) -> Any:
        parts = parts_of(answer)
        found = parts.get("prediction", parts.get("logits", answer))
        if not isinstance(found, self._torch.Tensor):
            refuse_loss(f"the model returned {_described(found)}, expected a "
                        "tensor of predictions", "return the tensor, or a mapping "
                        'with "prediction"')
        if not found.is_floating_point():
            refuse_loss(f"its predictions are {found.dtype}",
                        "return the scores, one number for each class, not "
                        "the decision")
        return found.float()

    def _rows(self, answer: Any, batch: Tensors,
              smoothing: float) -> tuple[Any, Any, Any, Any]:
        """Of each truth: its loss, what it counts, itself, the prediction."""
        truth = batch[self._target.name]
        prediction = self._prediction(answer)
        if self._name == "cross_entropy":
            return self._of_classes(prediction, truth, batch, smoothing)
        prediction = self._alike(prediction, truth)
        weight = self._weight(truth, batch)
        if self._name == "binary_cross_entropy":
            if self._known is not None:
                weight = weight * (truth < self._known)
                truth = truth.clamp_max(max(0, self._known - 1))
            logits = prediction
            losses = self._torch.nn.functional.binary_cross_entropy_with_logits(
                logits, truth.float(), reduction="none")
            prediction = self._torch.stack((-logits, logits), -1) / 2
            return losses, weight, truth.long(), prediction
        losses = {"mse": self._torch.nn.functional.mse_loss,
                  "mae": self._torch.nn.functional.l1_loss,
                  "huber": self._torch.nn.functional.huber_loss}[self._name](
                      prediction, truth.float(), reduction="none")
        return losses, weight, truth.float(), prediction

    def _of_classes(self, prediction: Any, truth: Any, batch: Tensors,
                    smoothing: float) -> tuple[Any, Any, Any, Any]:
        if truth.is_floating_point():
            refuse_loss(f"cross_entropy needs classes, and the target "
                        f"'{self._target.name}' is {truth.dtype}",
                        'make it a "category" field, or choose another '
                        "model.loss")
        if prediction.dim() == truth.dim() and prediction.dim() > 1:
            truth = truth.squeeze(-1)
        if prediction.dim() != truth.dim() + 1 or \
                prediction.shape[:-1] != truth.shape:
            refuse_loss(f"its predictions have the shape "
                        f"{list(prediction.shape)}, expected "
                        f"{[*truth.shape, len(self._target.classes or []) or 'classes']}: one "
                        "number for each class",
                        "return one number per class in the last dimension")
        classes = prediction.shape[-1]
        least = len(self._target.classes or []) if self._known is None \
            else self._known
        if classes < least:
            refuse_loss(f"its predictions have {classes} classes, and "
                        f"'{self._target.name}' has {least}",
                        "make the last layer as wide as the constructor's "
                        "target.classes")
        truth, weight = truth.long(), self._weight(truth, batch)
        if self._known is not None:
            weight = weight * (truth < self._known)
            # The last layer may do without a number for what is unknown.
            truth = truth.clamp_max(classes - 1)
        losses = self._torch.nn.functional.cross_entropy(
            prediction.flatten(0, -2), truth.flatten(), reduction="none",
            label_smoothing=smoothing).reshape(truth.shape)
        # No guess is what is unknown.
        return losses, weight, truth, prediction[..., :self._known]

    def _alike(self, prediction: Any, truth: Any) -> Any:
        """[rows, 1] and [rows] are alike, and nothing else is stretched."""
        if prediction.numel() != truth.numel() or \
                prediction.shape[:1] != truth.shape[:1]:
            refuse_loss(f"its predictions have the shape "
                        f"{list(prediction.shape)}, and the target "
                        f"'{self._target.name}' {list(truth.shape)}",
                        "return as many numbers for a row as the target has")
        return prediction.reshape(truth.shape)

    def _weight(self, truth: Any, batch: Tensors) -> Any:
        weight = self._torch.ones(truth.shape, dtype=self._torch.float32,
                                  device=truth.device)
        mask = batch.get(self._target.name + "_mask")
        if mask is not None:
            weight = weight * mask.reshape(truth.shape)
        rows = batch.get("weight")
        if rows is not None:
            weight = weight * rows.reshape((-1,) + (1,) * (truth.dim() - 1))
        return weight


def _chosen(name: str, target: Field) -> str:
    if name != "auto":
        return name
    if target.classes is not None:
        return "cross_entropy"
    return "binary_cross_entropy" if target.dtype == "bool" else "mse"


def _units(target: Field) -> list[float]:
    """What 1 is in the target's own units, of each of its numbers."""
    found = [entry for entry in _entries(target.statistics)
             if "divisor" in entry]
    if len(found) != max(1, target.size):
        return []
    return [float(entry["divisor"]) if entry.get("standardize", True) else 1.0
            for entry in found]


def _own(target: Field) -> dict[str, Any]:
    """What the numbers of a target of one number are in its own unit."""
    found = [entry for entry in _entries(target.statistics)
             if "divisor" in entry]
    if target.size != 1:
        return {}
    if len(found) != 1 or not found[0].get("standardize", True):
        return {"unit": 1.0, "zero": 0.0, "mean": None}
    mean = float(found[0]["mean"])
    return {"unit": float(found[0]["divisor"]), "zero": mean, "mean": mean}


def _entries(statistics: Any) -> list[Mapping[str, Any]]:
    if isinstance(statistics, Mapping):
        if "divisor" in statistics:
            return [statistics]
        return [entry for value in statistics.values()
                for entry in _entries(value)]
    if isinstance(statistics, list):
        return [entry for value in statistics for entry in _entries(value)]
    return []
