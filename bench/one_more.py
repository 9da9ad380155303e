#!/usr/bin/env python3
"""How much of the house is touched by one more source, field kind, data set, model, verb, setting?

Each is added to a copy of the last commit, as a copy of one that is there under
another name: in a folder or file of its own, and in lines elsewhere, which are
counted. The program is then built, and has to know all of them.

    bench/one_more.py
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from result import ROOT, print_result, processor

MOST = 2  # lines elsewhere


def rename(text, names):
    for old, new in names:
        text = text.replace(old, new)
    return text


def copied(tree, old, new, names):
    """A folder or a file, with other names in it."""
    for path in [tree / old, *(tree / old).rglob("*")]:
        if path.is_file():
            inside = str(path)[len(str(tree / old)):]
            to = pathlib.Path(f"{tree / new}{rename(inside, names)}")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(rename(path.read_text(), names))


def line_after(tree, file, pattern, line):
    text = (tree / file).read_text()
    found = re.search(pattern, text, re.M)
    assert found, f"{file}: {pattern}"
    at = text.index("\n", found.start()) + 1
    (tree / file).write_text(text[:at] + line + "\n" + text[at:])


def source(tree):
    copied(tree, "penstock/sources/tfrecord", "penstock/sources/another",
           [("tfrecord", "another"), ("TFRecord", "Another"),
            ("TfRecord", "Another")])
    line_after(tree, "penstock/sources/kinds.cpp", r"^  KIND\(zarr\)",
               "  KIND(another) \\")


def field(tree):
    copied(tree, "penstock/transforms/multi_hot", "penstock/transforms/another",
           [("multi_hot", "another"), ("MultiHot", "AnotherKind"),
            ("label", "mark"), ("Label", "Mark")])
    line_after(tree, "penstock/transforms/kinds.cpp", r"^  KIND\(boxes\)",
               "  KIND(another) \\")


def data_set(tree):
    for end in ".h", ".cpp":
        copied(tree, f"penstock/dataset/arrays/array_dataset{end}",
               f"penstock/dataset/arrays/another_dataset{end}",
               [("array_dataset", "another_dataset"),
                ("ArrayDataset", "AnotherDataset"),
                ("NamedArray", "AnotherArray"), ("refuse(", "refuse_another("),
                ("quoted(", "quoted_another("), ("is_real", "is_another"),
                ("hash_of_real", "hash_of_another"),
                ("add_hash", "add_another")])
    line_after(tree, "penstock/dataset/CMakeLists.txt", r"^  SOURCES",
               "    arrays/another_dataset.cpp")
    line_after(tree, "penstock/dataset/dataset.h", "dataset/arrays/array_dataset.h",
               '#include "penstock/dataset/arrays/another_dataset.h"')


def model(tree):
    for folder in "penstock/models", "penstock/trainer/models":
        copied(tree, f"{folder}/tabular", f"{folder}/another",
               [("tabular", "another"), ("Tabular", "AnotherModel"),
                ("embedding_width", "another_width")])
    line_after(tree, "penstock/models/kinds.h", r"^  KIND\(tabular\)",
               "  KIND(another) \\")


def verb(tree):
    copied(tree, "penstock/cli/verbs/schema.cpp",
           "penstock/cli/verbs/another.cpp",
           [('"schema"', '"another"'), ("schema_verb", "another_verb")])
    line_after(tree, "penstock/cli/verbs.cpp", r"^  VERB\(doctor\)",
               "  VERB(another) \\")


def setting(tree):
    line_after(tree, "penstock/loader/options.h", r"^  std::uint64_t seed",
               "  bool another = false;")
    line_after(tree, "penstock/job/sections.cpp", r'^      \.boolean\("shuffle"',
               '      .boolean("another", &Options::another, "")')


KINDS = {"source": (source, "penstock/sources/another/"),
         "field kind": (field, "penstock/transforms/another/"),
         "data set": (data_set, "penstock/dataset/arrays/another_dataset."),
         "model": (model, ("penstock/models/another/",
                   "penstock/trainer/models/another/")),
         "verb": (verb, "penstock/cli/verbs/another.cpp"),
         "setting of a job": (setting, None)}


def changed(tree):
    """{file: lines added and removed} since the last commit of the copy."""
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    told = subprocess.run(["git", "diff", "--cached", "--numstat"], cwd=tree,
                          text=True, stdout=subprocess.PIPE, check=True)
    lines = [line.split("\t") for line in told.stdout.splitlines()]
    return {name: int(added) + int(removed) for added, removed, name in lines}


def known(program):
    """Whether the program has each of them."""
    schema = subprocess.run([program, "schema"], text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    verbs = subprocess.run([program, "--help"], text=True,
                           stdout=subprocess.PIPE, check=True).stdout
    loader = json.loads(schema)["properties"]["loader"]["properties"]
    return {"kinds and settings": schema.count('"another"'),
            "the setting": "another" in loader, "the verb": "another" in verbs}


def main():
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        for name, (add, own) in KINDS.items():
            add(tree)
            files = changed(tree)
            elsewhere = {file: lines for file, lines in files.items()
                         if own is None or not file.startswith(own)}
            results.append({"one_more": name, "own": own,
                            "elsewhere": elsewhere,
                            "lines_elsewhere": sum(elsewhere.values()),
                            "must_reach": f"<= {MOST}",
                            "reached": sum(elsewhere.values()) <= MOST})
            subprocess.run(["git", "-c", "user.name=bench", "-c",
                            "user.email=bench@localhost", "commit", "-qm", name],
                           cwd=tree, check=True)
        build = ["cmake", "-B", "build", "-G", "Ninja",
                 "-DPENSTOCK_TESTS=OFF", "-DPENSTOCK_TORCH=off",
                 "-DPENSTOCK_PYTHON=off"]
        if shutil.which("ccache"):
            build.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        for command in (build, ["cmake", "--build", "build"]):
            subprocess.run(command, cwd=tree, check=True,
                           stdout=subprocess.DEVNULL)
        told = known(tree / "build/bin/penstock")
        plugins = sorted(path.name for path in
                         (tree / "build").rglob("libpenstock_source_another.so"))
    assert told["the setting"] and told["the verb"] and plugins, told
    print_result("one_more", __doc__, "bench/one_more.py",
                 {"machine": processor(), "results": results,
                  "the_built_program_has": {**told, "plugins": plugins}})


if __name__ == "__main__":
    main()
