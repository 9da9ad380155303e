"""Files, groups and data sets of h5py that are handed in are opened by their path:
Python reads nothing of them, and h5py's lock is not held."""

from __future__ import annotations

import os
from typing import Any, Iterator, NoReturn

from .array_fields import (ARRAYS, Opened, Section, chosen_of, field_of,
                           fields_of_all, unpacked_dtype)
from ..errors import refused


def _is_of(value: object, *names: str) -> bool:
    kind = type(value)
    return (kind.__name__ in names
            and kind.__module__.partition(".")[0] == "h5py")


def _is_data_set(value: object) -> bool:
    return _is_of(value, "Dataset")


def section_of(source: object) -> Opened | None:
    """The `source` section that reads what `source` is: a data set of h5py, a
    mapping of names to such, or a file or group; with a field for each data set,
    of a group those that have as many rows as the largest one. None where it is
    anything else.

    Raises RequestError, code hdf5.h5py, where they cannot be opened by their
    path.
    """
    if _is_of(source, "File", "Group"):
        return _of_group(source)
    sets = chosen_of(source, _is_data_set, _refuse)
    if sets is None:
        return None
    paths = {_path_of(name, data_set) for name, data_set in sets.items()}
    if len(paths) > 1:
        _refuse("data sets of " + " and ".join(sorted(paths)),
                "they are in several files",
                "combine them in one file, or name a file of labels: "
                '{"kind": "hdf5", "path": ..., "labels": ...}')
    fields: dict[str, Any] = {}
    for name, data_set in sets.items():
        rule = _field(data_set)
        if rule is None:
            _refuse(name, "it has no rows of numbers or texts",
                    "set fields= for it")
        fields[name] = rule
    return _section(paths.pop()), fields, []


def _of_group(group: Any) -> Opened:
    section = _section(_path_of("the file", group))
    if group.name != "/":
        section["group"] = group.name
    rules, left_out = fields_of_all(_data_sets_in(group, ""), _field,
                                    section)
    if not rules:
        _refuse(group.name, "the group has no data set with rows of numbers "
                            "or texts"
                + "".join(f"; {why}" for why in left_out),
                "name another group, or a data set")
    return section, rules, left_out


def _data_sets_in(group: Any, below: str) -> Iterator[tuple[str, Any]]:
    """Those of the file itself, by their paths below `group`: what is linked to
    is not looked for."""
    for name in group:
        if type(group.get(name, getlink=True)).__name__ != "HardLink":
            continue
        value = group[name]
        if _is_data_set(value):
            yield below + name, value
        elif _is_of(value, "Group"):
            yield from _data_sets_in(value, f"{below}{name}/")


def _section(path: str) -> Section:
    return {"kind": "hdf5", "path": path, "axis": "first"}


def _refuse(where: str, why: str, what_next: str) -> NoReturn:
    raise refused("hdf5.h5py", "cannot open a data set of h5py by its path",
                  where, why, what_next)


def _path_of(name: str, opened: Any) -> str:
    if not opened:
        _refuse(name, "its file is closed", "open the file again")
    file = opened.file
    if file.driver not in ("sec2", "stdio"):
        _refuse(name, f"its file is opened with the driver '{file.driver}'",
                "write the file to disk, or pass arrays: data_set[:]")
    if file.mode != "r":
        _refuse(name, "its file is open for writing",
                "close the file, and open it with h5py.File(path, 'r')")
    return os.path.abspath(os.fsdecode(file.filename))


def _attributes_of(data_set: Any) -> dict[str, Any]:
    """Those of the CF conventions; h5py cannot read all types of others."""
    return {name: data_set.attrs[name]
            for name in ("scale_factor", "add_offset", "missing_value",
                         "_FillValue", "_Unsigned")
            if name in data_set.attrs}


def _field(data_set: Any) -> Section | None:
    about = getattr(data_set.dtype, "metadata", None) or {}
    lists = about.get("vlen", str)  # what a value of any length is made of
    if "ref" in about:
        return None
    if lists in (str, bytes):
        # An enum has numbers that stand for names.
        dtype = ("" if "enum" in about
                 else unpacked_dtype(data_set, _attributes_of(data_set)))
        return field_of(data_set.name, data_set, dtype)
    name = getattr(lists, "name", "")
    if data_set.ndim != 1 or name not in ARRAYS:
        return None
    return {"array": {"column": data_set.name, "lengths": "padded",
                      "dtype": name}}
