#!/usr/bin/env python3
"""tools/make_unicode_tables.py: writes the tables of penstock/tokenizer.

Needs the packages unicodedata2==16.0.0 and tokenizers==0.23.2. The classes of
characters are those of Unicode 16.0. Canonical composition is that of
`tokenizers`, which knows Unicode 9.0: of the data in 16.0 stays what it does.
"""
import pathlib

import tokenizers
import unicodedata2 as unicode

ROOM = pathlib.Path(__file__).resolve().parent.parent / "penstock/tokenizer"
# The number of each class, as in unicode.h.
CLASSES = {"Lu": 2, "Ll": 3, "Lt": 4, "Lm": 5, "Lo": 6, "Mn": 7, "Mc": 7, "Me": 7,
           "Nd": 8, "Nl": 8, "No": 9, "Pc": 10, "Pd": 11, "Ps": 11, "Pe": 11,
           "Pi": 11, "Pf": 11, "Po": 11, "Sm": 12, "Sc": 12, "Sk": 12, "So": 12}
WHITE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028,
         0x2029, 0x202F, 0x205F, 0x3000}
EVERY = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HEAD = """// Written by tools/make_unicode_tables.py.
#include "penstock/tokenizer/{face}"

namespace penstock::unicode {{

// clang-format off
"""
TAIL = """// clang-format on

}  // namespace penstock::unicode
"""


def array(name, numbers):
    lines, line = [], ""
    for number in numbers:
        item = f"{number},"
        if len(line) + len(item) > 80:
            lines.append(line)
            line = ""
        line += item
    body = "\n".join([*lines, line])
    return (f"const std::uint32_t {name}[] = {{\n{body}\n}};\n"
            f"const std::size_t {name}Size = {len(numbers)};\n")


def classes():
    found, last = [], None
    for c in range(0x110000):
        kind = 1 if c in WHITE else CLASSES.get(unicode.category(chr(c)), 0)
        if kind != last:
            found.append(c << 4 | kind)
            last = kind
    steps = [b - a for a, b in zip([0, *found], found)]
    return array("kClassSteps", steps)


def composition():
    nfd, nfc = tokenizers.normalizers.NFD(), tokenizers.normalizers.NFC()
    combining, parts, pairs = [], [], []
    for c in EVERY:
        rank = unicode.combining(chr(c))
        # Behind a mark of another rank it changes places, if it is known.
        probe = "a" + "\u0301" + chr(c) if rank < 230 else "a" + chr(c) + "\u0316"
        if rank and nfd.normalize_str(probe) != probe:
            combining.append(c << 8 | rank)
        if 0xAC00 <= c < 0xD7A4:
            continue
        whole = unicode.decomposition(chr(c))
        if not whole or whole[0] == "<" or nfd.normalize_str(chr(c)) == chr(c):
            continue
        pieces = [int(piece, 16) for piece in whole.split()]
        parts += [c, pieces[0], pieces[1] if len(pieces) == 2 else 0]
        if nfc.normalize_str(chr(c)) == chr(c):
            pairs.append(c)
    return (array("kCombining", combining) + array("kParts", parts) +
            array("kComposed", pairs))


def main():
    assert unicode.unidata_version == "16.0.0"
    (ROOM / "unicode_classes.cpp").write_text(
        HEAD.format(face="unicode.h") + classes() + TAIL)
    (ROOM / "composition_tables.cpp").write_text(
        HEAD.format(face="composition.h") + composition() + TAIL)


if __name__ == "__main__":
    main()
