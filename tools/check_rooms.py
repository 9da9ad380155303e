#!/usr/bin/env python3
"""Keeps the house as docs/rooms.md draws it. Exits 1 and says what is wrong.

Checks: a room includes only what it may see, and of other rooms (base
excepted) only the face; every test is listed in a CMakeLists.txt; no file of
ours is over 600 lines; no dumping-ground names; no two files define a type of
the same name in the same namespace; no interface has more than seven virtual
functions; an example in a header of a room, in the README or in docs/**/own_*.md
stands, line by line, in code that is compiled; what a field or a data set is, its
facts say: nothing is cast to a class that derives from FieldKind or Dataset, and
outside transforms nobody looks into a field's recipe, by a member of it (but
dump()) or by a variable of its own.
"""
import pathlib
import re
import sys

import measure_rooms as measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAY_SEE = {
    "base": "",
    "tokenizer": "base",
    "exec": "base",
    "device": "base",
    "sources": "base",
    "transforms": "base device tokenizer",
    "sampling": "base",
    "cache": "base device",
    "monitor": "base exec device",
    "dataset": "base exec device sources transforms sampling cache monitor",
    "loader": "base exec device sources transforms sampling cache monitor "
              "dataset",
    "models": "base transforms",
    "job": "base exec device sources transforms sampling cache monitor dataset "
           "loader models",
    "advisor": "base monitor loader",
    "session": "base exec device sources transforms sampling cache monitor "
               "dataset loader models job advisor",
    "report": "base exec device sources transforms sampling cache monitor "
              "dataset loader models job advisor session",
    "inspect": "base exec device sources transforms sampling cache monitor "
               "dataset loader models job advisor session report",
    "run": "base tokenizer exec device sources transforms sampling cache "
           "monitor dataset loader models job advisor session report inspect",
    "trainer": "base device monitor loader models job advisor session run",
    "demo": "base device sources monitor models job session inspect run",
    "cli": "base tokenizer exec device sources transforms sampling cache "
           "monitor dataset loader models job advisor session report inspect "
           "run trainer demo",
    "python": "base tokenizer exec device sources transforms sampling cache "
              "monitor dataset loader models job advisor session report "
              "inspect run",
}
# The steps of a kind of model use the settings in its descriptor.
OF_A_MODEL = re.compile(r"\w+/(descriptor|config)\.h")
OURS = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}
INCLUDE = re.compile(r'#include "penstock/(\w+)/([\w/.]+)"')
MOST_VIRTUALS = 7
DUMPS = re.compile(r"(util|helper|common|misc)s?\b")

BASES = re.compile(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*:\s*([^{};]*)\{")
CAST = re.compile(r"\bdynamic_(?:pointer_)?cast\s*<\s*(?:const\s+)?"
                  r"(?:penstock::)?(\w+)")
OF_FIELD = r"\bfacts(?:\(\))?\s*(?:\.|->)\s*(?:stored_)?recipe\b\s*"
INTO_RECIPE = re.compile(
    OF_FIELD + r"(?:\[|->|\.(?!\s*dump\())"
    r"|\b(?:Json|auto)\s*&?\s*\w+\s*=\s*\*?\s*[^;=]*" + OF_FIELD + ";")
EXAMPLE = re.compile(r"(?:^/// {5}[^\n]*\n)*^/// {5}[^\n]*;$|^```cpp\n.*?^```",
                     re.M | re.S)


def files(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in OURS:
                yield path


def squeezed(line):
    """A line of code without its comment marks and indentation."""
    line = line.strip().removeprefix("///").strip()
    return "" if line.startswith("```") else line


def what_is_not_asked_of_facts():
    """Casts to kinds of fields and data sets, and recipes that are looked into."""
    code = {file.relative_to(ROOT): file.read_text()
            for file in files("penstock", "python/engine")
            if file.suffix in (".h", ".cpp")}
    bases = {kind: set(re.findall(r"\w+", named)) for text in code.values()
             for kind, named in BASES.findall(text)}
    kinds = {"FieldKind", "Dataset"}
    while more := {kind for kind, named in bases.items()
                   if named & kinds} - kinds:
        kinds |= more
    for name, text in code.items():
        for cast in CAST.findall(text):
            if cast in kinds:
                yield f"{name}: ask facts() in place of a cast to {cast}"
        if name.parts[:2] != ("penstock", "transforms") \
                and INTO_RECIPE.search(text):
            yield (f"{name}: a field's recipe is compared as a whole; make a "
                   "fact of what is to be known")


def main():
    bad = list(what_is_not_asked_of_facts())
    lists = "".join(p.read_text() for p in ROOT.rglob("CMakeLists.txt")
                    if "build" not in p.parts)
    for file in files("penstock", "python/engine"):
        name = file.relative_to(ROOT)
        room = "python" if name.parts[0] == "python" else name.parts[1]
        if room not in MAY_SEE:
            bad.append(f"{name}: there is no room '{room}'")
            continue
        for other, rest in INCLUDE.findall(file.read_text()):
            if rest.startswith("fake/") and ("_test" in file.stem
                                             or "fake" in file.parts):
                continue  # tests may use another room's fakes
            if other == "models" and OF_A_MODEL.fullmatch(rest):
                rest = "models.h"
            if other != room and other not in MAY_SEE[room].split():
                bad.append(f"{name}: {room} may not see {other}")
            elif other not in (room, "base") and rest != f"{other}.h":
                bad.append(f"{name}: use {other}/{other}.h, not its inside {rest}")
    for file in files("penstock", "python", "tests", "bench", "examples", "tools",
                      "cmake"):
        name = file.relative_to(ROOT)
        if file.name.endswith("_test.cpp") and file.name not in lists:
            bad.append(f"{name}: no CMakeLists.txt builds this test")
        # By its name, or with all tests of its folder.
        if file.name.endswith("_test.py") \
                and f" {file.parent.name}/*_test.py" not in lists \
                and not re.search(
                    rf"\b{file.stem.removesuffix('_test')}\b", lists):
            bad.append(f"{name}: no CMakeLists.txt runs this test")
        lines = len(file.read_text().splitlines())
        if lines > 600:
            bad.append(f"{name}: {lines} lines; 600 is the end")
        if DUMPS.search(file.stem):
            bad.append(f"{name}: name it after the noun that it holds")
    for kind, places in measure.twice_defined(
            measure.read_code(ROOT, "penstock", "python", "tests")):
        bad.append(f"{places[0]}: {kind} is defined at {', '.join(places[1:])} "
                   "too; give one another name, or a namespace of its own")
    for name, header, count in measure.wide_interfaces(
            measure.read_code(ROOT, "penstock", "python/engine"), MOST_VIRTUALS):
        bad.append(f"{header}: {name} has {count} virtual functions, and may have "
                   f"{MOST_VIRTUALS}; what it tells without doing anything "
                   "belongs in a struct of facts")
    compiled = {squeezed(line) for file in files("penstock", "tests", "examples")
                if file.suffix == ".cpp" for line in file.open()}
    for file in [*files("penstock"), ROOT / "README.md",
                 *(ROOT / "docs").rglob("own_*.md")]:
        if file.suffix not in (".h", ".md"):
            continue
        for example in EXAMPLE.findall(file.read_text()):
            for line in example.splitlines():
                if (line := squeezed(line)) and line not in compiled:
                    bad.append(f"{file.relative_to(ROOT)}: no code that is "
                               f"compiled holds the example line '{line}'")
    print("\n".join(bad) if bad else "the rooms are in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
