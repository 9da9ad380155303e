"""Training in the run of `penstock train`: a torch module of your own, or a
model of a built-in kind.

    import penstock

    run = penstock.train("job.json", model=Net, output="weights")
    print(run.report["metrics"], run.folder)
    run.module                       # with the weights that the run kept

`Net` is a torch.nn.Module whose forward() takes tensors of a batch by their
names and returns predictions of the field that the job's `model.target` names,
or a loss (docs/how-to/own_model.md). Steps, validation, checkpoints, resuming
and the report are the program's; `penstock train job.json --model net.py:Net`
runs the same.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from typing import Any, Mapping, NoReturn, Sequence

from . import _engine
from ._program import end_with, log_to_stderr, prints_aside, say
from ._training import module as modules
from ._training.maker import Maker
from ._training.raised import torch_or_refused
from ._training.stepper import Stepper
from ._training.switches import torch_as_asked
from .errors import refused
from .job_sections import dumped, sets_of
from .printing import printable
from .progress import NOWHERE, Listener

__all__ = ["Trained", "train"]


class Trained:
    """What a run has left."""

    def __init__(self, report: dict[str, Any], module: Any,
                 rank: int = 0) -> None:
        #: As in the run's report.json.
        self.report = report
        #: The run's folder, which `resume` takes.
        self.folder = str(report["run"])
        #: With the weights that the run kept (see `train.keep`; with
        #: `train.ema` they are averages), in eval(), on its device. Those of
        #: the last step, where the run was interrupted. None for a model
        #: of a built-in kind, whose weights are in `output`, or in the
        #: folder of the run.
        #: None on other ranks than 0.
        self.module = module
        #: Of this process, where several train together.
        self.rank = rank

    def __repr__(self) -> str:
        return (f"<penstock.Trained: {self.report['steps']} steps, "
                f"{printable(self.folder)}>")


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)


def train(job: str | os.PathLike[str] | Mapping[str, Any] | None = None,
          model: Any = None, *, resume: str | os.PathLike[str] = "",
          skip: int = 0, output: str | os.PathLike[str] = "",
          progress: bool = True, trace: bool = False,
          **overrides: Any) -> Trained:
    """Runs a job: a file, or the same as a dict. Its model is of a built-in
    kind, as `penstock train` trains it, or a torch module of your own.

    `model` is a class of torch.nn.Module or a function that makes one, whose
    parameters get by their names what is known of the data (fields, classes,
    statistics) and the job's `model.arguments`; or a module that is made
    already; or "FILE.py:NAME". Without it, the job's `model` says which one. Built-in
    kinds take the torch release that the installed trainers were built for.
    `resume` names a run's folder to go on from, in place of a job, `skip` steps
    of data to leave out then; `output` a folder for the weights at the end.
    `progress` shows a line on standard error; `trace` keeps what all threads
    and the device did as trace.json in the run's folder. An override names a setting with
    "__" for the dot: `train__max_steps=100`.

    Ctrl-C, SIGTERM, SIGHUP (the terminal was closed) and SIGXCPU end the run
    after the step at hand, save its state, and then do what they would have
    done; sent twice, at once. One that is ignored stays so. Raises RequestError
    for settings and for what the module does wrong, with what it raised as the
    cause, and what reading and preparing raise.
    """
    main = threading.current_thread() is threading.main_thread()
    ending = [one for one in _ENDING if main
              and signal.getsignal(one) is not signal.SIG_IGN]
    trained, stopped_by = _run(
        job, model, sets_of("train", overrides), os.fspath(resume), skip,
        os.fspath(output), Listener(None if progress else NOWHERE), ending,
        [], trace)
    if stopped_by:
        logging.getLogger("penstock").warning(
            "the run was interrupted and is saved: continue with resume=%r",
            trained.folder)
        signal.raise_signal(stopped_by)
    return trained


def _settings_of(job: Any, model: Any, sets: Sequence[str], resume: str,
                 manifest: str) -> tuple[str, Any]:
    """The job with its settings, as JSON, and the module that it names; None
    for a model of a built-in kind."""
    if (job is None and not manifest) == (not resume):
        raise refused("model.job", "cannot start the training", "train()",
                      "the call names both a job and a run" if resume else
                      "the call names neither a job nor a run",
                      "pass a job, or resume=RUN")
    document = job if isinstance(job, Mapping) else None
    path = "" if job is None or document is not None else os.fspath(job)
    if isinstance(model, str) or model is None:
        named = model or ""
    else:
        named = modules.name_of(model)
    settings = _engine.run_document(
        path, dumped(document) if document is not None else "", resume,
        list(sets), named, manifest)
    section = json.loads(settings).get("model")
    if not isinstance(section, dict) or section["kind"] != "own":
        return settings, None
    if isinstance(model, str) or model is None:
        torch_or_refused()
        model = modules.found(section["class"])
    return settings, model


def _check(request: Mapping[str, Any]) -> None:
    """Raises what would end the run before its rows are known."""
    settings, model = _settings_of(
        request["job"] or None, request["model"] or None, request["sets"],
        request["resume"], request["manifest"])
    modules.check(torch_or_refused(), model, json.loads(settings)["model"])


def _run(job: Any, model: Any, sets: Sequence[str], resume: str, skip: int,
         output: str, listener: Listener, ending: Sequence[int],
         saving: Sequence[int], trace: bool, manifest: str = ""
         ) -> tuple[Trained, int]:
    """The run, and the signal that stopped it or 0."""
    settings, model = _settings_of(job, model, sets, resume, manifest)
    # A built-in model's trainer uses the libraries of the torch that is loaded.
    torch = torch_or_refused()
    maker = _Maker(torch, model, resume)
    try:
        with torch_as_asked(torch):
            report, rank, stopped_by = _engine.train(
                settings, maker, listener, resume, skip, output, list(ending),
                list(saving), trace)
    finally:
        listener.end()
    module = maker.made.finished() if maker.made is not None else None
    return Trained(json.loads(report), module, rank), stopped_by


class _Maker(Maker):
    """What the engine asks for when the rows are open."""

    def __init__(self, torch: Any, model: Any, resumed: str) -> None:
        super().__init__(torch)
        self._model, self._resumed = model, resumed
        self.made: Stepper | None = None

    def stream(self, gpu: int) -> int:
        return int(self._torch.cuda.current_stream(gpu).cuda_stream)

    def stepper(self, facts: str) -> Stepper:
        self.made = Stepper(self._torch, self._model, json.loads(facts),
                            self._ranks, self._resumed)
        return self.made


def main() -> NoReturn:
    """What the program becomes when a job's model is one's own:
    `python3 -m penstock.training REQUEST`, REQUEST being JSON."""
    request = json.loads(sys.argv[1])
    log_to_stderr()
    logging.getLogger("penstock").setLevel(logging.DEBUG)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with(lambda: _program(request), request["json"])


def _program(request: Mapping[str, Any]) -> int:
    if request.get("check"):
        _check(request)
        return 0
    return _estimate(request) if request.get("estimate") else _train(request)


def _estimate(request: Mapping[str, Any]) -> int:
    """Prints what a step of the job's model takes."""
    with prints_aside(request["json"]):
        settings, model = _settings_of(
            request["job"] or None, request["model"] or None, request["sets"],
            request["resume"], request["manifest"])
        torch = torch_or_refused()
        with torch_as_asked(torch):
            maker = _Maker(torch, model, "")
            memory, line = _engine.estimate(settings, maker,
                                            Listener(sys.stderr))
    if request["json"]:
        say(json.dumps({"memory": json.loads(memory)}, indent=2) + "\n")
    else:
        say(line + "\n")
    return 0


def _train(request: Mapping[str, Any]) -> int:
    with prints_aside(request["json"]):
        trained, stopped_by = _run(
            request["job"] or None, request["model"] or None, request["sets"],
            request["resume"], request["skip"], request["output"],
            Listener(sys.stderr),
            [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU],
            [signal.SIGUSR1, signal.SIGUSR2], request["trace"],
            request["manifest"])
    if trained.rank > 0:
        pass  # rank 0 prints what all of them did
    elif request["json"]:
        say(json.dumps(trained.report, indent=2) + "\n")
    else:
        say(printable(_engine.summary(json.dumps(trained.report))))
    return 128 + stopped_by if stopped_by else 0


if __name__ == "__main__":
    main()
