#!/usr/bin/env python3
"""tools/draw_rooms.py [--check]: draws the architecture from its includes.

Writes docs/architecture.svg and the measured section of docs/rooms.md. With
--check it writes nothing, and exits 1 where they are out of date. The sizes
there may be a tenth off, so that not every change draws the picture again.
"""
import html
import pathlib
import re
import sys
import textwrap

import measure_rooms as measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
SVG, PAGE = ROOT / "docs/architecture.svg", ROOT / "docs/rooms.md"
BEGIN = "<!-- Written by tools/draw_rooms.py from here on. -->\n"
END = "<!-- To here. -->\n"
# Each level, the highest first, with the column of each of its rooms.
LEVELS = [
    {"cli": 1, "python": 3},
    {"trainer": 0.5, "demo": 1.5},
    {"run": 2},
    {"inspect": 2},
    {"report": 2},
    {"session": 2},
    {"job": 1.5, "advisor": 2.5},
    {"loader": 1.5, "models": 2.5},
    {"dataset": 2},
    {"sources": 0, "transforms": 1, "cache": 2, "monitor": 3, "sampling": 4},
    {"tokenizer": 1, "device": 2, "exec": 3},
    {"base": 2},
]
# Code that stands twice on purpose.
EXPLAINED = {
    ("penstock/sources/postgres/postgres.h", "penstock/sources/sqlite/sqlite.h"):
        "each kind of source declares the three functions of a plugin",
}
# Units that include each other on purpose.
CIRCLES = {
    ("penstock/device/cuda/device", "penstock/device/cuda/jpeg_decoders",
     "penstock/device/cuda/nvjpeg_on_device"):
        "a GPU owns its JPEG decoders, which take memory and events from it",
}


def sentences():
    """What docs/rooms.md says of each room, in plain text."""
    said = {}
    for room, text in re.findall(r"^\| \[?(\w+)\]?[^|]*\| ([^|]+) \|",
                                 PAGE.read_text(), re.M):
        said.setdefault(room, text.replace("`", ""))
    return said


class House:
    """All that the picture and the page show."""

    def __init__(self):
        folders = ["penstock", "python"]
        every = measure.read_code(ROOT, *folders, "bench", "examples", "tools",
                                  "tests")
        self.code = {name: text for name, text in every.items()
                     if name.split("/")[0] in folders
                     and not measure.TEST.search("/" + name)}
        self.said = sentences()
        self.level = {room: len(LEVELS) - 1 - i
                      for i, row in enumerate(LEVELS) for room in row}
        self.files = {room: 0 for room in self.level}
        self.lines = dict(self.files)
        for name, text in self.code.items():
            if (room := measure.room_of(name)) in self.files:
                self.files[room] += 1
                self.lines[room] += len(text.splitlines())
        units = measure.includes(self.code)
        self.sees = {room: set() for room in self.level}
        for unit, others in units.items():
            for other in others:
                if (a := self.room_of(unit)) != (b := self.room_of(other)):
                    self.sees[a].add(b)
        inside = {unit: {other for other in others
                         if self.room_of(other) == self.room_of(unit)}
                  for unit, others in units.items()}
        self.units = len(units)
        self.circles = [circle for circle in measure.circles(inside)
                        if circle not in CIRCLES]
        self.long = measure.long_functions(every)
        self.copies = [(a, b) for a, b in measure.copies(self.code)
                       if (a.split(":")[0], b.split(":")[0]) not in EXPLAINED]

    @staticmethod
    def room_of(unit):
        return measure.room_of(unit + ".")

    def upwards(self):
        return [f"{a} (level {self.level[a]}) includes {b} (level "
                f"{self.level[b]}), which is not below it"
                for a in self.sees for b in self.sees[a]
                if self.level[a] <= self.level[b]]

    def below(self, room):
        """Every room that one includes, directly or through others."""
        return self.sees[room].union(*map(self.below, self.sees[room]))

    def edges(self):
        """The includes without those that go through another room too."""
        return [(a, b) for a in self.sees for b in sorted(self.sees[a])
                if not any(b in self.below(other) for other in self.sees[a])]

    def keep_sizes(self, page):
        """Takes the sizes that the page has where they are nearly right."""
        for room, files, lines in re.findall(
                r"^\| (\w+) \| \d+ \| (\d+) \| ([\d,]+) \|", page, re.M):
            for sizes, old in (self.files, int(files)), \
                    (self.lines, int(lines.replace(",", ""))):
                if room in sizes and abs(old - sizes[room]) <= max(
                        2, sizes[room] / 10):
                    sizes[room] = old


# ---- The picture ----

WIDE, HIGH, GAP, ACROSS, EDGE = 208, 92, 34, 226, 64  # in points
COLOURS = ["#eceff1", "#e0f2f1", "#e3f2fd", "#ede7f6", "#e8eaf6", "#fff3e0",
           "#fce4ec", "#f1f8e9", "#fffde7", "#efebe9", "#e1f5fe", "#f3e5f5"]


def place(room, house):
    """The middle of the top of a box, and how wide it is."""
    row = len(LEVELS) - 1 - house.level[room]
    x = EDGE + ACROSS * LEVELS[row][room] + WIDE / 2
    wide = WIDE if room != "base" else 4 * ACROSS + WIDE
    return x, 60 + row * (HIGH + GAP), wide


def text(x, y, words, **style):
    given = "".join(f' {key.replace("_", "-")}="{value}"'
                    for key, value in style.items())
    return f'<text x="{x:g}" y="{y:g}"{given}>{html.escape(words)}</text>'


def edge(above, below, house):
    """A line from the bottom of one box to the top of another. It goes around
    what is between them: down at the side where the other is."""
    x, y, wide = place(above, house)
    to_x, to_y, to_wide = place(below, house)
    if below == "base":  # straight down on the broad one
        to_x = x
    y += HIGH
    half = (to_y - y) / 2 if to_y - y < HIGH else GAP
    turn = (f"C{x:g},{y + half:g} {to_x:g},{to_y - half:g} {to_x:g},{to_y:g}"
            if to_y - y < HIGH else
            f"C{x:g},{y + half:g} {to_x:g},{y:g} {to_x:g},{y + GAP:g} "
            f"V{to_y:g}")
    return (f'<path d="M{x:g},{y:g} {turn}"><title>{above} includes {below}'
            "</title></path>")


def box(room, house):
    x, y, wide = place(room, house)
    left = x - wide / 2
    size = f"{house.files[room]} files, {house.lines[room]:,} lines"
    lines = textwrap.wrap(house.said[room], 32 if wide == WIDE else 200)
    if len(lines) > 3:
        lines = [*lines[:2], lines[2] + " …"]
    colour = COLOURS[house.level[room]]
    yield (f'<rect x="{left:g}" y="{y:g}" width="{wide:g}" height="{HIGH}" '
           f'rx="8" fill="{colour}" stroke="#90a4ae"/>')
    yield text(x, y + 21, room, font_size="15", font_weight="bold")
    for i, line in enumerate(lines):
        yield text(x, y + 39 + 14 * i, line, font_size="11", fill="#37474f")
    yield text(x, y + HIGH - 8, size, font_size="10", fill="#78909c")


def picture(house):
    wide = 2 * EDGE + 4 * ACROSS + WIDE
    high = 60 + len(LEVELS) * (HIGH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} '
           f'{high}" font-family="Helvetica, Arial, sans-serif" '
           'text-anchor="middle">',
           "<!-- Written by tools/draw_rooms.py. -->",
           '<rect width="100%" height="100%" fill="white"/>',
           text(wide / 2, 26, "The rooms of Penstock", font_size="19",
                font_weight="bold"),
           text(wide / 2, 45, "A line goes down to what a room includes; what "
                "it includes through another room is not drawn.",
                font_size="11", fill="#607d8b"),
           '<g fill="none" stroke="#b0bec5" stroke-width="1.4">']
    out += [edge(a, b, house) for a, b in house.edges()]
    out.append("</g>")
    for row, rooms in enumerate(LEVELS):
        y = 60 + row * (HIGH + GAP) + HIGH / 2 + 5
        out.append(text(28, y, f"L{len(LEVELS) - 1 - row}", font_size="13",
                        fill="#90a4ae"))
        for room in rooms:
            out += box(room, house)
    return "\n".join([*out, "</svg>", ""])


# ---- The page ----


def listed(title, found, aim):
    rows = "".join(f"\n  - {line}" for line in found)
    return f"- {title}: **{len(found)}** ({aim}){rows}\n"


def section(house):
    rows = "".join(
        f"| {room} | {house.level[room]} | {house.files[room]} | "
        f"{house.lines[room]:,} | "
        f"{', '.join(sorted(house.sees[room])) or '-'} |\n"
        for room in house.level)
    return (
        "\n![The rooms, drawn from their includes](architecture.svg)\n\n"
        "| room | level | files | lines | includes |\n|---|---|---|---|---|\n"
        + rows +
        "\nSizes are those of the day they were drawn, without tests and "
        "fakes.\n\n"
        + listed("Includes that do not go down", house.upwards(), "aim: 0")
        + listed("Circles of includes between units (a header and its "
                 "implementation) inside rooms",
                 [", ".join(f"`{unit}`" for unit in circle)
                  for circle in house.circles], "aim: 0")
        + listed(f"Functions over {measure.LONGEST} lines, in tests, "
                 "benchmarks and tools too",
                 [f"`{at.split(':')[0]}`, {lines} lines"
                  for at, lines in house.long], "aim: 0")
        + listed(f"Code that stands twice, letter for letter, {measure.COPIED} "
                 "lines or more, but for tables that a tool writes",
                 [f"`{a.split(':')[0]}` and `{b.split(':')[0]}`"
                  for a, b in house.copies], "aim: 0")
        + "\nOn purpose twice: " + "; ".join(
            f"`{a}` and `{b}` ({why})" for (a, b), why in EXPLAINED.items())
        + ".\nOn purpose in a circle: " + "; ".join(
            ", ".join(f"`{unit}`" for unit in circle) + f" ({why})"
            for circle, why in CIRCLES.items())
        + ".\n\n")


def main():
    house = House()
    page = PAGE.read_text()
    house.keep_sizes(page)
    if BEGIN not in page:
        page += "\n" + BEGIN + END
    before, rest = page.split(BEGIN)
    page = before + BEGIN + section(house) + END + rest.split(END)[1]
    written = {PAGE: page, SVG: picture(house)}
    stale = [path for path, new in written.items()
             if not path.exists() or path.read_text() != new]
    if "--check" not in sys.argv:
        for path in stale:
            path.write_text(written[path])
    wrong = [*house.upwards(), *house.circles, *house.long, *house.copies]
    if "--check" in sys.argv and wrong:
        sys.exit(f"against the aims of {PAGE.relative_to(ROOT)}: {wrong}")
    names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {names}; run tools/draw_rooms.py and look at "
                 "what changed")
    print(f"written: {names}" if stale else "the drawing is up to date")


if __name__ == "__main__":
    main()
