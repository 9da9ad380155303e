"""Classes that columns of Parquet and Arrow files are declared to have, as the
engine's plugin finds them (declared_classes.cpp): the names of those that
integers number, ClassLabel of Hugging Face, and the order of a dictionary that
is a Categorical of pandas or says that it is ordered.
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Sequence


def usable(classes: Sequence[object]) -> list[str]:
    """These, where they are different texts; else none."""
    try:
        texts = [str(each) for each in classes if isinstance(each, str)]
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return []
    return texts if len(set(texts)) == len(classes) else []


class Declared:
    """What a schema says of classes."""

    def __init__(self, schema: Any) -> None:
        info = _written_by(schema, b"huggingface", "info")
        self._features = _member(info, "features")
        columns = _written_by(schema, b"pandas", "columns")
        self._categoricals = {
            str(_member(column, "field_name"))
            for column in (columns if isinstance(columns, list) else [])
            if _member(column, "pandas_type") == "categorical"}

    def labels(self, names: Sequence[str]) -> list[str]:
        """Those of a column of integers, "b" in "a" by its names."""
        found = self._features
        for name in names:
            found = _member(found, name)
        listed = _member(found, "names")
        if _member(found, "_type") != "ClassLabel" or \
                not isinstance(listed, list):
            return []
        return usable(listed)

    def orders(self, name: str, type: Any) -> bool:
        """Whether the dictionary of a column has the order of its classes."""
        return bool(type.ordered) or name in self._categoricals


def _written_by(schema: Any, library: bytes, name: str) -> object:
    try:
        return _member(json.loads((schema.metadata or {})[library]), name)
    except (KeyError, ValueError, RecursionError):
        return None  # nothing that we know


def _member(of: object, name: str) -> object:
    return of.get(name) if isinstance(of, dict) else None


class SharedDictionary:
    """The dictionaries of a column, one after the other: its classes where all
    are one."""

    def __init__(self) -> None:
        self._dictionary: Any = None
        self._shared = True

    def add(self, array: Any) -> bool:
        """False: they are not one, whatever follows."""
        types: Any = importlib.import_module("pyarrow").types
        if not types.is_dictionary(array.type):
            self._shared = False
        elif self._dictionary is None:
            self._dictionary = array.dictionary
        elif not array.dictionary.equals(self._dictionary):
            self._shared = False
        return self._shared

    def classes(self) -> list[str]:
        if not self._shared or self._dictionary is None:
            return []
        try:
            return usable(self._dictionary.to_pylist())
        except UnicodeDecodeError:
            return []
