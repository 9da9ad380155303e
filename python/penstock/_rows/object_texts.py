"""Columns of objects of a data frame, where these are texts: the different
texts, and the number of each row's, in one walk over the objects.
"""

from __future__ import annotations

import collections
import importlib
from typing import Any, Iterator, Mapping, NamedTuple

from .. import _engine

MOST_CODES = (1 << 15) - 1  # of 16 bits


class Coded(NamedTuple):
    """A column as an array of Arrow of codes, and its texts in the order of
    their bytes; None: they are too many."""
    array: object
    texts: list[str] | None


class Addresses:
    """The objects of an array of numpy by where they are."""

    def __init__(self, values: Any) -> None:
        self.values = values  # keeps them
        self.__array_interface__ = {
            "version": 3, "typestr": "<u8", "shape": values.shape,
            "strides": values.strides, "data": (values.ctypes.data, True)}


def coded(pyarrow: Any, held: Any, most: int) -> Coded | None:
    """A column of pandas that holds objects, each of which is a text or
    missing; None for all others, and for one without a text. `most` is how many
    of the texts may be different."""
    import numpy
    values = getattr(held, "_ndarray", None)
    if values is None or values.dtype != object or not len(values):
        return None
    pandas: Any = importlib.import_module("pandas")
    codes = numpy.empty(len(values), "int16")
    found = _engine.text_codes(numpy.asarray(Addresses(values)),
                               [pandas.NA, pandas.NaT], codes, most)
    if found is None or found[0] == []:
        return None
    texts, missing = found
    if texts is None:
        return Coded(None, None)
    valid = pyarrow.py_buffer(numpy.packbits(codes >= 0, bitorder="little")) \
        if missing else None
    indices = pyarrow.Array.from_buffers(
        pyarrow.int16(), len(codes), [valid, pyarrow.py_buffer(codes)], missing)
    return Coded(pyarrow.DictionaryArray.from_arrays(
        indices, pyarrow.array(texts), safe=False), texts)


def texts_in(value: object) -> Iterator[str]:
    """All texts, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inside in value.items():
            yield from (str(name), *texts_in(inside))
    elif isinstance(value, (list, tuple)):
        for inside in value:
            yield from texts_in(inside)


def read_as_classes(fields: object) -> set[str]:
    """The columns of which fields take the classes and nothing else, whatever
    the classes' counts are."""
    rules = list(fields.values()) if isinstance(fields, Mapping) else [fields]
    times = collections.Counter(
        text for rule in rules for text in texts_in(rule))
    of_rules = [rule["category"] for rule in rules if isinstance(rule, Mapping)
                and isinstance(rule.get("category"), Mapping)]
    if isinstance(fields, Mapping):  # {"y": "species"}: a category, of a text
        of_rules += [{"column": rule} for rule in rules
                     if isinstance(rule, str)]
    return {rule["column"] for rule in of_rules
            if isinstance(rule.get("column"), str)
            and times[rule["column"]] == 1
            and not {"min_count", "order"} & rule.keys()}
