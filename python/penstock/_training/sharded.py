"""The sharded part of a checkpoint: what an optimiser keeps of weights that
every rank has a part of, by torch.distributed.checkpoint. Each rank writes and
reads its own part, and another number of ranks, one included, reads what it
then has.

A checkpoint of a run is a file with whole weights, which `state.json` names;
beside it is the folder `sharded-STEPS`, which the file names. The folder is
complete before the file is written. The three newest folders are kept: one
that is being written, and those of the two checkpoints that a run can be
resumed from.
"""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import warnings
from typing import Any, Callable, Iterator, Mapping

from ..errors import refused
from .ranks import Group

_PREFIX = "sharded-"


class Sharded:
    """Those of one run."""

    def __init__(self, folder: str, ranks: Group) -> None:
        self._folder, self._ranks = pathlib.Path(folder), ranks
        self._written = ""

    def write(self, tensors: Mapping[str, Any], steps: int) -> str:
        """The folder that has the tensors after so many steps. All ranks call
        it."""
        import torch.distributed.checkpoint as dcp

        path = self._folder / f"{_PREFIX}{steps}"
        if str(path) != self._written:
            if self._ranks.rank == 0:
                self._forget_old()
            with _quietly():
                dcp.save(dict(tensors),
                         storage_writer=dcp.FileSystemWriter(path))
            self._written = str(path)
        return self._written

    def _forget_old(self) -> None:
        there = sorted(self._folder.glob(_PREFIX + "*"),
                       key=lambda one: int(one.name[len(_PREFIX):]))
        for old in there[:-2]:
            shutil.rmtree(old, ignore_errors=True)


def read(torch: Any, named: str, resumed: str,
         like: Callable[[str], Any]) -> dict[str, Any]:
    """The tensors of a folder, which lies in the run that is resumed, or where
    it was written. `like`: the weight of a name, which says how tensors of its
    shape are placed; all ranks that share it call this."""
    import torch.distributed.checkpoint as dcp

    path = pathlib.Path(resumed) / pathlib.Path(named).name
    if not (path / ".metadata").exists():
        path = pathlib.Path(named)
    try:
        reader = dcp.FileSystemReader(path)
        known = reader.read_metadata().state_dict_metadata
    except Exception as error:
        raise refused(
            "resume.no_shards", "cannot continue from the checkpoint",
            str(path), f"the optimizer state cannot be read: {error}",
            "copy the run with all of its folders, or resume another run"
            ) from error
    into = {}
    for name, about in known.items():
        empty = torch.empty(about.size, dtype=about.properties.dtype)
        weight = like(name)
        if hasattr(weight, "placements") and weight.shape == empty.shape:
            from torch.distributed.tensor import zeros
            empty = zeros(about.size, dtype=empty.dtype,
                          device_mesh=weight.device_mesh,
                          placements=weight.placements)
        into[name] = empty
    with _quietly():
        dcp.load(into, storage_reader=reader,
                 no_dist=not torch.distributed.is_initialized())
    return into


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without torch's warnings about itself: what of it is deprecated, and that
    it reads without other ranks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
