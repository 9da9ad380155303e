"""Columns of bytes that hold pictures or sounds, in tables without `fields`."""

from __future__ import annotations

import json
from typing import Any, Mapping

_BYTES, _PATH = ".bytes", ".path"  # Hugging Face's {"bytes", "path"}

# "image" or "audio", the height and width of all pictures that were looked at, 0
# where they differ, and of sounds; and whether there were NULLs before them.
Media = tuple[str, int, int, bool]


def is_path_of_media(column: str, kinds: Mapping[str, str]) -> bool:
    """Whether it is the path beside the bytes of a file; `kinds`: of all
    columns."""
    return column.endswith(_PATH) and kinds.get(
        column.removesuffix(_PATH) + _BYTES) in ("binary", "null")


def why_no_path(column: str, kinds: Mapping[str, str]) -> str:
    name = column.removesuffix(_PATH)
    if kinds[name + _BYTES] != "null":
        return "names files"
    rule = {name: {"image": {"column": column, "folder": "FOLDER", "size": 224}}}
    return ("names files outside the table; if they are in FOLDER, set, "
            f"fields={json.dumps(rule)}")


def field_of(column: str) -> str:
    return column.removesuffix(_BYTES)


def rule_of(column: str, media: Media, skips: bool) -> dict[str, Any] | None:
    """The field that such a column is by itself: pictures of one size as they
    are. None where somebody has to choose; `skips`: bad rows are left out."""
    _, height, width, nulls = media
    if not height or (nulls and not skips):
        return None
    return {"image": {"column": column, "size": [height, width],
                      "train": "none", "val": "none", "flip": 0}}


def why_not(column: str, media: Media, rules: Mapping[str, Any]) -> str:
    """That it is left out, and what to write instead; `rules`: of the other
    columns."""
    if media[1]:
        return ("holds pictures and NULL: on_bad=\"skip\" leaves out the rows "
                "without a picture")
    if media[0] == "image":
        what = "pictures of several sizes: choose the size they get"
        rule: dict[str, Any] = {"image": {"column": column, "size": 224}}
    else:
        what = "sounds: choose the length of a row"
        rule = {"audio": {"column": column, "seconds": 2}}
    fields = json.dumps({field_of(column): rule, **rules})
    return f"holds {what}, fields={fields}"
