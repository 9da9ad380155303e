"""Rows that a program has in its hands: arrays, tables, objects of its own, and
what h5py and zarr have opened."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .. import _engine
from ..job_sections import Fields, Settings, refuse_about
from . import hdf5, zarr
from .array_fields import Opened


def opened_by_path(source: object) -> Opened | None:
    """What arrays of h5py and zarr are as a job's section; None for others."""
    return hdf5.section_of(source) or zarr.section_of(source)


def own_rows(source: object, fields: Fields | None, drawn_by: object,
             about: Settings, naming: object = (), keep: bool = False
             ) -> tuple[
        _engine.Rows | None, dict[str, Any] | None, list[str]]:
    """Rows of arrays, a table or an object with `read`, None for a job's
    source; the rules of the fields where a table makes them by itself; and the
    columns that these leave out. `naming`: settings beside `fields` that may
    name columns."""
    if isinstance(source, (str, os.PathLike)):
        return None, None, []
    from . import callables, sources, tables

    tables.refuse_near(source)
    if isinstance(source, sources.PositionSource):
        refuse_about(about, source, ["on_bad"], "leave them out of its length")
        rules, left_out = (sources.fields_of(source) if fields is None
                           else (None, []))
        return sources.rows_of(source), rules, left_out
    if isinstance(source, Mapping):
        if isinstance(source.get("kind"), str):
            return None, None, []
        refuse_about(about, source, (), "select the rows beforehand, "
                     "{name: array[mask] for name, array in arrays.items()}")
        return callables.rows_of_arrays(source, fields, drawn_by), None, []
    if isinstance(source, callables.Source):
        refuse_about(about, source, (), "leave them out of its size")
        return callables.rows_of_source(source, fields), None, []
    if (found := tables.rows_of_table(source, fields, drawn_by, about,
                                      naming, keep)) is not None:
        refuse_about(about, source, ["where", "on_bad"], "")
        return found
    raise TypeError(f"Loader() cannot read a {type(source).__name__}: expected "
                    "a URI, a job's source section, a data frame or table, a "
                    "dict of arrays, or an object with 'columns', a length and "
                    "'read(positions)', or with 'size' and 'read(ids)'; a "
                    "torch Dataset goes to penstock.DataLoader")
