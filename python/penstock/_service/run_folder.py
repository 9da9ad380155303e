"""What a job has written: read from its files, none of which need be there."""

from __future__ import annotations

import csv
import pathlib
from typing import Any, Iterator

from .runners import document_of

_ARTIFACTS = (".json", ".jsonl", ".csv", ".html", ".safetensors", ".txt")


class RunFolder:
    """The folder of a job, RUNS/ID; the run that `penstock train` writes is
    runs/latest in it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.log = folder / "log.txt"
        self.run = folder / "runs" / "latest"

    def progress(self) -> dict[str, Any] | None:
        """The newest numbers of a run that has not ended."""
        return document_of(self.run / "progress.json")

    def report(self) -> dict[str, Any] | None:
        return document_of(self.run / "report.json")

    def page(self) -> pathlib.Path:
        return self.run / "report.html"

    def verdict(self) -> dict[str, Any] | None:
        """What limits the run, as far as that is known."""
        report = self.report()
        if report is None:
            report = (self.progress() or {}).get("so_far") or {}
        verdict = report.get("verdict")
        return verdict if isinstance(verdict, dict) else None

    def epochs(self) -> list[dict[str, float]]:
        """What each epoch came to: train_loss, val_loss, ... by their names. A
        run that was resumed has a folder of its own for what came after."""
        tables = sorted(self.folder.glob("runs/*Z-*/epochs.csv"))
        found: dict[float, dict[str, float]] = {}
        for file in tables:
            for row in _rows_of(file):
                if "epoch" in row:
                    found[row["epoch"]] = row
        return [found[epoch] for epoch in sorted(found)]

    def failure(self, attempt: int) -> dict[str, Any] | None:
        """The error that the program ended with."""
        said = document_of(self.folder / f"attempt-{attempt}" / "out.json")
        error = (said or {}).get("error")
        return error if isinstance(error, dict) else None

    def artifacts(self) -> dict[str, pathlib.Path]:
        """The files of the run by their names: "weights/best.safetensors"."""
        found: dict[str, pathlib.Path] = {}
        for place in (self.run, self.run / "weights"):
            prefix = "" if place == self.run else "weights/"
            try:
                files = sorted(place.iterdir())
            except OSError:
                continue
            for file in files:
                if file.suffix in _ARTIFACTS and file.is_file() and (
                        not file.is_symlink()):
                    found[prefix + file.name] = file
        if self.log.is_file():
            found["log.txt"] = self.log
        return found


def _rows_of(file: pathlib.Path) -> Iterator[dict[str, float]]:
    try:
        with open(file, newline="", encoding="utf-8") as opened:
            for row in csv.DictReader(opened):
                yield _numbers(row)
    except (OSError, csv.Error, UnicodeDecodeError):
        return


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    numbers = {}
    for name, text in row.items():
        try:
            numbers[name] = float(text)
        except (TypeError, ValueError):
            continue
    return json_safe(numbers)


def json_safe(numbers: dict[str, float]) -> dict[str, float]:
    """Without values that JSON has no word for."""
    return {name: value for name, value in numbers.items()
            if value == value and abs(value) != float("inf")}


def summary(job_folder: RunFolder, ended: bool) -> dict[str, Any]:
    """The few numbers that a list of jobs shows."""
    report = job_folder.report() if ended else None
    epochs = job_folder.epochs()
    last = {"last_epoch": epochs[-1]} if epochs else {}
    if report is not None:
        metrics = report.get("metrics") or {}
        return {"steps_taken": report.get("steps"),
                "au": report.get("au"),
                "samples_per_s": report.get("samples_per_s"),
                "metrics": metrics if isinstance(metrics, dict) else {},
                **last}
    progress = job_folder.progress() or {}
    shown: dict[str, Any] = {key: progress.get(key) for key in (
        "epoch", "epochs", "step", "steps_per_epoch", "steps_taken", "steps")
        if key in progress}
    numbers = progress.get("numbers")
    if isinstance(numbers, dict):
        shown.update(numbers)
    return {**shown, **last}
