"""Runs the blocks of a page as they stand, in their order, in this folder.

    pages.py [--table FILE] PAGE...     FILE: a small table that it writes first,
                                        and looks at with the program

Blocks of sh are run by sh, those of python by this Python, in one process for a
page. In the README a line that begins with four spaces shows how to install,
and is not run.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

BLOCK = re.compile(r"(?:^<!-- not run: (?P<why>.*?) -->\n)?"
                   r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def write_table(path):
    import pyarrow
    from pyarrow import parquet
    rows = range(1000)
    parquet.write_table(pyarrow.table({
        "width": [row % 7 / 7 for row in rows],
        "label": [row % 2 for row in rows]}), path)


def run(page):
    """How many blocks were run."""
    names, count = {}, 0
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["why"] or block["language"] not in ("sh", "python"):
            continue
        count += 1
        line = page.read_text(encoding="utf-8").count(
            "\n", 0, block.start("text"))
        print(f"-- {page.name}:{line}, {block['language']}", flush=True)
        begin = time.monotonic()
        if block["language"] == "sh":
            subprocess.run(["sh", "-euc", block["text"]], check=True)
        else:
            exec(compile(block["text"], f"{page.name}:{line}", "exec"), names)
        print(f"-- {time.monotonic() - begin:.1f} s", flush=True)
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.table:
        write_table(options.table)
        subprocess.run(["penstock", "peek", options.table], check=True)
    for page in options.pages:
        count = run(page)
        if not count:
            sys.exit(f"{page} has no block that can be run")
        print(f"{page.name}: {count} blocks ran")


if __name__ == "__main__":
    main()
