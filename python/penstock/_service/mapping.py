"""A request and a recipe become a job document.

Nothing in a request is code, a path or SQL: its keys pass through the table of
manifests (docs/how-to/coming_from.md), only settings of training and loading
may be set, and `dataset_ids` become values of the one column that the recipe
names.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import json
import pathlib
import sqlite3
from typing import Any, Iterator, Mapping

from .. import _engine
from ..errors import Error
from .configuration import Configuration, Recipe, did_you_mean
from .failure import Failure, of_error

_ALLOWED = ("train.", "loader.", "split.", "model.seed", "device")
_REFUSED = ("loader.cache_dir",)
_MOST_IN_SWEEP = 100
_DATASETS = "dataset_ids"


def recipe_of(configuration: Configuration, name: str | None) -> Recipe:
    """Raises Failure: the recipe is unknown."""
    wanted = configuration.default if name is None else name
    if wanted not in configuration.recipes:
        raise _refused("service.unknown_recipe", "recipe",
                       f"'{wanted}' is not a recipe of this service",
                       did_you_mean(wanted, list(configuration.recipes)))
    return configuration.recipes[wanted]


def digest_of(recipe: Recipe) -> str:
    """Of its job file; "" where that cannot be read."""
    try:
        return hashlib.sha256(recipe.job.read_bytes()).hexdigest()
    except OSError:
        return ""


def sweep(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One config for each combination of values where keys have lists."""
    lists = {key: value for key, value in config.items()
             if isinstance(value, list) and key != _DATASETS}
    for key, values in lists.items():
        if not values:
            raise _refused("service.setting", f"config.{key}",
                           "the list of a sweep is empty",
                           "write a value, or a list of values to try")
    combined = [dict(zip(lists, values))
                for values in itertools.islice(
                    itertools.product(*lists.values()), _MOST_IN_SWEEP + 1)]
    if len(combined) > _MOST_IN_SWEEP:
        raise _refused("service.setting", "config", "the sweep has more than "
                       f"{_MOST_IN_SWEEP} jobs", "try fewer values at once")
    return [{**config, **values} for values in combined]


def job_of(recipe: Recipe, config: Mapping[str, Any], runs: pathlib.Path
           ) -> tuple[str, list[dict[str, Any]]]:
    """The job document as JSON, and what each key of the config became.
    `runs` is the folder of the job's runs. Raises Failure."""
    keys = {key: value for key, value in config.items() if key != _DATASETS}
    try:
        text, found = _engine.manifest_document(
            str(recipe.job), json.dumps(keys), [])
    except Error as error:
        raise of_error(error) from None
    mapped = [_entry(*one) for one in found]
    _check(mapped)
    document = json.loads(text)
    if _DATASETS in config:
        mapped.append(_choose(document, recipe, config[_DATASETS]))
    if recipe.connection:
        _connect(document, recipe.connection)
    document["output"] = {**document.get("output", {}), "dir": str(runs),
                          "csv": True}
    try:
        _engine.run_document("", json.dumps(document), "", [], "", "")
    except Error as error:
        raise of_error(error) from None
    return json.dumps(document), mapped


def _entry(key: str, value: str, understood: bool, settings: list[str],
           why: str) -> dict[str, Any]:
    return {"key": key, "value": json.loads(value), "understood": understood,
            "settings": list(settings), **({"why": why} if why else {})}


def _check(mapped: list[dict[str, Any]]) -> None:
    """Refuses what is unknown, and what a request must not set."""
    known = _engine.manifest_keys()
    for entry in mapped:
        key = entry["key"]
        name = key.rpartition(".")[2]
        if not entry["understood"] and name not in known:
            raise _refused("service.unknown_key", f"config.{key}",
                           "the key is unknown",
                           did_you_mean(name, [*known, _DATASETS]))
        for said in entry["settings"]:
            setting = said.partition(" ")[0]  # of 'train.lr = 0.001'
            if setting in _REFUSED or not setting.startswith(_ALLOWED):
                raise _refused(
                    "service.setting", f"config.{key}",
                    f"it would set '{setting}', which is decided by the "
                    "recipe", "leave the key out, or ask whoever runs the "
                    "service for another recipe")


def _choose(document: dict[str, Any], recipe: Recipe, ids: Any
            ) -> dict[str, Any]:
    """Restricts the rows to some data sets."""
    where = f"config.{_DATASETS}"
    if not recipe.dataset_column:
        raise _refused("service.setting", where, f"recipe '{recipe.name}' has "
                       "no column of data sets", "leave the key out")
    source = document.get("source")
    if not isinstance(source, dict) or source.get("kind") not in (
            "sqlite", "postgres"):
        raise _refused("service.setting", where, f"recipe '{recipe.name}' "
                       "does not read a table of SQLite or PostgreSQL",
                       "leave the key out")
    known = recipe.datasets or _datasets_in(source, recipe, ids)
    for one in ids:
        if known is not None and one not in known:
            raise _refused("service.unknown_dataset", where,
                           f"there is no data set {json.dumps(one)[:100]}",
                           _nearest(str(one), known))
    chosen = {recipe.dataset_column: list(ids)}
    source["rows_where"] = {**source.get("rows_where", {}), **chosen}
    return {"key": _DATASETS, "value": list(ids), "understood": True,
            "settings": [f"source.rows_where = {json.dumps(chosen)}"],
            "why": f"rows whose '{recipe.dataset_column}' is one of these"}


def _nearest(one: str, known: Any) -> str:
    near = difflib.get_close_matches(one, [str(each) for each in known], 1, 0)
    return f"did you mean '{near[0]}'?" if near else "the table is empty"


def _datasets_in(source: Mapping[str, Any], recipe: Recipe, ids: Any
                 ) -> list[Any] | None:
    """Those of the ids that a SQLite table has and, if one is missing, others
    that it has; None where it cannot be asked."""
    if source.get("kind") != "sqlite" or not source.get("table"):
        return None
    path = recipe.connection or str(source.get("path", ""))
    column, table = (f'"{name.replace(chr(34), chr(34) * 2)}"'
                     for name in (recipe.dataset_column, source["table"]))
    try:
        with _reading(path) as database:
            found = [one for one in ids if database.execute(
                f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", (one,)
                ).fetchone()]
            if len(found) < len(ids):
                found += [row[0] for row in database.execute(
                    f"SELECT DISTINCT {column} FROM {table} LIMIT 1000")]
            return found
    except (sqlite3.Error, OSError, OverflowError):
        return None


@contextlib.contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(
        pathlib.Path(path).absolute().as_uri() + "?mode=ro", uri=True,
        timeout=2)
    try:
        yield database
    finally:
        database.close()


def _connect(document: dict[str, Any], connection: str) -> None:
    source = document.get("source")
    if isinstance(source, dict):
        place = "uri" if source.get("kind") == "postgres" else "path"
        source[place] = connection


def _refused(code: str, where: str, why: str, next: str) -> Failure:
    return Failure(422, code, "cannot accept the job", where, why, next)
