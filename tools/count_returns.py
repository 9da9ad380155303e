#!/usr/bin/env python3
"""How often opening a job comes back to a unit that it had left.

    tools/count_returns.py [--from FUNCTION] [--list]

Follows the calls of a function (default: open_rows) through the code of the
rooms `job`, `dataset`, `session` and `run`, in the order in which they are written: into
each function once, and once from each function that calls it. A unit (a header
with its implementation) is entered when one of its functions is called from
another unit; that is a return when it had been entered before. Prints the units, the entries and the returns; --list prints the
way, a line for each entry, with a star at each return.

Calls are found by their names. A call of a member, or through an interface, is
followed only where one unit alone defines a function of that name, and a function
that calls nothing itself is no stop on the way.
"""
import argparse
import collections
import pathlib
import re

import measure_rooms as measure

ROOMS = ("job", "dataset", "session", "run")
NAME = re.compile(r"([A-Za-z_~][\w]*(?:::~?[A-Za-z_]\w*)*)\s*\(")
CAST = re.compile(r"\b\w+_cast<[^()]*?>(?=\()")
CALL = re.compile(r"(\.|->)?\b([A-Za-z_]\w*)\s*(?:>\s*)?[({]")
WORDS = {"if", "for", "while", "switch", "return", "catch", "sizeof", "else",
         "try", "throw", "do", "decltype", "noexcept", "alignof", "static_assert"}
# Of the standard library's classes, too: as members they say nothing.
STANDARD = {"add", "array", "at", "back", "begin", "bytes", "clear", "count",
            "data", "empty", "end", "erase", "find", "first", "front", "insert",
            "load", "path", "push_back", "reserve", "resize", "second", "size",
            "store", "string", "swap", "text", "value"}


def functions(text):
    """The name and the body of each function that is defined outside others."""
    text = CAST.sub("", measure.plain(text))
    opened, end_of_last = [], 0
    for brace in re.finditer(r"[{};]", text):
        if brace[0] == "{":
            opened.append((text[end_of_last:brace.start()].strip(),
                           brace.end()))
        elif brace[0] == "}" and opened:
            head, begins = opened.pop()
            within = any(is_function(outer) for outer, _ in opened)
            if is_function(head) and not within:
                name = NAME.search(head)[1].split("::")[-1]
                # What a constructor gives to its members is a part of it.
                yield name, head[NAME.search(head).end():] + \
                    text[begins:brace.start()]
        end_of_last = brace.end()


def is_function(head):
    found = NAME.search(head)
    return bool(found) and not measure.NO_FUNCTION.search(head) and \
        found[1] not in WORDS and "=" not in head[:found.start()]


class Way:
    def __init__(self, code):
        self.defined = collections.defaultdict(list)
        for name, text in code.items():
            for function, body in functions(text):
                if any(call[2] not in WORDS for call in CALL.finditer(body)):
                    self.defined[function].append((measure.unit_of(name), body))
        self.includes = measure.includes(code)
        self.entered, self.followed = [], set()

    def place_of(self, function, unit, member):
        """Where the function is that `unit` calls; None: not in these rooms, or
        nobody can say."""
        found = {place for place, body in self.defined.get(function, ())}
        if unit in found:
            return unit
        if member and (function in STANDARD or len(found) > 1):
            return None
        seen = found & measure.reached(unit, self.includes)
        return seen.pop() if len(seen) == 1 else None

    def follow(self, function, unit, last=None):
        if unit != last:
            self.entered.append((unit, function))
        if (function, unit) in self.followed:
            return
        self.followed.add((function, unit))
        for place, body in self.defined[function]:
            if place != unit:
                continue
            for member, called in dict.fromkeys(
                    (bool(call[1]), call[2]) for call in CALL.finditer(body)
                    if call[2] not in WORDS):
                to = self.place_of(called, unit, member)
                if to is not None:
                    self.follow(called, to, unit)

    def returns(self):
        """For each entry whether it is one."""
        seen = set()
        for unit, _ in self.entered:
            yield unit in seen
            seen.add(unit)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--from", dest="begin", default="open_rows")
    arguments.add_argument("--list", action="store_true")
    asked = arguments.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    code = {name: text for name, text in measure.read_code(
        root, *(f"penstock/{room}" for room in ROOMS)).items()
        if not measure.TEST.search(name) and not name.endswith(".py")}
    way = Way(code)
    (unit, _), *_ = way.defined[asked.begin]
    way.follow(asked.begin, unit)
    returned = list(way.returns())
    if asked.list:
        for (unit, function), again in zip(way.entered, returned):
            print(("* " if again else "  ") + f"{unit}: {function}")
    print(f"{len({unit for unit, _ in way.entered})} units, "
          f"{len(way.entered)} entries, {sum(returned)} returns")


if __name__ == "__main__":
    main()
