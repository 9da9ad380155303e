"""`penstock schema` and the parser know the same keys, and give the same
verdict on every job of which a schema can tell."""
import csv
import json
import math
import pathlib
import re
import unittest

from penstock_cli import Case, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float)}
PROBE = "qqqqqqqqqqqqqqqqqqqq"  # near no key, so that all are listed


def valid(value, schema, whole=None):
    """A validator for the words that our schema uses. A URI is a text."""
    whole = whole or schema
    if "$ref" in schema:
        rule = whole
        for step in schema["$ref"].removeprefix("#/").split("/"):
            rule = rule[step]
        return valid(value, rule, whole)
    known = {"$schema", "title", "description", "default", "type", "enum",
             "const", "required", "properties", "additionalProperties",
             "minProperties", "items", "minItems", "maxItems", "uniqueItems",
             "minimum", "maximum", "exclusiveMinimum",
             "exclusiveMaximum", "multipleOf", "minLength", "pattern",
             "oneOf", "anyOf", "not", "$ref"}
    assert set(schema) <= known, set(schema) - known
    if "type" in schema:
        if not isinstance(value, TYPES[schema["type"]]):
            return False
        if isinstance(value, bool) and schema["type"] != "boolean":
            return False
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "oneOf" in schema and sum(
            valid(value, s, whole) for s in schema["oneOf"]) != 1:
        return False
    if "anyOf" in schema and not any(
            valid(value, s, whole) for s in schema["anyOf"]):
        return False
    if "not" in schema and valid(value, schema["not"], whole):
        return False
    if isinstance(value, dict):
        own = schema.get("properties", {})
        other = schema.get("additionalProperties", True)
        if not set(schema.get("required", ())) <= set(value):
            return False
        if len(value) < schema.get("minProperties", 0):
            return False
        for key, item in value.items():
            rule = own.get(key, other)
            if rule is False or (
                    rule is not True and not valid(item, rule, whole)):
                return False
    if isinstance(value, list):
        if not (schema.get("minItems", 0) <= len(value)
                <= schema.get("maxItems", len(value))):
            return False
        if schema.get("uniqueItems") and len(set(map(str, value))) < len(value):
            return False
        return all(valid(item, schema.get("items", {}), whole)
                   for item in value)
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return is_within(value, schema)
    return True


def is_within(number, schema):
    return (schema.get("minimum", number) <= number
            <= schema.get("maximum", number)
            and schema.get("exclusiveMinimum", -math.inf) < number
            < schema.get("exclusiveMaximum", math.inf)
            and number % schema.get("multipleOf", number or 1) == 0)


def in_full(rule):
    """The rule of the full form, where a setting also has short ones."""
    several = "anyOf" in rule and "properties" not in rule
    return rule["anyOf"][-1] if several else rule


def descriptions(rule, place=""):
    """(place of a key, its description) for each key of the schema."""
    for key, inner in rule.get("properties", {}).items():
        at = f"{place}.{key}".lstrip(".")
        yield at, inner.get("description", "")
        yield from descriptions(inner, at)
    for word in ("anyOf", "oneOf"):
        for inner in rule.get(word, ()):
            yield from descriptions(inner, place)
    for word in ("items", "additionalProperties"):
        if isinstance(rule.get(word), dict):
            yield from descriptions(rule[word], f"{place}[]")


class Schema(Case):
    def setUp(self):
        super().setUp()
        self.schema = json.loads(run("schema").out)

    def known_keys(self, document, place):
        """The keys that the parser lists when it meets one it cannot know."""
        at = document
        for step in place:
            at = at.setdefault(step, {})
        at[PROBE] = 1
        self.write_job(document)
        answer = self.run_it("train", "job.json", "--json")
        error = self.refused(answer, "request", "settings.unknown_key", PROBE)
        return set(re.fullmatch(r"choose one of: (.*)", error["next"])[1]
                   .split(", "))

    def rules(self, *place):
        at = self.schema
        for step in place:
            at = in_full(
                at["properties"][step] if step in at.get("properties", {})
                else at["additionalProperties"])
        return at

    def assert_known(self, document, place, rules):
        """The parser knows the keys that the schema has there."""
        self.assertEqual(self.known_keys(document, place),
                         set(rules["properties"]), place)

    def test_has_the_keys_of_the_parser_of_sources(self):
        sources = [self.job()["source"],
                   {"kind": "postgres", "uri": "postgresql:///x"},
                   {"kind": "joined", "sources": ["sqlite:d.sqlite"] * 2}]
        sources += [{"kind": kind, "path": "x"} for kind in (
            "csv", "hf", "token_store", "text", "arrow", "images", "hdf5",
            "npy")]
        keys = set()
        for source in sources:
            keys |= self.known_keys(self.job(source=source), ["source"])
        self.assertEqual(keys, set(self.rules("source")["properties"]))

    def test_has_the_keys_of_the_parser_of_several_sources(self):
        entry = {"source": "sqlite:d.sqlite#t", PROBE: 1}
        self.write_job(self.job(source=None, sources=[entry, entry]))
        error = self.refused(self.run_it("train", "job.json", "--json"),
                             "request", "settings.unknown_key", PROBE)
        self.assertEqual(
            error["next"], "choose one of: " + ", ".join(
                self.schema["properties"]["sources"]["items"]["properties"]))

    def test_has_the_keys_of_the_parser_of_fields(self):
        keys = self.known_keys(self.job(), ["fields", "heard"])
        for kind in ({"columns": ["a"]}, {"column": "a"},
                     {"category": {"column": "a"}}, {"array": {"column": "a", "shape": [2]}},
                     {"multi_hot": {"column": "a", "size": 2}},
                     {"time": {"column": "a"}}, {"text": {"column": "a"}},
                     {"tokens": {"column": "a"}}, {"image": {"column": "a"}},
                     {"boxes": {"column": "a", "image": {}}},
                     {"audio": {"column": "a", "seconds": 1}}):
            job = self.job(fields={"y": kind})
            keys |= self.known_keys(job, ["fields", "y"])
            name = next(iter(kind))
            if isinstance(kind[name], dict):
                self.assert_known(self.job(fields={"y": kind}),
                                  ["fields", "y", name],
                                  self.rules("fields", "y", name))
        self.assertEqual(keys, set(self.rules("fields", "y")["properties"]))
        self.assert_known(self.job(), ["fields", "heard", "json_set"],
                          self.rules("fields", "y", "json_set"))

    def test_has_the_keys_of_the_parser_section_by_section(self):
        self.assertEqual(self.known_keys(self.job(), []),
                         set(self.schema["properties"]))
        for section in ("split", "loader", "train", "output"):
            self.assert_known(self.job(), [section], self.rules(section))
        device = self.rules("device")["oneOf"][-1]
        self.assert_known(self.job(), ["device"], device)
        self.assert_known(
            self.job(device={"kind": "sim", "step_ms": {"mean": 1}}),
            ["device", "step_ms"], device["properties"]["step_ms"]["oneOf"][1])
        self.assert_known(self.with_model(), ["model"],
                          self.rules("model")["oneOf"][1])

    def with_model(self, **changes):
        """A job with a model; it is checked before the trainer is needed."""
        fields = self.job()["fields"]
        return self.job(
            fields={**fields, "place": {"columns": ["y", "id"]}},
            model={"kind": "set_position", "set": "heard", "target": "place",
                   "latitude": "a", "longitude": "b", "strength": "a",
                   **changes})

    def sections(self, name, *values):
        return [self.job(**{name: value}) for value in values]

    def loaders(self, key, *values):
        return self.sections("loader",
                             *[{"batch_size": 16, key: v} for v in values])

    def devices(self, key, *values):
        return self.sections("device", *[
            {"kind": "sim", "clock": "virtual", key: v} for v in values])

    def jobs_with_sources(self):
        place = {"kind": "sqlite", "path": "d.sqlite"}
        yield self.job()
        yield self.job(source=None)
        yield from self.sections(
            "source", place, {**place, "table": "t"}, {"kind": "sqlite"},
            {"path": "d.sqlite"}, {**place, "uri": "x"}, {**place, "path": ""},
            {**place, "connections": 2}, {**place, "on_bad": "skip"},
            {**place, "on_bad": "x"}, {**place, "round_trip_ms": 0.1},
            {**place, "round_trip_ms": -1}, {**place, "round_trip_ms": 60001},
            {**place, "where": "id > 3"}, {**place, "where": 3},
            {**place, "kind": "mysql"}, "sqlite:d.sqlite#t", "d.csv", [])
        text = {"kind": "csv", "path": "d.csv"}
        yield from self.sections(
            "source", text, {**text, "path": ["d.csv"]}, {**text, "path": []},
            {**text, "path": [""]}, {**text, "table": "t"},
            {**text, "columns": {"y": "float32"}},
            {**text, "columns": {"y": "huge"}}, {**text, "header": 1},
            {**text, "where": "y > 3"}, {**text, "na": ["-"]},
            {**text, "kind": "sqlite", "path": ["d.sqlite"]}, "d.csv",
            {**place, "columns": {}}, {**text, "schema": "union"})
        odd, even = ({**place, "where": f"id % 2 = {i}"} for i in (1, 0))
        for kind in ("concatenated", "joined"):
            both = {"kind": kind, "sources": [odd, even]}
            yield from self.sections(
                "source", {"kind": kind}, {**both, "sources": [odd]},
                {**both, "sources": odd}, {**both, "table": "t"},
                {**both, "path": "d.sqlite"}, {**both, "round_trip_ms": 1},
                {**both, "on_bad": "x"}, {**place, "sources": [odd, even]})
        yield from self.sections(
            "source", {"kind": "concatenated", "sources": [odd, even]},
            {"kind": "joined", "sources": [place, "sqlite:d.sqlite#t"]},
            {"kind": "joined", "sources": [place, place, place]})

    def jobs_with_several_sources(self):
        one = {"source": "sqlite:d.sqlite#t"}
        two = {"source": self.job()["source"], "weight": 2.5}
        own = {**one, "fields": self.job()["fields"]}

        def mixed(*entries, **sections):
            return self.job(**{"source": None, "sources": list(entries),
                               **sections})
        yield mixed(one, two)
        yield mixed(one)
        yield mixed(one, two, source=self.job()["source"])
        yield mixed(own, own, fields=None)
        yield mixed(own, one, fields=None)
        yield mixed(one, {**two, "split": {"val": 0.1}})
        yield mixed(one, {"weight": 1})
        yield mixed(one, "sqlite:d.sqlite#t")
        yield mixed(one, {**one, "key": "id"})
        for weight in (0, -1, "1", 1e6, 1e-6, 1e7):
            yield mixed(one, {**one, "weight": weight})
        for exhausted in ("stop", "repeat", "end", 3):
            yield mixed(one, two, loader={"exhausted": exhausted,
                                          "batch_size": 16})
        yield self.job(source=None, sources=one)

    def jobs_with_fields(self):
        fields = self.job()["fields"]
        yield self.job(fields=None)
        yield from self.sections(
            "fields", {}, {"y": {}}, {"y": {"columns": []}}, {"y": ["y"]},
            {"y": []}, {"y": ["y", "y"]}, {"y": [3]},
            {"y": {"columns": ["y", "y"]}}, {"y": {"columns": "y"}},
            {"y": {"columns": ["y"], "dtype": "float64"}},
            {"y": {"columns": ["id"], "dtype": "int64"}},
            {"y": {"columns": ["y"], "dtype": "half"}},
            {"y": {"column": "y", "bucketize": [1, 2]}},
            {"y": {"column": "y", "bucketize": 4}},
            {"y": {"column": "y", "bucketize": 1}},
            {"y": {"column": "y", "bucketize": []}},
            {"y": {"column": "y", "quantile": "normal"}},
            {"y": {"column": "y", "quantile": "none"}},
            {"y": {"category": {"column": "id", "one_hot": 0}}},
            {"y": {"category": {"column": "id", "one_hot": 100}}},
            {"y": {"text": {"column": "heard"}}},
            {"y": {"text": {"column": "heard", "missing": "zero"}}},
            {"y": {"columns": ["y"], "standardize": 1}},
            {"y": {**fields["y"], **fields["heard"]}},
            {"heard": {**fields["heard"], "dtype": "float32"}})
        for changes in (
                {"max": 1}, {"max": 0}, {"max": 65536}, {"max": 65537},
                {"min": 0}, {"min": -1}, {"keys": []}, {"keys": ["a", "a"]},
                {"overflow": "first"}, {"overflow": "last"},
                {"overflow": "strongest", "sort_by": "a"},
                {"overflow": "strongest"},
                {"overflow": "first", "sort_by": "a"}, {"sort_by": "a"},
                {"required": ["a"]}, {"required": "a"}):
            rule = {**fields["heard"]["json_set"], **changes}
            yield self.job(fields={"heard": {"json_set": rule}})

    def jobs_with_loaders(self):
        yield from self.sections(
            "split", {}, {"train": 1}, {"train": 1.1}, {"val": -0.1},
            {"train": 0.5, "by": "y"}, {"seed": -1}, {"seed": 1.5}, [])
        yield from self.loaders("batch_size", 1, 0, 1.5, "16", (1 << 24) + 1)
        yield from self.loaders("seed", 0, -1)
        yield from self.loaders("shuffle", False, 0)
        yield from self.loaders("workers", 0, 1024, 1025, -1)
        yield from self.loaders("prefetch", 0, 9, 4097, -1)
        yield from self.loaders("readers", 0, 1024, 1025, -1)
        yield from self.loaders("cache", "auto", "device", "ram", "none", "disk",
                                "vram", {"ram_gib": 1, "disk_gib": 0},
                                {"ram_gib": -1}, {"ram_gib": "1"}, {},
                                {"vram_gib": 1}, 3)
        yield from self.loaders("order", "exact", "paged", {},
                                {"paged": {"page": 8, "window": 2}},
                                {"paged": {"page": 0, "window": 2}},
                                {"paged": {"page": 8}},
                                {"paged": {"page": 8, "window": 2},
                                 "exact": {}}, 3)
        yield from self.loaders("weights", "y", "", 3, ["y"])
        yield from self.loaders("balance", "y", "", 3)
        yield from self.loaders("limit", 50, "60%", "82.5%", "100%", 0,
                                -1, 1.5, "0%", "0.0%", "101%", "x%", "10",
                                "%", True, [])
        yield from self.loaders("prepare", "auto", "before", "never", True)
        yield from self.loaders("read", "batch", "per_sample", "row")
        yield from self.loaders("tail", "drop", "pad", "exact", "keep")

    def jobs_with_devices(self):
        yield from self.sections("device", "auto", "cpu", "sim", "tpu", 3)
        yield from self.devices(
            "step_ms", 0, 2.5, -1, 3.7e6, "1", {"mean": 1}, {},
            {"mean": 1, "deviation": 0.1}, {"mean": -1}, {"deviation": 1})
        yield from self.devices("copy_gb_s", 1, 0, 1e6)
        yield from self.devices("memory_gib", 1, 0, 1e6)
        yield from self.devices("clock", "wall", "atomic")

    def jobs_with_models(self):
        yield from self.sections("model", "none", "some", 3, {},
                                 {"kind": "set_position"})
        for changes in (
                {}, {"width": 8}, {"width": 9}, {"width": 0}, {"dropout": 0.9},
                {"dropout": 1}, {"noise_db": 0}, {"noise_db": -1}, {"seed": 1},
                {"seed": -1}, {"kind": "other"}, {"set": 3}):
            yield self.with_model(**changes)
        yield from self.sections(
            "train", {}, {"epochs": 2}, {"epochs": 0}, {"epochs": "2"},
            {"max_steps": 1}, {"max_steps": 0}, {"lr": 0.1}, {"lr": -1},
            {"warmup_steps": 0}, {"warmup_steps": 1.5}, {"threads": 1},
            {"weight_decay": 0}, {"clip_norm": 0}, {"clip_norm": "1"},
            {"checkpoint_every_steps": 1}, {"checkpoint_every_steps": 0})
        yield from self.sections("output", {}, {"dir": "x"}, {"dir": 3})

    def test_gives_the_verdict_of_the_parser(self):
        self.database(self.rows())
        with open(self.folder / "d.csv", "w", newline="") as file:
            csv.writer(file).writerows([("id", "heard", "y"), *self.rows()])
        jobs = [*self.jobs_with_sources(), *self.jobs_with_several_sources(),
                *self.jobs_with_fields(),
                *self.jobs_with_loaders(), *self.jobs_with_devices(),
                *self.jobs_with_models()]
        accepted = 0
        for document in jobs:
            self.write_job(document)
            answer = self.run_it("batch", "job.json", "--steps", "0:0",
                                 "--json")
            self.assertIn(answer.code, (0, 2), answer.out)
            self.assertEqual(valid(document, self.schema), answer.code == 0,
                             json.dumps(document) + answer.out)
            accepted += answer.code == 0
        self.assertGreater(accepted, 30)
        self.assertGreater(len(jobs) - accepted, 50)

    def test_accepts_the_example_job(self):
        path = ROOT / "examples" / "positions" / "job.json"
        self.assertTrue(valid(json.loads(path.read_text()), self.schema))

    def test_is_a_schema_of_a_known_draft_and_explains_the_sections(self):
        self.assertEqual(self.schema["$schema"],
                         "https://json-schema.org/draft/2020-12/schema")
        self.assertNotIn("required", self.schema)  # "sources" may do
        self.assertEqual([rule["required"] for rule in self.schema["oneOf"]],
                         [["source"], ["sources"]])

    def test_describes_every_key(self):
        described = {}
        for place, about in descriptions(self.schema):
            described[place] = described.get(place, "") or about
        self.assertGreater(len(described), 200)
        self.assertEqual([place for place, about in described.items()
                          if len(about.split()) < 3 and about[:3] != "As "],
                         [])


if __name__ == "__main__":
    unittest.main()
