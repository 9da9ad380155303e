"""Predictions of rows by the model of a run.

    import penstock

    found = penstock.predict("runs/latest", "new.csv")
    found.columns["prediction"][:5]             # ["Adelie", ...]
    penstock.predict("runs/latest", "new.parquet", out="answers.parquet")
    penstock.evaluate("runs/latest", "test.csv")    # {"loss": ..., ...}

The run says how rows are read and what its numbers and classes mean, so that
the source need have no more than the columns of the fields.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Mapping, NoReturn, Union

from . import _engine, program
from ._program import end_with, log_to_stderr, prints_aside, say
from ._training import module as modules
from ._training.maker import Maker
from ._training.predictor import Predictor
from ._training.raised import torch_or_refused
from ._training.switches import torch_as_asked
from .errors import made, refused
from .printing import printable

__all__ = ["Predictions", "evaluate", "predict"]

Source = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class Predictions:
    """What a run's model said of the rows of a source."""

    def __init__(self, document: Mapping[str, Any],
                 columns: dict[str, list[Any]]) -> None:
        #: How many rows were predicted.
        self.rows = int(document["rows"])
        #: How many could not be used, and were left out.
        self.bad = int(document["bad"])
        #: As the run's report names them; {} where the rows have no target.
        self.metrics: dict[str, Any] = dict(document.get("metrics", {}))
        #: The file that they were written to, or None.
        self.out: str | None = document["out"]
        #: By name, a list with an entry for each row: "key", "prediction", ...
        #: Empty where they were written to a file.
        self.columns = columns

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        to = f" in {printable(self.out)}" if self.out else ""
        return f"<penstock.Predictions: {self.rows} rows{to}>"


def predict(run: str | os.PathLike[str], source: Source, *,
            out: str | os.PathLike[str] = "", model: Any = None,
            ranks: bool = False) -> Predictions:
    """Predicts all rows of `source` in their order.

    `run` is a run's folder, or what `output` of `penstock.train` left. `source`
    is a path or URI as `penstock peek` takes it, or a job's section `source`.
    With `out`, a file that ends with .csv, .tsv, .jsonl, .parquet or .arrow,
    predictions are written there batch by batch, and memory does not grow
    with the rows; else they are in `columns`.

    `model` is the class or function of a torch module that was trained in
    Python, where its file and name cannot tell it.

    With `ranks`, all ranks of the job make this call, and each predicts a part
    of the rows. Rank 0 has the predictions and writes `out`; the others get no
    rows. Without it, this process predicts all rows by itself.

    Raises RequestError for a run or rows that do not fit, and what reading and
    preparing raise.
    """
    return _predicted(run, source, os.fspath(out), model, False, ranks)


def evaluate(run: str | os.PathLike[str], source: Source, *,
             model: Any = None, ranks: bool = False) -> dict[str, Any]:
    """The measures of a run's model over the rows of `source`, which has the
    target: {"loss", "accuracy", ...}, as the run's report has them of its
    held-out rows. Else as predict(): with `ranks`, rank 0 alone gets them."""
    return _predicted(run, source, "", model, True, ranks).metrics


def _predicted(run: str | os.PathLike[str], source: Source, out: str,
               model: Any, measures: bool, ranks: bool) -> Predictions:
    folder = os.fspath(run)
    rows = dict(source) if isinstance(source, Mapping) else os.fspath(source)
    trained = json.loads(_engine.model_of_run(folder))
    if trained["kind"] != "own":
        return _by_program(folder, rows if isinstance(rows, str)
                           else json.dumps(rows), out, measures, ranks)
    if model is None:
        model = modules.found(trained["class"])
    told, columns = _by_module(folder, json.dumps(rows), out, model, measures,
                               ranks, not out and not measures)
    if told["rank"]:
        return Predictions(_OF_OTHERS, {})
    return Predictions(told["document"], columns)


#: What ranks other than 0 get.
_OF_OTHERS: Mapping[str, Any] = {"rows": 0, "bad": 0, "out": None}


class _Maker(Maker):
    """What the engine asks for when the first rows are there."""

    def __init__(self, torch: Any, model: Any, ranks: bool) -> None:
        super().__init__(torch, ranks)
        self._model = model

    def predictor(self, facts: str) -> Predictor:
        return Predictor(self._torch, self._model, json.loads(facts))


def _by_module(run: str, source: str, out: str, model: Any, measures: bool,
               ranks: bool, keep: bool
               ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What the engine says of them, and the columns."""
    torch = torch_or_refused()
    columns: dict[str, list[Any]] = {}
    with torch_as_asked(torch):
        told = _engine.predict(run, source, out, measures,
                               _Maker(torch, model, ranks),
                               columns if keep else None)
    return json.loads(told), columns


def _by_program(run: str, source: str, out: str, measures: bool,
                ranks: bool) -> Predictions:
    """The trainer of the other kinds of models is a part of the program."""
    path = program.path()
    named = str(path) if path.is_file() else \
        os.environ.get("PENSTOCK") or shutil.which("penstock")
    if not named:
        raise refused("predict.no_program", "cannot make predictions",
                      "the program penstock", "it is neither in this package "
                      "nor on PATH, and models of this kind run in it",
                      "install the program, or name it as PENSTOCK")
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder) / "rows.jsonl"
        command = [named, "evaluate" if measures else "predict", run, source,
                   "--json"]
        if not measures:
            command += ["--out", out or str(rows)]
        alone = {} if ranks else {"RANK": "0", "WORLD_SIZE": "1"}
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                                check=False, env={**os.environ, **alone})
        if ranks and answer.returncode == 0 and not answer.stdout:
            return Predictions(_OF_OTHERS, {})
        document = _document_in(answer.stdout)
        if "error" in document:
            error = document["error"]
            raise made(error["kind"], _line_of(error), **{
                part: error[part] for part in ("code", "what", "where", "why",
                                               "next")})
        if out or measures:
            return Predictions({"out": None, **document}, {})
        document["out"] = None
        return Predictions(document, _columns_of(rows))


def _document_in(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        return found
    except json.JSONDecodeError:
        return {"error": {
            "kind": "internal", "code": "predict.no_answer",
            "what": "cannot make predictions", "where": "the program penstock",
            "why": "it ended without an answer",
            "next": "run it by itself: penstock predict"}}


def _line_of(error: Mapping[str, str]) -> str:
    return (f"{error['what']} at {error['where']}: {error['why']}; "
            f"{error['next']}")


def _columns_of(rows: pathlib.Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    with open(rows, encoding="utf-8") as file:
        for line in file:
            for name, value in json.loads(line).items():
                columns.setdefault(name, []).append(value)
    return columns


def main() -> NoReturn:
    """What the program becomes when the model of a run is one's own:
    `python3 -m penstock.predictions REQUEST`, REQUEST being JSON."""
    request = json.loads(sys.argv[1])
    log_to_stderr()
    end_with(lambda: _program(request), request["json"])


def _program(request: Mapping[str, Any]) -> int:
    named = json.loads(_engine.model_of_run(request["run"]))
    out, measures = request["out"], request["measures"]
    to = out or ("" if measures or request["json"] else "-")
    with prints_aside():
        told, _ = _by_module(
            request["run"], json.dumps(request["source"]), to,
            modules.found(named["class"]), measures, True, False)
    if told["rank"]:
        return 0  # rank 0 prints what all of them did
    for note in told["notes"]:
        print(printable(note), file=sys.stderr)
    if request["json"]:
        say(json.dumps(told["document"], indent=2) + "\n")
    elif measures:
        say(told["measures"])
    else:
        print(printable(told["summary"]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    main()
