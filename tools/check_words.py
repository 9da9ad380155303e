#!/usr/bin/env python3
"""Counts phrases that read as if they were translated, and exits 1 where there
are more than a list allows.

Pages have limits of their own. Sources, and the pages that are made from them,
may not have more than they had when the list was made; a change that removes
some lowers the number here. Each phrase has a plainer one after its limits.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# phrase -> (in pages, in sources, what to say)
PHRASES = {
    "is none": (2, 1, "is not a ..."),
    "are none": (2, 0, "are not ..."),
    "says so": (4, 1, "what it reports"),
    "as it is": (5, 5, "unchanged, by default"),
    "as they are": (6, 45, "unchanged"),
    "of one's own": (5, 0, "your own"),
    "nobody": (2, 111, "no caller, no thread"),
    "somebody": (1, 26, "a caller, another program"),
    "anew": (2, 6, "again"),
    "tells of": (1, 5, "describes, reports"),
    "told of": (1, 4, "reported"),
    "goes on": (2, 37, "continues"),
}
ANY = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b")
SOURCES = re.compile(
    r"(?:penstock|python|tests|bench|examples|tools)/.*\.(?:h|cpp|cu|cuh|py)$|"
    r"docs/(?:rooms\b|reference/(?:job|commands|python)/)")
PAGES = re.compile(r"docs/.*\.md$|[A-Z]+\.md$")


def words(text):
    """Its words on one line, without the marks of comments."""
    return re.sub(r"\s*\n\s*(?:///?|#|\*|>)?\s*", " ", text)


def main():
    counted = {phrase: [0, 0] for phrase in PHRASES}
    for name in subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True,
            check=True).stdout.splitlines():
        file = ROOT / name
        of_sources = bool(SOURCES.match(name))
        if not file.is_file() or file == pathlib.Path(__file__) or not (
                of_sources or PAGES.match(name)):
            continue
        text = words(file.read_text())
        for phrase in ANY.findall(text):
            counted[phrase][of_sources] += 1
    bad, lower = [], []
    for phrase, (*most, better) in PHRASES.items():
        for where, count, limit in zip(("pages", "sources"), counted[phrase],
                                       most):
            if count > limit:
                bad.append(f"{where}: '{phrase}' {count} times, {limit} are "
                           f"allowed; say {better}")
            elif where == "sources" and count < limit:
                lower.append(f"'{phrase}': {count}")
    print("\n".join(bad) or "the words are plain")
    if lower:
        print("limits of sources that can be lowered: " + ", ".join(lower))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
