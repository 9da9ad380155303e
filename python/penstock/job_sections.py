"""What a loader's arguments come to as the sections of a job."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from typing import Any, Iterable, Mapping, Sequence, Union, cast

from . import _engine
from .arguments import did_you_mean
from .errors import refused

Settings = Mapping[str, Any]
Fields = Union[Mapping[str, Any], Sequence[str]]
# Kinds of files of which a source may name several.
_LISTS_OF_FILES = ("parquet", "arrow", "csv", "jsonl", "text", "hf", "tfrecord")


def given(**settings: object) -> dict[str, Any]:
    """Those that say something.

    >>> given(limit=None, shuffle=False)
    {'shuffle': False}
    """
    return {name: value for name, value in settings.items()
            if value is not None}


def loader_section(*, batch_size: int, world: int, shuffle: bool,
                   drop_last: bool, seed: int, cache: str | Settings,
                   order: str | Settings, num_workers: int | None,
                   prefetch_factor: int | None, weights: object,
                   balance: str | None, limit: int | str | None,
                   exhausted: str | None) -> dict[str, Any]:
    """A job's `loader` of arguments in torch's words: `batch_size` is that of
    a rank, `prefetch_factor` that of a worker. Weights that are no column are
    an array's."""
    try:
        rows = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"batch_size is {batch_size!r}, expected an integer: "
                        "the rows of a batch of one rank") from None
    if not isinstance(balance, (str, type(None))):
        raise TypeError(f"balance is a {type(balance).__name__}: expected the "
                        "name of a column or an array")
    ahead = 2 if prefetch_factor is None else prefetch_factor
    return {
        "batch_size": rows * world, "seed": seed, "cache": cache,
        "shuffle": shuffle if weights is None and balance is None else True,
        "tail": "drop" if drop_last else "exact",
        "prefetch": ahead * max(1, num_workers or 1),
        **({} if order == "exact" else {"order": order}),
        **given(workers=num_workers, balance=balance, limit=limit,
                exhausted=exhausted,
                weights=weights if isinstance(weights, (str, type(None)))
                else "weights")}


def section_of_source(source: object, about: Settings) -> dict[str, Any]:
    """A job's `source` of a URI or a section. `about` is what the loader's
    arguments say of it."""
    if isinstance(source, (str, os.PathLike)):
        source = json.loads(_engine.source_section(os.fspath(source)))
    return {**cast("Settings", source), **about}


def sections_of_rows(source: object, mixed: list[dict[str, Any]] | None,
                     rows: _engine.Rows | None, fields: Fields | None,
                     about: Settings) -> dict[str, Any]:
    """The sections of a job that say which rows there are; `about` as above."""
    job: dict[str, Any] = {}
    if mixed is not None:
        if about:
            raise TypeError(", ".join(about) + ": applies to one source; move it "
                            "to the \"source\" of an entry, or into its URI")
        job["sources"] = mixed
        if fields is None and all("fields" in one for one in mixed):
            return job
    elif rows is None:
        job["source"] = section_of_source(source, about)
    elif about:
        job["source"] = dict(about)
    if rows is None or rows.has_fields:
        job["fields"] = rules_of_fields(fields)
    return job


def refuse_about(about: Iterable[str], source: object, taken: Iterable[str],
                 where: str) -> None:
    """Raises TypeError for what is said of rows in memory and cannot be, but
    for those `taken`; `where` says how to select rows of such a source."""
    instead = {
        "key": "rows in memory are read by position; put them in the desired "
               "order",
        "query": "it applies to databases; select rows and columns beforehand",
        "on_bad": "rows in memory are used unchanged; leave it out",
        "where": where}
    for name in about:
        if name not in taken:
            raise TypeError(f"{name} is for files and databases, and the rows "
                            f"of a {type(source).__name__} are in memory: "
                            f"{instead[name]}")


def files_in_turn(source: object) -> object:
    """A list of files of one kind as one section, whose rows are those of the
    first file, then those of the next; all else stays what it is.

    >>> files_in_turn(["a.csv", "b.csv"])["path"]
    ['a.csv', 'b.csv']
    >>> files_in_turn(["a.csv", "b.jsonl"])
    ['a.csv', 'b.jsonl']
    """
    if not isinstance(source, (list, tuple)) or not source or not all(
            isinstance(one, (str, os.PathLike)) for one in source):
        return source
    sections = [json.loads(_engine.source_section(os.fspath(one)))
                for one in source]
    first = {**sections[0], "path": ""}
    if first["kind"] not in _LISTS_OF_FILES or any(
            {**section, "path": ""} != first for section in sections):
        return source
    return {**first, "path": [section["path"] for section in sections]}


def mixed_sources(source: object) -> list[dict[str, Any]] | None:
    """The entries of a job's `sources`; None where `source` is no list.

    >>> mixed_sources(["a.csv", {"source": "b.csv", "weight": 2, "fields": ["x"]}])[1]
    {'source': 'b.csv', 'weight': 2, 'fields': {'x': {'columns': ['x']}}}
    """
    if not isinstance(source, (list, tuple)):
        return None
    entries: list[dict[str, Any]] = []
    for at, one in enumerate(source):
        if isinstance(one, (str, os.PathLike)) or (
                isinstance(one, Mapping) and isinstance(one.get("kind"), str)):
            one = {"source": one}
        if not isinstance(one, Mapping) or not isinstance(
                one.get("source"), (str, os.PathLike, Mapping)):
            raise TypeError(
                f"sources[{at}] is a {type(one).__name__}: expected a file, a "
                "URI, a job's source section, or "
                "{\"source\": one of these, \"weight\": 1}; to mix rows in "
                "memory, write them to a file first, "
                "df.to_parquet(\"a.parquet\")")
        entry = dict(one)
        if isinstance(one["source"], os.PathLike):
            entry["source"] = os.fspath(one["source"])
        if "fields" in one:
            entry["fields"] = rules_of_fields(one["fields"])
        entries.append(entry)
    return entries


def rules_of_fields(fields: Fields | None) -> Any:
    """Fields as a job file writes them. A column by its name alone stays one:
    what it becomes depends on whether it holds text.

    >>> rules_of_fields(["a", "b"])
    {'a': {'columns': ['a']}, 'b': {'columns': ['b']}}
    >>> rules_of_fields({"x": ["a", "b"], "y": "c", "z": {"columns": ["d"]}})["x"]
    {'columns': ['a', 'b']}
    """
    if fields is None:
        raise TypeError("Loader() needs 'fields' of several sources: names of "
                        "columns, or {\"x\": [\"column\", ...], ...}")
    if not isinstance(fields, Mapping):
        if isinstance(fields, str):
            fields = [fields]
        return {name: {"columns": [name]} for name in fields}
    rules: dict[str, Any] = {}
    for name, rule in fields.items():
        if isinstance(rule, (set, frozenset)) or not isinstance(rule, Iterable):
            raise TypeError(f"fields[{name!r}] is a {type(rule).__name__}: "
                            "expected a list of columns, a column, or a rule")
        rules[name] = rule if isinstance(rule, (str, Mapping)) else {
            "columns": list(rule)}
    return rules


def sets_of(call: str, overrides: Mapping[str, Any],
            others: Sequence[str] = ()) -> list[str]:
    """Overrides that name a setting with "__" for the dot, as the engine takes
    them; `others` are arguments that the call has.

    >>> sets_of("open", {"loader__batch_size": 64})
    ['loader.batch_size=64']
    """
    if not overrides:
        return []  # nothing to look up in the schema, which takes milliseconds
    sections = json.loads(_engine.job_schema())["properties"]
    for name in overrides:
        section = name.split("__")[0]
        if section in sections["loader"]["properties"]:
            raise TypeError(f"{call}() has no argument '{name}': did you mean "
                            f"'loader__{name}'?")
        if section not in sections:
            raise TypeError(f"{call}() has no argument '{name}': " +
                            did_you_mean(section, (*sections, *others)))
    keys = {name.replace("__", "."): value for name, value in overrides.items()}
    return [f"{key}={dumped(value, key)}" for key, value in keys.items()]


_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


def job_of_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a job file holds. Raises RequestError."""
    name = os.fspath(path)
    if os.path.exists(name) and not os.path.isfile(name):
        raise refused("file.read", "cannot read the job file", name,
                      "it is not a file", "name a readable file")
    try:
        with open(name, encoding="utf-8") as file:
            found = json.loads(without_comments(file.read()))
    except OSError as error:
        raise refused("file.read", "cannot read the job file", name,
                      error.strerror or str(error),
                      "name a readable file") from None
    except ValueError as error:
        raise refused("json.syntax", "cannot read the job file", name,
                      str(error), "correct the JSON at this place") from None
    if not isinstance(found, dict):
        raise refused("settings.type", "cannot use the job file", name,
                      "the file is not a JSON object", "write {\"source\": ...}")
    return found


def without_comments(text: str) -> str:
    """The text of a job file as JSON; all else stays where it is.

    >>> without_comments('{"a": "//", // b')
    '{"a": "//", '
    """
    return _TEXT_OR_COMMENT.sub(
        lambda found: found[0] if found[0][0] == '"' else "", text)


def dumped(value: object, key: str = "") -> str:
    """JSON of settings, in which paths and numpy's integers may stand too.
    `key`: that of the value in a job, for errors.

    >>> dumped({"path": __import__("pathlib").PurePosixPath("a/b")})
    '{"path": "a/b"}'
    """
    def other(thing: Any) -> object:
        if hasattr(thing, "__index__"):
            return operator.index(thing)
        if isinstance(thing, os.PathLike):
            return os.fspath(thing)
        if isinstance(thing, Mapping):
            return dict(thing)
        raise TypeError(f"{thing!r} cannot be used in settings: expected a "
                        "JSON value or a path")

    try:
        return json.dumps(value, default=other, allow_nan=False)
    except ValueError as error:  # nan, or something that contains itself
        key, why = _not_json(value, key) or (key, str(error))
        raise refused("settings.value", "cannot write the settings as JSON",
                      key or "the settings", why,
                      "use finite numbers, and no value that contains itself"
                      ) from None


def _not_json(value: object, key: str = "", above: tuple[int, ...] = ()
              ) -> tuple[str, str] | None:
    """The key of the first value that JSON cannot hold, and why.

    >>> _not_json({"fields": {"x": [1.0, float("nan")]}})
    ('fields.x[1]', 'found nan, expected a finite number')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return key, f"found {value}, expected a finite number"
    if not isinstance(value, (Mapping, list, tuple)):
        return None
    if id(value) in above:
        return key, "the value contains itself"
    above += (id(value),)
    parts = ([(f"{key}.{name}" if key else str(name), part)
              for name, part in value.items()]
             if isinstance(value, Mapping) else
             [(f"{key}[{at}]", part) for at, part in enumerate(value)])
    found = (_not_json(part, name, above) for name, part in parts)
    return next((one for one in found if one), None)
