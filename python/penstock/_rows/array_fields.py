"""What arrays of other libraries, which lie in files, are as fields of a job."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NoReturn

from .. import _engine
from ..job_sections import dumped
from .table_fields import finite_or_not

Section = dict[str, Any]
# The section `source`, the fields, and what these leave out, with the reason.
Opened = tuple[Section, dict[str, Any], list[str]]

# What a tensor cannot have becomes the next one that holds it.
_TENSORS = {"bool": "uint8", "uint64": "int64"}
_NUMBERS = {"uint64": "int64", "float16": "float32"}
# Of lists that differ in length.
ARRAYS = ("float32", "float64", "float16", "int64", "int32", "int16", "int8",
          "uint32", "uint16", "uint8")


def chosen_of(source: object, is_array: Callable[[object], bool],
              refuse: Callable[[str, str, str], NoReturn]
              ) -> dict[str, Any] | None:
    """The arrays that `source` is: one, which is "x", or a mapping of names to
    such; one with others beside them is refused. None where it is anything
    else."""
    if is_array(source):
        return {"x": source}
    if not isinstance(source, Mapping):
        return None
    chosen = {str(name): value for name, value in source.items()
              if is_array(value)}
    for name, value in source.items():
        if chosen and not is_array(value):
            first = next(iter(chosen))
            kind = ("an array in memory"
                    if hasattr(value, "__array_interface__")
                    else f"of the type {type(value).__name__}")
            refuse(str(name), f"'{name}' is {kind}, but '{first}' is in a "
                   "file", f"write {name} to the file, or pass {first}[:], "
                   "which reads it into memory")
    return chosen or None


def field_of(column: str, array: Any, dtype: str = "",
             flat_halves: bool = False) -> Section | None:
    """The field that an array makes, whose rows are its first dimension: numbers
    of one dimension a tensor [n], others [n, ...], of the array's own dtype
    where a tensor may have it, or of `dtype`; texts a category. None where it
    makes none. `flat_halves`: rows of one float16 are tensors to the engine."""
    found = array.dtype
    if len(array.shape) == 0 or getattr(found, "names", None) is not None:
        return None
    if found.kind in "OSUT":
        return ({"category": {"column": column}} if len(array.shape) == 1
                else None)
    if found.kind not in "fiub":
        return None
    name = dtype or found.name
    halves = flat_halves and name == "float16"
    if len(array.shape) == 1 and not halves:
        return {"column": column, "dtype": _NUMBERS.get(name, name),
                **({"missing": "nan"} if found.kind == "f" else {})}
    dtype = _TENSORS.get(name, name)
    return {"array": {"column": column, "shape": list(array.shape[1:]),
                      "dtype": dtype, **finite_or_not(dtype)}}


def unpacked_dtype(array: Any, attributes: Mapping[str, Any],
                   masked: bool = False) -> str:
    """The dtype of the numbers that attributes of the CF conventions make of an
    array's; empty where they leave them as they are. `masked`: one of the values
    is missing whatever the attributes say."""
    dtype = array.dtype
    if dtype.kind not in "iuf":
        return ""
    if any(_is_number(attributes.get(key))
           for key in ("scale_factor", "add_offset")):
        return "float64"
    if masked or any(_is_number(attributes.get(key))
                     for key in ("missing_value", "_FillValue")):
        return ("float32" if dtype.itemsize <= 2 or dtype.name == "float32"
                else "float64")
    sign = attributes.get("_Unsigned")
    if isinstance(sign, bytes):
        sign = sign.decode(errors="replace")
    if dtype.kind == "f" or not isinstance(sign, str):
        return ""
    kinds = {"true": "uint", "false": "int"}
    return f"{kinds[sign]}{8 * dtype.itemsize}" if sign in kinds else ""


def _is_number(value: object) -> bool:
    """One number, or a list of numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return bool(value) and all(_is_number(one) for one in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fields_of_all(arrays: Iterable[tuple[str, Any]],
                  field: Callable[[Any], Section | None], section: Section
                  ) -> tuple[dict[str, Any], list[str]]:
    """A field of each array (by its path below what was handed in) that has as
    many rows as the largest one, and what is left out. `section` opens them."""
    unread = dict(_engine.SourceColumns.unread(dumped(section)))
    rules: dict[str, Any] = {}
    left_out: list[str] = []
    made = []
    for path, array in arrays:
        rule = field(array)
        if rule is None:
            left_out.append(f"'{path}' is {array.dtype} {list(array.shape)}, "
                            "not rows of numbers or texts")
        elif (column := _column_of(rule)) in unread:
            left_out.append(f"'{path}': {unread[column]}")
        else:
            made.append((path, array, rule))
    largest = max(made, default=None, key=lambda one: _bytes(one[1]))
    for path, array, rule in made:
        if largest is not None and array.shape[0] != largest[1].shape[0]:
            left_out.append(f"'{path}' has {array.shape[0]} rows, and "
                            f"'{largest[0]}' has {largest[1].shape[0]}")
        else:
            rules[path.replace("/", "_")] = rule
    return rules, left_out


def _column_of(rule: Section) -> str:
    about = rule if "column" in rule else next(iter(rule.values()))
    return str(about["column"])


def _bytes(array: Any) -> int:
    # A text of any length is told by 16 bytes.
    width = 16 if array.dtype.kind in "OT" else array.dtype.itemsize
    return int(array.size) * int(width)
