"""The fields that the columns of a table make by themselves, by one rule for
tables in memory, files and databases."""

from __future__ import annotations

from typing import Any, Container, Mapping, Protocol

from .. import _engine
from ..errors import refused
from .media_columns import (Media, field_of, is_path_of_media, rule_of,
                            why_no_path, why_not)

_INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
             "uint8")
_ARRAYS = ("float32", "float64", "float16", *_INTEGERS)
MOST_CLASSES = 1000  # of a text column that is a category by itself
_OF_ARRAYS = ("hdf5", "npy", "zarr", "tfrecord")  # kinds whose dtypes are kept
# Name, declared type, kind, dtype, may there be nulls, shape, declared classes,
# is it (part of) the declared primary key, and what it is if it is an index.
Column = tuple[str, str, str, str, bool, list[int], int, bool, str]


class Declared:
    """Columns of which the texts that they hold are not known."""

    rows = 0

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns

    def distinct(self, column: int, most: int) -> int | None:
        return None

    def media(self, column: int) -> Media | None:
        return None


class Columns(Protocol):
    """Columns, and how many different texts each holds."""

    @property
    def columns(self) -> list[Column]: ...

    @property
    def rows(self) -> int:
        """Those that were read; 0: none."""

    def distinct(self, column: int, most: int) -> int | None:
        """None: more than `most`."""

    def media(self, column: int) -> Media | None:
        """What its first rows hold; None: neither pictures nor sounds."""


def fields_of_columns(table: Columns, skips: bool = False, keep: bool = True
                      ) -> tuple[dict[str, Any], list[str]]:
    """A field of each column that can be one by itself, and why the others
    cannot: integers in their own width, other numbers as float32, or in their
    own width where `keep` is true, times as seconds since 1970, declared classes
    and texts of few values as categories, lists and tensors of numbers as
    arrays, bytes that are pictures of one size as these. Numbers that say which
    of declared classes a row has stay what they are. No number is left out but a
    declared primary key. `skips`: bad rows are left out."""
    rules: dict[str, Any] = {}
    left_out: list[str] = []
    media: dict[str, Media] = {}  # that no rule was made for
    kinds = {column[0]: column[2] for column in table.columns}
    names = set(kinds)
    for at, column in enumerate(table.columns):
        name, kind = column[0], column[2]
        if kind == "left out":
            left_out.append(f"'{name}': {column[1]}")
        elif column[8]:
            left_out.append(f"'{name}' is {column[8]}")
        elif not name:
            left_out.append("a column has no name")
        elif column[7]:
            left_out.append(f"'{name}' is the primary key")
        elif is_path_of_media(name, kinds):
            left_out.append(f"'{name}' {why_no_path(name, kinds)}")
        elif kind == "binary" and (found := table.media(at)) is not None:
            if (rule := rule_of(name, found, skips)) is None:
                media[name] = found
            else:
                rules[_field_name(field_of(name), rule, names, rules)] = rule
        elif (why := _why_no_class(table, at, column)):
            left_out.append(f"'{name}' {why}")
        elif (rule := _category(table, at, column, keep)
              if kind == "text" or column[6] else _numbers(column, keep)):
            rules[_field_name(name, rule, names, rules)] = rule
        else:
            left_out.append(f"'{name}' {_why_not(column)}")
    left_out += [f"'{name}' {why_not(name, found, rules)}"
                 for name, found in media.items()]
    _tell_nulls([column for column in table.columns if column[4]], rules)
    return rules, left_out


def _tell_nulls(columns: list[Column], rules: Mapping[str, Any]) -> None:
    """Warns of numbers that are missing in some rows: what stands in their
    place is seen by a model as any other number is."""
    rule_of_column = {rule["column"]: rule for rule in rules.values()
                      if "column" in rule}
    missing = {column[0]: rule_of_column[column[0]]["missing"]
               for column in columns
               if "missing" in rule_of_column.get(column[0], {})}
    for how, becomes, instead in (
            ("nan", "NaN", "mask"), ("mask", "0, with NAME_mask", "mean")):
        names = [name for name, found in missing.items() if found == how]
        if names:
            shown = ", ".join(f"'{name}'" for name in names[:3]) + (
                f" and {len(names) - 3} more" if len(names) > 3 else "")
            import logging

            logging.getLogger("penstock").warning(
                "NULL in %s becomes %s; to choose, give fields={\"%s\": "
                "{\"column\": \"%s\", \"missing\": \"%s\"}, ...}", shown,
                becomes, names[0], names[0], instead)


def fields_of_source(section: Mapping[str, Any], text: str, keep: bool
                     ) -> tuple[dict[str, Any], list[str], str]:
    """The same of a job's `source` section, whose JSON is `text`, and which
    rows say so. Sources of arrays keep their dtypes."""
    kind = section.get("kind")
    columns = _engine.SourceColumns.seen(text, MOST_CLASSES)
    if kind in ("images", "audio"):
        return *_fields_of_media(str(kind), columns), ""
    rules, left_out = fields_of_columns(
        columns, section.get("on_bad") == "skip", keep or kind in _OF_ARRAYS)
    left_out += [f"'{name}': {why}" for name, why in columns.left_out]
    if not rules:
        raise refused("fields.none", "no column can become a field "
                                     "automatically",
                      str(section.get("path") or section.get("table") or kind),
                      "; ".join(left_out),
                      "name the columns in 'fields', such as {\"x\": [\"a\"]}")
    seen = "" if not columns.rows else \
        f"all {columns.rows:,} rows" if columns.all_rows else \
        f"the first {columns.rows:,} rows"
    return rules, left_out, seen


def _fields_of_media(kind: str, columns: Columns
                     ) -> tuple[dict[str, Any], list[str]]:
    """Files in folders: what they hold, and their class, as torchvision's
    ImageFolder has it."""
    if kind == "audio":
        raise refused("fields.none", "no column can become a field "
                                     "automatically",
                      "'audio'", "the length of a row of sound must be set",
                      "give fields={\"audio\": {\"audio\": {\"seconds\": 2}}, "
                      "\"class\": {\"category\": {\"column\": \"class\", "
                      "\"unknown\": \"error\"}}}")
    rules: dict[str, Any] = {"image": {"image": {}}}
    if any(column[0] == "class" and column[6] for column in columns.columns):
        rules["class"] = {"category": {"column": "class", "unknown": "error"}}
    return rules, ["'path' names the files"]


def _field_name(name: str, rule: Mapping[str, Any], names: Container[str],
                rules: Container[str]) -> str:
    """The column's, of a path in a file with "_" for "/"; or the next one, where
    a batch has a use for that: for one of the columns' `names` or `rules`."""
    def used(wanted: str) -> bool:
        return wanted in names or wanted in rules

    def taken(wanted: str) -> bool:
        return (wanted in ("weight", "__metadata__")
                or wanted != name and used(wanted)
                or rule.get("array", {}).get("lengths") == "padded"
                and used(f"{wanted}_lengths")
                or rule.get("missing") == "mask" and used(f"{wanted}_mask"))

    found = name[1:].replace("/", "_") if name[0] == "/" else name
    while taken(found):
        found += "_"
    return found


def _why_no_class(table: Columns, at: int, column: Column) -> str:
    """Why texts tell nothing of their rows; empty: they may."""
    name, _, kind, _, nulls, _, classes, _, _ = column
    if kind != "text" or classes or not table.rows:
        return ""
    different = table.distinct(at, MOST_CLASSES)
    if different is None:
        return ""
    if different == table.rows and not nulls and different > 1:
        return "holds a different text in every row"
    return "holds one text in all rows" if different == 1 and not nulls else ""


def _category(table: Columns, at: int, column: Column, keep: bool
              ) -> dict[str, Any] | None:
    name, _, kind, _, _, _, classes, _, _ = column
    if classes > MOST_CLASSES or not classes and \
            table.distinct(at, MOST_CLASSES) is None:
        return _numbers(column, keep)
    return {"category": {"column": name, **(
        {} if kind == "text" else {"unknown": "error"})}}


def _numbers(column: Column, keep: bool) -> dict[str, Any] | None:
    name, _, kind, dtype, nulls, shape, _, _, _ = column

    def width(of: str) -> str:
        return "float32" if of == "float16" or not keep and of == "float64" \
            else of

    if kind == "time":  # float32 cannot tell seconds since 1970 apart
        return {"column": name, "dtype": "float64",
                **({"missing": "nan"} if nulls else {})}
    if kind == "boolean":
        return {"column": name, "dtype": "float32", "missing": "nan"} \
            if nulls else {"column": name, "dtype": "bool"}
    if kind in ("float32", "float64", "float16"):
        return {"column": name, "dtype": width(kind), "missing": "nan"}
    if kind in _INTEGERS:  # which no float holds exactly
        return {"column": name, "dtype": kind,
                **({"missing": "mask"} if nulls else {})}
    if kind in ("list", "tensor") and dtype in _ARRAYS and not nulls:
        return {"array": {"column": name, "dtype": dtype if keep or
                          dtype != "float64" else "float32", **(
            {"shape": shape} if kind == "tensor" else
            {"lengths": "padded"}), **finite_or_not(dtype)}}
    return None


def finite_or_not(dtype: str) -> dict[str, Any]:
    """Of an array: NaN and infinities stay, as those of single numbers do."""
    return {} if dtype in _INTEGERS else {"finite": False}


def _why_not(column: Column) -> str:
    name, declared, kind, dtype, nulls, _, classes, _, _ = column
    if kind == "text":
        return (f"declares more than {MOST_CLASSES} classes" if classes else
                f"holds more than {MOST_CLASSES} different texts")
    if kind in ("list", "tensor") and dtype in _ARRAYS and nulls:
        return "holds lists, and NULL"
    return f"holds {declared}" if declared else "declares no type"
