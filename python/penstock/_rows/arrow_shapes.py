"""The shapes that extension types of Arrow declare: fixed-shape tensors, and
Array2D and the like of Hugging Face."""

from __future__ import annotations

from typing import Any, Mapping

from .table_fields import finite_or_not

_DTYPES = {"float": "float32", "double": "float64", "halffloat": "float16"}


Rules = dict[str, Any]


def _rules_of_shapes(table: Any) -> Rules:
    """A field for each column of a table of pyarrow whose type declares the
    shape of its rows."""
    rules: Rules = {}
    for field in getattr(table, "schema", None) or ():
        shape = getattr(getattr(field, "type", None), "shape", None)
        if not isinstance(shape, (tuple, list)) or not all(
                isinstance(size, int) for size in shape):
            continue
        named = str(field.type.value_type)
        dtype = _DTYPES.get(named, named)
        rules[str(field.name)] = {"array": {
            "column": field.name, "shape": list(shape), "dtype": dtype,
            **finite_or_not(dtype)}}
    return rules


def with_tensors(rules: Rules, left_out: list[str], table: Any
                 ) -> tuple[Rules, list[str]]:
    """The fields that columns make by themselves, and what they leave out, with
    those of a declared shape as tensors; not where rows are NULL."""
    tensors = {name: rule for name, rule in _rules_of_shapes(table).items()
               if not table.column(name).null_count}
    if not tensors:
        return rules, left_out
    known = {**rules, **tensors}
    return ({name: known[name] for name in (*table.schema.names, *known)
             if name in known},
            [why for why in left_out
             if not why.startswith(tuple(f"'{name}' " for name in tensors))])


def with_shapes(fields: object, table: Any) -> Any:
    """Fields of a job, in which an array without a shape has its column's."""
    if not isinstance(fields, Mapping):
        return fields
    known = _rules_of_shapes(table)
    made = dict(fields)
    for name, rule in fields.items():
        array = rule.get("array") if isinstance(rule, Mapping) else None
        if isinstance(array, Mapping) and array.get("column") in known and \
                not {"shape", "lengths", "ragged", "window"} & array.keys():
            shape = known[array["column"]]["array"]["shape"]
            made[name] = {**rule, "array": {**array, "shape": shape}}
    return made
