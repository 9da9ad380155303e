"""Data sets of h5py that are handed in are opened by their path: Python reads
nothing of them, and h5py's lock is not held."""

from __future__ import annotations

import os
from typing import Any, Mapping, NoReturn

from .errors import refused


def _is_data_set(value: object) -> bool:
    kind = type(value)
    return (kind.__name__ == "Dataset"
            and kind.__module__.partition(".")[0] == "h5py")


def section_of(source: object) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The `source` section that reads the data sets of h5py that `source` is, or
    a mapping of names to such, and a field for each of them; None where it is
    anything else.

    A vector becomes a tensor [n], all else [n, ...], of the data set's own
    dtype where a tensor may have it, texts a category. Raises RequestError,
    code hdf5.h5py, where they cannot be opened by their path.
    """
    if _is_data_set(source):
        sets: Mapping[str, Any] = {"x": source}
    elif (isinstance(source, Mapping) and source
          and all(_is_data_set(value) for value in source.values())):
        sets = {str(name): value for name, value in source.items()}
    else:
        return None
    paths = {_path_of(name, data_set) for name, data_set in sets.items()}
    if len(paths) > 1:
        _refuse("data sets of " + " and ".join(sorted(paths)),
                "they are in several files",
                "put them into one, or name a file of labels: "
                '{"kind": "hdf5", "path": ..., "labels": ...}')
    section = {"kind": "hdf5", "path": paths.pop(), "axis": "first"}
    return section, {name: _field(name, data_set)
                     for name, data_set in sets.items()}


def _refuse(where: str, why: str, what_next: str) -> NoReturn:
    raise refused("hdf5.h5py", "cannot open a data set of h5py by its path",
                  where, why, what_next)


def _path_of(name: str, data_set: Any) -> str:
    if not data_set:
        _refuse(name, "its file is closed", "open it again")
    file = data_set.file
    if file.driver not in ("sec2", "stdio"):
        _refuse(name, f"its file is opened with the driver '{file.driver}'",
                "write it to a file, or hand in arrays: data_set[:]")
    if file.mode != "r":
        _refuse(name, "its file is open for writing",
                "close it, and open it with h5py.File(path, 'r')")
    return os.path.abspath(os.fsdecode(file.filename))


def _field(name: str, data_set: Any) -> dict[str, Any]:
    dtype = data_set.dtype
    if data_set.ndim == 0 or dtype.names is not None:
        _refuse(name, "it has no rows of numbers or texts",
                "say in fields= what is to become of it")
    if dtype.kind in "OS":
        return {"category": {"column": data_set.name}}
    wanted = {"float16": "float32", "bool": "uint8",
              "uint64": "int64"}.get(dtype.name, dtype.name)
    if data_set.ndim == 1:
        return {"column": data_set.name, "dtype": wanted}
    return {"array": {"column": data_set.name,
                      "shape": list(data_set.shape[1:]), "dtype": wanted}}
