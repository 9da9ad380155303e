"""What arrays of other libraries, which lie in files, are as fields of a job."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

Section = dict[str, Any]
# The section `source`, the fields, and what these leave out, with the reason.
Opened = tuple[Section, dict[str, Any], list[str]]

# What a tensor cannot have becomes the next one that holds it.
_TENSORS = {"bool": "uint8", "uint64": "int64"}
_NUMBERS = {**_TENSORS, "float16": "float32"}
# Of lists that differ in length.
ARRAYS = ("float32", "float64", "float16", "int64", "int32", "int16", "int8",
          "uint32", "uint16", "uint8")


def chosen_of(source: object, is_array: Callable[[object], bool]
              ) -> dict[str, Any] | None:
    """The arrays that `source` is: one, which is "x", or a mapping of names to
    such. None where it is anything else."""
    if is_array(source):
        return {"x": source}
    if (isinstance(source, Mapping) and source
            and all(is_array(value) for value in source.values())):
        return {str(name): value for name, value in source.items()}
    return None


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
        return {"column": column, "dtype": _NUMBERS.get(name, name)}
    return {"array": {"column": column, "shape": list(array.shape[1:]),
                      "dtype": _TENSORS.get(name, name)}}


def fields_of_all(arrays: Iterable[tuple[str, Any]],
                  field: Callable[[Any], Section | None]
                  ) -> tuple[dict[str, Any], list[str]]:
    """A field of each array (by its path below what was handed in) that has as
    many rows as the largest one, and what is left out."""
    rules: dict[str, Any] = {}
    left_out: list[str] = []
    made = []
    for path, array in arrays:
        rule = field(array)
        if rule is None:
            left_out.append(f"'{path}' is {array.dtype} {list(array.shape)}, "
                            "no rows of numbers or texts")
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


def _bytes(array: Any) -> int:
    # A text of any length is told by 16 bytes.
    width = 16 if array.dtype.kind in "OT" else array.dtype.itemsize
    return int(array.size) * int(width)
