#!/usr/bin/env python3
"""tools/make_unicode_tables.py: writes the tables of penstock/tokenizer.

Needs the packages unicodedata2==16.0.0, regex==2025.11.3 and tokenizers==0.23.3.
The classes of characters are those of Unicode 16.0. Canonical composition is that
of `tokenizers`, which knows Unicode 9.0: of the data in 16.0 stays what it does.
Grapheme clusters are those of Unicode 17.0. What normalisers and pre-tokenisers of `tokenizers` make of a character is asked of
them, since each has tables of another age.
"""
import pathlib

import regex
import tokenizers
import unicodedata2 as unicode
from tokenizers import normalizers, pre_tokenizers

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


def zigzag(number):
    return 2 * number if number >= 0 else -2 * number - 1


def steps_of(value, bits):
    """Where a value of each code point changes, as differences."""
    found, last = [], 0
    for c in range(0x110000):
        now = 0 if 0xD800 <= c < 0xE000 else value(c)
        if now != last:
            found.append(c << bits | now)
            last = now
    return [b - a for a, b in zip([0, *found], found)]


def bert(**parts):
    return normalizers.BertNormalizer(**{
        "clean_text": False, "handle_chinese_chars": False,
        "strip_accents": False, "lowercase": False, **parts})


def flags():
    """Bits as in character_sets.h."""
    probes = [
        (normalizers.StripAccents(), lambda text, c: text == ""),
        (bert(strip_accents=True), lambda text, c: text == ""),
        (bert(clean_text=True), lambda text, c: text == ""),
        (bert(handle_chinese_chars=True), lambda text, c: text != c)]
    cut = [pre_tokenizers.Punctuation(), pre_tokenizers.Digits(True)]

    def value(c):
        found = 0
        for bit, (normalizer, meets) in enumerate(probes):
            found |= meets(normalizer.normalize_str(chr(c)), chr(c)) << bit
        for bit, splitter in enumerate(cut):
            pieces = splitter.pre_tokenize_str(f"a{chr(c)}a")
            found |= (len(pieces) == 3) << bit + len(probes)
        return found | (unicode.category(chr(c)) == "Nd") << 6
    return array("kFlagSteps", steps_of(value, 7))


def graphemes():
    """The numbers of enum Grapheme, without Hangul syllables."""
    kinds = [r"\p{GCB=Control}", None, r"\p{InCB=Extend}", r"\p{InCB=Linker}",
             r"\p{GCB=ZWJ}", r"\p{GCB=RI}", r"\p{GCB=Prepend}",
             r"\p{GCB=SpacingMark}", r"\p{GCB=L}", r"\p{GCB=V}", r"\p{GCB=T}",
             r"\p{ExtPict}", r"\p{InCB=Consonant}"]
    order = [5, 1, 4, 3]  # ZWJ and Control before what is in InCB too
    tests = [(number, regex.compile(kinds[number - 1])) for number in
             [*order, *(n for n in range(6, 14))] if kinds[number - 1]]
    extend = regex.compile(r"\p{GCB=Extend}")

    def value(c):
        for number, test in tests:
            if test.match(chr(c)):
                return number
        return 2 if extend.match(chr(c)) else 0
    return array("kGraphemeSteps", steps_of(value, 4))


def lowered():
    lowercase, found, before = normalizers.Lowercase(), [], 0
    for c in EVERY:
        text = lowercase.normalize_str(chr(c))
        if text == chr(c) or c == 0x130:  # alone becomes two
            continue
        found += [c - before, zigzag(ord(text) - c)]
        before = c
    return array("kLowered", found)


def compatibility():
    """Code point's difference * 32 + count, then the parts: differences, zigzag."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    found, before, first = [], 0, 0
    for c in EVERY:
        text = nfkd.normalize_str(chr(c))
        if text == nfd.normalize_str(chr(c)):
            continue
        found.append((c - before) << 5 | len(text))
        before, last = c, first
        for part in text:
            found.append(zigzag(ord(part) - last))
            last = ord(part)
        first = ord(text[0])
    return array("kCompatible", found)


def ideographs():
    han = pre_tokenizers.Split(tokenizers.Regex(r"\p{Han}"), "isolated")
    return array("kHanSteps", steps_of(
        lambda c: len(han.pre_tokenize_str(2 * chr(c))) == 2, 1))


def main():
    assert unicode.unidata_version == "16.0.0"
    (ROOM / "unicode_classes.cpp").write_text(
        HEAD.format(face="unicode.h") + classes() + TAIL)
    (ROOM / "composition_tables.cpp").write_text(
        HEAD.format(face="composition.h") + composition() + TAIL)
    (ROOM / "character_sets_tables.cpp").write_text(
        HEAD.format(face="character_sets.h") + flags() + graphemes() + lowered() +
        ideographs() + TAIL)
    (ROOM / "compatibility_tables.cpp").write_text(
        HEAD.format(face="composition.h") + compatibility() + TAIL)


if __name__ == "__main__":
    main()
