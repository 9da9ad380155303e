#!/usr/bin/env python3
"""tools/check_syntax.py BUILD [OTHER]: every file that BUILD would compile, and
OTHER would not, is read by its compiler, with all warnings, and no code is made.

Both are configured with CMAKE_EXPORT_COMPILE_COMMANDS, BUILD without precompiled
headers, which nobody makes here. Only what has changed since the last time is
read again: ninja keeps that in BUILD/syntax.
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys

RULES = """builddir = .
rule read
  command = $command && touch $out
  description = $out
  depfile = $out.d
  deps = gcc
"""


def reading(command, stamp):
    """The compiler's command, which notes what it reads and makes nothing."""
    words = shlex.split(command)
    at = words.index("-o")
    del words[at:at + 2]
    words.remove("-c")
    return shlex.join([*words, "-fsyntax-only", "-MD", "-MT", stamp,
                       "-MF", f"{stamp}.d"])


def escaped(text):
    return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def compiled(build):
    """What a build compiles: each entry with its file's name, from the build's
    folder (where files are put together), else from the folder around it."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        base = build if file.is_relative_to(build) else build.parent
        yield entry, os.path.relpath(file, base)


def main():
    build, *others = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    folder = build / "syntax"
    folder.mkdir(exist_ok=True)
    rules, seen = [RULES], {name for other in others
                            for _, name in compiled(other)}
    for entry, stamp in compiled(build):
        file = entry["file"]
        # What goes into a part and into its tests is read once.
        if file.endswith(".cu") or stamp in seen:
            continue
        seen.add(stamp)
        rules.append(
            f"build {escaped(stamp)}: read {escaped(file)}\n"
            f"  command = {reading(entry['command'], stamp).replace('$', '$$')}"
            "\n")
    (folder / "build.ninja").write_text("".join(rules))
    return subprocess.run(["ninja", "-C", folder, "-k", "0"],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
