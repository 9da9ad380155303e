"""The jobs of the golden tests: one line each. Every case is run by the
program and by the Python package, over SQLite and over PostgreSQL."""
import dataclasses
import itertools

SMALL = {"a": {"columns": ["a"]},
         "n": {"columns": ["n"], "dtype": "int64"}}
SPLIT = {"train": 0.7, "val": 0.2, "seed": 3}


@dataclasses.dataclass
class Case:
    name: str
    settings: dict = dataclasses.field(default_factory=dict)
    epoch: int = 0
    side: str = "train"
    rank: int = 0
    world: int = 1
    rows: bool = False  # counts, fingerprint and statistics are looked at, too
    apart: tuple = ()   # of what PostgreSQL has results of its own, and why
    only: str = ""      # the only kind of source that can hold it

    def job(self, source):
        """The job over a source section; a setting is named "section.key"."""
        job = {"source": {"table": "rows", "key": "id", **source},
               "fields": SMALL, "loader": {"batch_size": 32, "seed": 5},
               "device": "cpu"}
        for setting, value in self.settings.items():
            section, _, key = setting.partition(".")
            if key:
                job[section] = {**job.get(section, {}), key: value}
            else:
                job[section] = value
        return job

    def but(self, **settings):
        """The same case in another way; "__" stands for the dot."""
        return dataclasses.replace(self, settings={**self.settings, **{
            name.replace("__", "."): value
            for name, value in settings.items()}})


def orders():
    for tail, epoch in itertools.product(("drop", "pad", "exact"), (0, 1)):
        for seed in (0, 7, 2**63 - 1):
            yield Case(f"{tail} epoch {epoch} seed {seed}",
                       {"loader.tail": tail, "loader.seed": seed}, epoch)
        yield Case(f"{tail} epoch {epoch} in order",
                   {"loader.tail": tail, "loader.shuffle": False}, epoch)
    yield Case("a far epoch", {}, 2**62)
    for size, tail in itertools.product((1, 7, 401, 1000), ("pad", "exact")):
        yield Case(f"{tail} batches of {size}",
                   {"loader.tail": tail, "loader.batch_size": size})
    for tail, world in itertools.product(("drop", "pad", "exact"), (2, 3)):
        for rank in range(world):
            yield Case(f"{tail} rank {rank} of {world}", {"loader.tail": tail},
                       1, rank=rank, world=world)


def keys():
    for key in ("id", "sparse", "name", "uid"):
        # A uuid is hashed by its bytes, not as its text.
        apart = ("fingerprint",) if key == "uid" else ()
        yield Case(f"key {key}", {"source.key": key}, rows=True, apart=apart)
        if apart:
            apart += "batches", "rows"
        for side in ("train", "val"):
            yield Case(f"key {key} {side}",
                       {"source.key": key, "split": SPLIT}, side=side,
                       rows=True, apart=apart)
    # PostgreSQL keeps no zero byte in a text.
    yield Case("zero bytes in keys", {
        "source.table": "zeros", "source.key": "word", "loader.batch_size": 3,
        "fields": {"a": {"columns": ["a"]}}, "split": {"val": 0.5}}, rows=True,
               only="sqlite")
    yield Case("where", {"source.where": "id % 3 = 1 AND a > -200"}, rows=True)
    yield Case("where no row has a neighbour", {"source.where": "id = 5"},
               rows=True).but(loader__tail="exact")
    yield Case("a view", {"source.table": "shown", "fields": {
        "heard": SETS["first"], "b": {"columns": ["b"]}}}, rows=True)
    for workers, key in itertools.product((0, 2), ("id", "word")):
        yield Case(f"large {key} {workers} workers", {
            "source.table": "large", "source.key": key,
            "loader.batch_size": 1000, "loader.workers": workers,
            "fields": {"xy": {"columns": ["x", "y"], "standardize": True}},
            "split": {**SPLIT, "by": key}}, rows=True)


def splits():
    # Timestamps and numerics are hashed in ways of PostgreSQL's own.
    for by in ("grp", "a", "b", "zone", "name", "n", "flag", "small", "opt",
               "at", "day", "price"):
        for side in ("train", "val"):
            yield Case(f"by {by} {side}", {"split": {**SPLIT, "by": by}},
                       side=side, rows=True,
                       apart=("batches", "rows", "statistics")
                       if by in ("at", "price") else ())
    for text, split in (("val alone", {"val": 0.3}), ("train 1", {"train": 1}),
                        ("train 0.1", {"train": 0.1}),
                        ("halves", {"train": 0.5, "val": 0.5, "seed": 2**40}),
                        ("seed 1", {**SPLIT, "seed": 1})):
        yield Case(f"split {text}", {"split": split}, rows=True)
    for tail, rank in itertools.product(("pad", "exact", "drop"), (0, 1)):
        yield Case(f"val {tail} rank {rank} of 2",
                   {"split": SPLIT, "loader.tail": tail}, side="val",
                   rank=rank, world=2)


def json_set(column="heard", **more):
    return {"json_set": {"column": column, "keys": ["snr", "f", "ok"],
                         "max": 4, **more}}


STRONGEST = {"overflow": "strongest", "sort_by": "snr"}
SETS = {
    "first": json_set(),
    "strongest": json_set(**STRONGEST),
    "strongest by another key": json_set(keys=["ok", "snr"], max=2,
                                         overflow="strongest", sort_by="f"),
    "strongest by what may be missing": json_set(max=3, overflow="strongest",
                                                 sort_by="w"),
    "missing values": json_set(keys=["w", "snr"]),
    "min 0": json_set(min=0),
    "min 3": json_set(min=3),
    "all": json_set(max=8, overflow="error"),
    "one": json_set(max=1, keys=["f"]),
    "booleans": json_set(keys=["ok"]),
    "loose": json_set("loose", keys=["v", "x"], max=5),
    "ties": json_set("loose", keys=["k\u00e9y", "v"], max=3,
                     overflow="strongest", sort_by="v"),
}
COLUMNS = {
    "float32": {"columns": ["a", "b", "price", "small", "flag"]},
    "float64": {"columns": ["a", "b", "price", "n", "at", "day"],
                "dtype": "float64"},
    "int64": {"columns": ["n", "small", "id", "flag"], "dtype": "int64"},
    "sparse": {"columns": ["sparse"], "dtype": "int64"},
    "times": {"columns": ["at", "day"], "standardize": True},
    "wide": {"columns": ["a", "n"], "dtype": "float64", "standardize": True},
}


def fields():
    for name, field in {**SETS, **COLUMNS}.items():
        yield Case(f"field {name}", {"fields": {"x": field}}, rows=True)
        if field.get("dtype") != "int64" and "standardize" not in field:
            yield Case(f"field {name} standardized", {
                "fields": {"x": {**field, "standardize": True}},
                "split": SPLIT, "loader.tail": "pad"}, rows=True)
    for name, field in (
            ("NULL", {"columns": ["opt", "a"], "standardize": True}),
            ("required", json_set(required=["w"])),
            ("overflow", json_set(max=5, overflow="error")),
            ("fraction", {"columns": ["price"], "dtype": "int64"}),
            ("broken", json_set("broken", keys=["v"]))):
        yield Case(f"skip {name}", {
            "source.on_bad": "skip", "fields": {"x": field, **SMALL},
            "split": {**SPLIT, "by": "zone"}}, rows=True)
    yield Case("skip three reasons", {
        "source.on_bad": "skip", "source.key": "name", "fields": {
            "opt": {"columns": ["opt"], "standardize": True},
            "heard": json_set(max=6, overflow="error", required=["w"])}},
               rows=True)


def category(column, **more):
    return {"category": {"column": column, **more}}


# Texts and integers that are NULL in some rows and rare in others.
CATEGORIES = {
    "texts": category("zone"),
    "integers": category("grp"),
    "rare": category("grp", min_count=9),
    "frequent": category("zone", order="frequency"),
    "one_hot": category("zone", one_hot=11),
    "rare one_hot": category("grp", min_count=9, one_hot=24),
}


def categories():
    for name, field in CATEGORIES.items():
        for side in ("train", "val"):
            yield Case(f"category {name} {side}", {
                "fields": {"y": field, **SMALL}, "split": SPLIT}, side=side,
                       rows=True)
    yield Case("category error", {
        "source.on_bad": "skip", "fields": {
            "y": category("zone", unknown="error"), **SMALL}}, rows=True)


ALL = Case("all together", {
    "source.key": "sparse", "split": {**SPLIT, "by": "zone"},
    "loader.tail": "pad", "fields": {
        "heard": {**SETS["strongest"], "standardize": True},
        "loose": json_set("loose", keys=["v"], max=2),
        "a": {"columns": ["a", "b"], "standardize": True},
        "n": {"columns": ["n"], "dtype": "int64"},
        "at": {"columns": ["at"], "dtype": "float64"}}}, rows=True)
SHARE = dataclasses.replace(ALL, name="all together rank 1 of 3", rank=1,
                            world=3, epoch=1, rows=False)

CASES = [*orders(), *keys(), *splits(), *fields(), *categories(), ALL,
         SHARE]

# Ways of making the batches of a job that change none of them.
SIM = {"kind": "sim", "clock": "virtual", "step_ms": 1}
WAYS = [
    *({"loader__workers": workers, "loader__cache": cache}
      for workers in (0, 1, 2, 8) for cache in ("auto", "ram", "none")),
    *({"loader__workers": workers, "loader__cache": cache, "device": SIM}
      for workers, cache in ((2, "auto"), (8, "device"), (0, "device"),
                             (2, "ram"), (2, "none"))),
    {"loader__cache": "device"},
    {"loader__prefetch": 0, "loader__workers": 0},
    {"loader__prefetch": 7, "loader__workers": 3},
    {"loader__read": "per_sample"},
]


def names_are_unique():
    names = [case.name for case in CASES]
    return len(names) == len(set(names))


assert names_are_unique()
