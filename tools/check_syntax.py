#!/usr/bin/env python3
"""tools/check_syntax.py BUILD: every file that BUILD would compile is read by
its compiler, with all warnings, and no code is made.

BUILD is configured with CMAKE_EXPORT_COMPILE_COMMANDS, and without precompiled
headers, so that a file which lacks an include is found. Only what has changed
since the last time is read again: ninja keeps that in BUILD/syntax.
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


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = build / "syntax"
    folder.mkdir(exist_ok=True)
    rules, seen = [RULES], set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = entry["file"]
        stamp = os.path.relpath(file, build.parent)
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
