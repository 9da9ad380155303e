"""Arrays and groups of zarr that are handed in are opened by the path of their
store: Python reads no chunk of them."""

from __future__ import annotations

import os
from typing import Any, Iterator, NoReturn

from .array_fields import (Opened, Section, chosen_of, field_of, fields_of_all,
                           unpacked_dtype)
from ..errors import refused

# Stores that are a folder, of zarr 3 and 2, and what names it.
_FOLDERS = {"LocalStore": "root", "DirectoryStore": "path",
            "NestedDirectoryStore": "path"}


def _is_of(value: object, name: str) -> bool:
    kind = type(value)
    return (kind.__name__ == name
            and kind.__module__.partition(".")[0] == "zarr")


def _is_array(value: object) -> bool:
    return _is_of(value, "Array")


def section_of(source: object) -> Opened | None:
    """The `source` section that reads what `source` is: an array of zarr, a
    mapping of names to such, or a group; with a field for each array, of a group
    those that have as many rows as the largest one. None where it is anything
    else.

    Raises RequestError, code zarr.store, where they cannot be opened by their
    path: in memory, in an archive, or far away.
    """
    if _is_of(source, "Group"):
        return _of_group(source)
    arrays = chosen_of(source, _is_array, _refuse)
    if arrays is None:
        return None
    paths = {_path_of(name, array) for name, array in arrays.items()}
    if len(paths) > 1:
        _refuse("arrays of " + " and ".join(sorted(paths)),
                "they are in several stores", "combine them in one store")
    fields: dict[str, Any] = {}
    for name, array in arrays.items():
        rule = _field(array)
        if rule is None:
            _refuse(name, "it has no rows of numbers or texts",
                    "pass an array of numbers")
        fields[name] = rule
    return {"kind": "zarr", "path": paths.pop()}, fields, []


def _of_group(group: Any) -> Opened:
    path = _path_of("the group", group)
    section = {"kind": "zarr", "path": path}
    rules, left_out = fields_of_all(_arrays_in(group, ""), _field, section)
    if not rules:
        _refuse(path, "the group has no array with rows of numbers or texts"
                + "".join(f"; {why}" for why in left_out),
                "name another group, or an array")
    return section, rules, left_out


def _arrays_in(group: Any, below: str) -> Iterator[tuple[str, Any]]:
    for name, array in sorted(group.arrays(), key=lambda one: str(one[0])):
        yield below + name, array
    for name, inner in sorted(group.groups(), key=lambda one: str(one[0])):
        yield from _arrays_in(inner, f"{below}{name}/")


def _refuse(where: str, why: str, what_next: str) -> NoReturn:
    raise refused("zarr.store", "cannot open an array of zarr by its path",
                  where, why, what_next)


def _path_of(name: str, opened: Any) -> str:
    store = opened.store
    kind = type(store).__name__
    if kind not in _FOLDERS:
        _refuse(name, f"its store is a {kind}, which is not a folder on this "
                "machine", "copy it into a folder (zarr.storage.LocalStore), "
                "or pass arrays: array[:]")
    return os.path.abspath(str(getattr(store, _FOLDERS[kind])))


def _field(array: Any) -> Section | None:
    # xarray keeps _FillValue as the fill value of version 2, and in version 3
    # as text.
    attributes = dict(array.attrs)
    masked = (isinstance(attributes.get("_FillValue"), str)
              or ("_ARRAY_DIMENSIONS" in attributes
                  and array.metadata.zarr_format == 2
                  and array.fill_value is not None))
    dtype = unpacked_dtype(array, attributes, masked)
    return field_of("/" + array.path, array, dtype, flat_halves=True)
