#!/usr/bin/env python3
"""Writes the reference pages that nobody should have to write twice.

    tools/make_reference.py [--program PENSTOCK] [--check]

From `penstock schema` it writes docs/reference/job/, from each verb's --help
docs/reference/commands/ and from docstrings docs/reference/python/. These
last pages need the package on PYTHONPATH, and are left alone without it. With
--check nothing is written, and the exit code is 1 where a page differs.
"""
import argparse
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/reference"
NOTE = ("<!-- Written by tools/make_reference.py: change the {} instead. -->"
        "\n\n")

# What each page of the job says first, and the guides that go with it.
SECTIONS = {
    "source": ("Look up every key of `source`, which says where the rows are.",
               "databases files combine images sound text hdf5 arrays"),
    "sources": ("Look up every key of `sources`, which mixes several sources.",
                "combine"),
    "fields": ("Look up every key of `fields`, which says how columns become "
               "the tensors of a batch.", "fields images sound text arrays"),
    "split": ("Look up every key of `split`, which divides the rows into train "
              "and validation.", "order"),
    "loader": ("Look up every key of `loader`, which decides the order of the "
               "rows, what is in a batch, and how fast it comes.",
               "order cache bottleneck"),
    "device": ("Look up every key of `device`, which says what the batches are "
               "made ready for.", "../reference/gpu"),
    "model": ("Look up every key of `model`, which chooses what is trained.",
              "models own_model text images"),
    "train": ("Look up every key of `train`, which says how long and how a "
              "model is trained.", "models"),
    "output": ("Look up every key of `output`, which says what a run leaves.",
               "bottleneck"),
}
# Kinds of fields with many keys have pages of their own.
FIELDS = {"tokens": (("tokens",), "text"), "image": (("image", "boxes"),
                                                     "images"),
          "audio": (("audio",), "sound")}
KINDS = ("json_set", "columns", "column", "category", "multi_hot", "array",
         "time", "text", "tokens", "image", "boxes", "audio")


def number(value):
    """A number of a range, as people write it."""
    if value >= 2**31 and value == 2 ** (int(value).bit_length() - 1):
        return f"2^{int(value).bit_length() - 1}"
    return f"{value:,.10g}" if abs(value) < 1e9 and abs(value) >= 1e-4 or \
        value == 0 else f"{value:g}"


def code(value):
    """A value as JSON, whole numbers without a fraction."""
    def plain(item):
        if isinstance(item, list):
            return [plain(one) for one in item]
        if isinstance(item, float):
            return int(item) if item == int(item) else round(item, 4)
        return item
    return f"`{json.dumps(plain(value))}`"


def joined(words):
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def limits(rule, word):
    least = rule.get("minimum", rule.get("exclusiveMinimum"))
    most = rule.get("maximum", rule.get("exclusiveMaximum"))
    text = word
    if least is not None:
        between = "between" if "exclusiveMinimum" in rule else ""
        text += f", {between} {number(least)}".replace("  ", " ") + (
            f" {'and' if between else 'to'} {number(most)}"
            if most is not None else " or more")
    if "multipleOf" in rule:
        text += f", a multiple of {number(rule['multipleOf'])}"
    return text


def plural(text):
    return re.sub(r"^(text|number|integer|object)\b", r"\1s", text)


def of_list(rule):
    inner = type_of(rule.get("items", {}))
    least, most = rule.get("minItems"), rule.get("maxItems")
    count = f"{least} " if least == most and least else ""
    different = "different " if rule.get("uniqueItems") else ""
    return f"list of {count}{different}{plural(inner)}" if inner else "list"


def type_of(rule):
    """What a value may be, in words."""
    if "$ref" in rule:
        name = rule["$ref"].rsplit("/", 1)[1]
        return f"as [`{name}`]({name}.md)"
    for word in ("anyOf", "oneOf"):
        if word in rule and "properties" not in rule:
            words = [type_of(one) for one in rule[word]]
            return " or ".join(dict.fromkeys(
                one for text in words for one in text.split(" or ") if one))
    if "enum" in rule:
        return joined([code(value) for value in rule["enum"]])
    if "const" in rule:
        return code(rule["const"])
    kind = rule.get("type")
    if isinstance(kind, list):
        return " or ".join(type_of({**rule, "type": one}) for one in kind)
    if kind == "array":
        return of_list(rule)
    if kind in ("integer", "number"):
        return limits(rule, kind)
    if kind == "object" and isinstance(rule.get("additionalProperties"), dict):
        return f"object of {plural(type_of(rule['additionalProperties']))}"
    return {"string": "text", "boolean": "`true` or `false`",
            "object": "object"}.get(kind, "")


def object_in(rule):
    """The rule of the object that a setting is or may be, with its keys."""
    if "properties" in rule:
        return rule
    for word in ("anyOf", "oneOf"):
        for one in rule.get(word, ()):
            if "properties" in one:
                return one
    return None


def cell(text):
    text = re.sub(r"\s+", " ", text).strip().replace("|", r"\|")
    return re.sub(r"\b[A-Z]+(_[a-z_]+)+\b", r"`\g<0>`", text)


def sentence(text):
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".;:" else ".")


def default_of(key, rule, required):
    if key in required:
        return "required"
    return code(rule["default"]) if "default" in rule else ""


def row(key, rule, required, *more):
    about = rule.get("description", "")
    for value in rule.get("enum", ()):
        about = re.sub(rf'(?<![\w"`]){re.escape(str(value))}:', f"{code(value)}:",
                       about)
    for value, cost in rule.get("costs", {}).items():
        about += f". With `{json.dumps(value)}`, {cost}"
    return (f"| `{key}` | {cell(type_of(rule))} | "
            f"{cell(default_of(key, rule, required))} | "
            + "".join(f"{cell(one)} | " for one in more)
            + f"{cell(sentence(about))} |\n")


def table(keys, required, extra=None):
    head = ("key", "values", "default", *(("kinds",) if extra else ()), "")
    text = "".join(f"| {word} " for word in head) + "|\n" + \
        "|---" * len(head) + "|\n"
    for key, rule in keys.items():
        text += row(key, rule, required, *((extra[key],) if extra else ()))
    return text + "\n"


def section(title, rule, level, parent=""):
    """The table of an object's keys, and the objects inside it after it."""
    mark = "#" * level
    text = f"{mark} {title}\n\n" if title else ""
    if rule.get("description"):
        text += sentence(cell(rule["description"])) + "\n\n"
    text += table(rule["properties"], rule.get("required", ()))
    for key, inner in rule["properties"].items():
        text += inside(key, inner, level, parent)
    return text


def inside(key, rule, level, parent):
    place = f"{parent}.{key}" if parent else key
    if key == "image" and parent.endswith("boxes"):
        return ""  # as the kind image
    if rule.get("type") == "array" and isinstance(rule.get("items"), dict):
        return entries(place, rule["items"], level)
    found = object_in(rule)
    if found is None:
        return ""
    return section(f"`{place}`", found, level + 1, place)


def entries(place, rule, level):
    """What may stand in a list: one object, or one of several."""
    choices = [one for one in rule.get("anyOf", [rule])
               if "properties" in one]
    text = ""
    for one in choices:
        names = list(one["properties"])
        if len(names) == 1:
            inner = one["properties"][names[0]]
            if "properties" in inner:
                text += section(f"`{place}`: `{names[0]}`", inner, level + 1,
                                f"{place}.{names[0]}")
        else:
            text += section(f"an entry of `{place}`", one, level + 1,
                            place)
    return text


def kinds_of(rule):
    """Which kinds of source take a key, in words."""
    refused = {one["properties"]["kind"]["const"]:
               {no["required"][0] for no in one["not"]["anyOf"]}
               for one in rule["oneOf"]}
    words = {}
    for key in rule["properties"]:
        take = [kind for kind in refused if key not in refused[kind]]
        leave = [kind for kind in refused if key in refused[kind]]
        words[key] = "all" if not leave else \
            ", ".join(f"`{kind}`" for kind in take) \
            if len(take) <= len(leave) else \
            "all but " + ", ".join(f"`{kind}`" for kind in leave)
    return words


def page_of_source(rule):
    rule = object_in(rule)
    keys = dict(rule["properties"])
    paths = {}
    for one in rule["oneOf"]:
        path = one["properties"].get("path")
        if path:
            paths.setdefault(json.dumps(path), []).append(
                one["properties"]["kind"]["const"])
    about = " ".join(
        f"For {', '.join(f'`{kind}`' for kind in kinds)}: "
        + sentence(json.loads(path)["description"])
        for path, kinds in paths.items())
    keys["path"] = {"description": about, "anyOf": [
        json.loads(path) for path in paths]}
    return ("In place of the section, a text may name the source: a URI, a "
            "file or a folder.\n\n" + table(keys, ("kind",), kinds_of(rule)))


def page_of_fields(keys):
    common = {key: one for key, one in keys.items() if key not in KINDS}
    text = ("A field has exactly one of these kinds; the keys `standardize` to "
            "`missing` belong to `column` and `columns`, and `standardize` to "
            "`json_set` too.\n\n" + table(
                {key: {name: value for name, value in one.items()
                       if name != "properties"}
                 for key, one in keys.items() if key in KINDS}, ())
            + "## Numbers\n\n" + table(common, ()))
    return text + sections_of(keys, [
        kind for kind in KINDS
        if not any(kind in kinds for kinds, _ in FIELDS.values())])


def sections_of(keys, kinds):
    return "".join(section(f"`{kind}`", keys[kind], 2, kind)
                   for kind in kinds if "properties" in keys[kind])


def page_of_model(rule):
    text = ('`"none"`, the default, trains nothing: the device alone takes the '
            "steps. Otherwise `model` is an object of one of these kinds.\n\n")
    for one in rule["oneOf"]:
        if "properties" in one:
            keys = dict(one["properties"])
            kind = keys.pop("kind")
            text += section(f"`{kind['const']}`", {
                **one, "properties": keys,
                "description": kind.get("description", "")}, 2)
    return text


def page_of_sources(rule):
    return section("", rule["items"], 1)


def guides(names):
    links = []
    for name in names.split():
        file = (PAGES.parent / "how-to" / f"{name}.md").resolve()
        title = re.match(r"# (.*)", file.read_text())[1] if file.exists() \
            else name
        links.append(f"[{title}]({os.path.relpath(file, PAGES / 'job')})")
    return "Guides: " + ", ".join(links) + ".\n\n"


def job_pages(schema):
    made = {"source": page_of_source, "model": page_of_model,
            "sources": page_of_sources,
            "fields": lambda rule: page_of_fields(keys)}
    keys = object_in(schema["properties"]["fields"]["additionalProperties"])[
        "properties"]
    pages, index = {}, ""
    note = NOTE.format("tables of settings in the sources")
    for name, (first, links) in SECTIONS.items():
        rule = schema["properties"][name]
        text = made[name](rule) if name in made else section(
            "", object_in(rule), 1)
        values = re.sub(" or object$", ", or an object with the keys below",
                        type_of(rule))
        if name not in made and values != "object":
            text = f"The value is {values}.\n\n{text}"
        pages[f"job/{name}.md"] = (
            f"# `{name}`\n\n{note}{first} {guides(links)}{text}")
        index += f"| [`{name}`]({name}.md) | {first[8:].partition(', ')[2]} |\n"
    for name, (kinds, links) in FIELDS.items():
        shown = " and ".join(f"`{kind}`" for kind in kinds)
        pages[f"job/{name}.md"] = (
            f"# `fields`: {shown}\n\n{note}Look up every key of fields of "
            f"the kind {shown}. {guides(links)}" + sections_of(keys, kinds))
    pages["job/index.md"] = (
        f"# Job keys\n\n{note}Look up every key of a job file by its section. "
        "[The job file](../../how-to/job_file.md) says how a job is written; "
        "`penstock schema` prints the JSON Schema that these pages are made "
        "from.\n\n| section | |\n|---|---|\n" + index)
    return pages


def help_of(program, *verb):
    done = subprocess.run(
        [program, *verb, "--help"], capture_output=True, text=True,
        check=True, env={**os.environ, "HOME": "/home/you",
                         "XDG_CACHE_HOME": ""})
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def verbs_in(text):
    block = re.search(r"^Subcommands:\n((?: .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", block[1], re.M) if block else []


def commands_pages(program):
    note = NOTE.format("texts of the verbs in penstock/cli")
    top = help_of(program)
    shared = top[top.index("Examples:"):]
    index = (f"# Commands\n\n{note}Look up what each verb of `penstock` does, "
             "and follow the link to its arguments. `penstock VERB --help` "
             "prints the same.\n\n| verb | |\n|---|---|\n")
    pages = {}
    for verb in verbs_in(top):
        whole = help_of(program, verb)
        first = whole.partition("\n")[0]
        index += f"| [{verb}]({verb}.md) | {first} |\n"
        text = (f"# penstock {verb}\n\n{note}Look up the arguments of "
                f"`penstock {verb}`: {first[0].lower()}{first[1:]}.\n\n"
                + block_of(whole, shared))
        for inner in verbs_in(whole):
            text += f"## penstock {verb} {inner}\n\n" + block_of(
                help_of(program, verb, inner), shared)
        pages[f"commands/{verb}.md"] = text
    options, examples = re.search(r"^Options:\n.*?(?=\n\n)", top, re.M | re.S
                                  )[0], shared.rstrip()
    pages["commands/index.md"] = f"{index}\n```text\n{options}\n\n{examples}\n```\n"
    return pages


def block_of(text, shared):
    rest = text.replace(shared, "").partition("\n")[2]
    return f"```text\n{rest.rstrip()}\n```\n\n"


def call_of(name, thing):
    """Its name with its arguments and their defaults, without types."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = signature.replace(
        return_annotation=inspect.Signature.empty,
        parameters=[one.replace(annotation=inspect.Parameter.empty)
                    for one in signature.parameters.values()
                    if one.name != "self"])
    return f"{name}{plain}"


def shown_call(name, thing):
    call, lines = call_of(name, thing), []
    first = "    "
    while len(call) > 88:
        cut = call.rfind(", ", 0, 88) + 1
        if cut <= 0:
            break
        lines.append(call[:cut])
        call = first + call[cut:].lstrip()
    return "```text\n" + "\n".join([*lines, call]) + "\n```\n\n"


def paragraph_of(text):
    """A paragraph of a docstring as Markdown."""
    if text.startswith("    "):
        return ("<!-- not run: a sketch in a docstring -->\n```python\n"
                + textwrap.dedent(text).rstrip() + "\n```")
    if text.startswith(">>> "):
        return f"```pycon\n{text}\n```"
    if re.match(r"\w+ {2,}\S", text):  # names, and what each means
        items = re.split(r"\n(?=\w)", text)
        return "\n".join(re.sub(r"\s+", " ", re.sub(
            r"^(\w+) +", r"- `\1`: ", item)) for item in items)
    return re.sub(r"(?<![`\w.])__\w+__(?![`\w])", r"`\g<0>`", text)


def doc_of(thing):
    text = inspect.getdoc(thing) or ""
    # nanobind puts the signature on top.
    text = re.sub(r"^\w+\(self.*?\n(\n|$)", "", text).replace("``", "`")
    return "\n\n".join(map(paragraph_of, re.split(r"\n{2,}", text))) + "\n\n"


def members_of(kind):
    for name, member in sorted(vars(kind).items()):
        if not name.startswith("_") and inspect.getdoc(member) and (
                callable(member) or isinstance(member, property)
                or type(member).__name__.startswith("nb_")
                or inspect.isdatadescriptor(member)):
            yield name, member


def section_of_class(name, kind):
    text = shown_call(f"penstock.{name}", kind) + doc_of(kind)
    own = list(members_of(kind))
    if own:
        text += "| member | |\n|---|---|\n"
    for member, thing in own:
        call = call_of(member, thing) if callable(thing) else member
        if type(thing).__name__.startswith("nb_"):
            call = f"{member}()"
        about = re.sub(r"\n\n", " ", doc_of(thing))
        text += f"| `{cell(call)}` | {cell(about)} |\n"
    return text + "\n"


def python_pages(penstock):
    note = NOTE.format("docstrings of the package")
    pages, classes, functions, errors = {}, "", "", ""
    for name in sorted(penstock.__all__, key=str.lower):
        thing = getattr(penstock, name)
        if name.startswith("__"):
            continue
        if not inspect.isclass(thing):
            functions += (f"## {name}\n\n"
                          + shown_call(f"penstock.{name}", thing)
                          + doc_of(thing))
        elif issubclass(thing, Exception):
            bases = ", ".join(f"`{base.__name__}`" for base in thing.__bases__)
            errors += f"| `{name}` | {bases} | {cell(doc_of(thing))} |\n"
        else:
            first = doc_of(thing).partition("\n\n")[0]
            classes += f"| [`{name}`]({name}.md) | {cell(first)} |\n"
            pages[f"python/{name}.md"] = (
                f"# penstock.{name}\n\n{note}Look up the arguments and the "
                f"members of `penstock.{name}`.\n\n"
                + section_of_class(name, thing))
    pages["python/index.md"] = (
        f"# Python\n\n{note}Look up every name of the package `penstock`: its "
        "classes have pages of their own, functions and exceptions follow. "
        "[Load data in Python](../../how-to/loader.md) is the guide.\n\n"
        f"| class | |\n|---|---|\n{classes}\n{functions}## Exceptions\n\n"
        "[Errors](../errors/index.md) lists the codes.\n\n"
        f"| exception | also a | |\n|---|---|---|\n{errors}")
    return pages


def made_by(program):
    schema = json.loads(subprocess.run(
        [program, "schema"], capture_output=True, text=True, check=True).stdout)
    pages = job_pages(schema)
    pages |= commands_pages(program)
    try:
        import penstock
    except ImportError as missing:
        print(f"reference: python/ is left alone: {missing}")
    else:
        pages |= python_pages(penstock)
    return {name: re.sub(r"[ \t]+\n", "\n", text).rstrip("\n") + "\n"
            for name, text in pages.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="penstock")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    old = []
    for name, text in made_by(arguments.program).items():
        file = PAGES / name
        if file.exists() and file.read_text() == text:
            continue
        old.append(f"docs/reference/{name}")
        if not arguments.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if arguments.check and old:
        print(f"out of date: {', '.join(old)}; run tools/make_reference.py")
    elif not arguments.check:
        print("written: " + (", ".join(old) or "nothing new"))
    sys.exit(bool(arguments.check and old))


if __name__ == "__main__":
    main()
