"""Measures the code of the rooms: sizes, includes, and what should not be there
(circles of includes, long functions, code written twice, two types of one
name, interfaces of many functions). Imported by draw_rooms.py and check_rooms.py.

A unit is a header with the implementation of the same name. Tests and fakes
are not measured, except for the length of their functions.
"""
import ast
import collections
import itertools
import pathlib
import re

CPP = {".h", ".cpp", ".cu", ".cuh"}
LONGEST = 60  # lines of a function
COPIED = 6  # lines in a row, without blank lines, comments and includes
INCLUDE = re.compile(r'#include "((?:penstock|python)/[\w/.]+)"')
TEST = re.compile(r"_test\.|/tests/|/fake/|/test_\w+\.h$")
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|'
                     r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)
WRITTEN = "// Written by tools/"  # tables of numbers: data, not code
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
NAMESPACE = re.compile(r"\b(?:inline\s+)?namespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:(?:alignas|PENSTOCK_\w+)\s*\([^()]*\)\s*|\[\[\w+\]\]\s*)?"
                  r"([A-Za-z_][\w:]*)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
NO_FUNCTION = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()]*$|"
                         r'extern ""\s*$|=\s*$|^\s*[({,]')


def room_of(name):
    """The room of a file: penstock/base/x.h -> base, python/... -> python."""
    parts = pathlib.PurePath(name).parts
    return "python" if parts[0] == "python" else parts[1]


def unit_of(name):
    return re.sub(r"\.\w+$", "", name)


def read_code(root, *folders):
    """The text of every C++ and Python file below these folders, by its name
    from the root."""
    return {str(path.relative_to(root)): path.read_text()
            for folder in folders for path in sorted((root / folder).rglob("*"))
            if path.suffix in CPP | {".py"} and path.is_file()}


def includes(code):
    """What each unit includes of other units."""
    graph = collections.defaultdict(set)
    for name, text in code.items():
        graph[unit_of(name)] |= {unit_of(other) for other in
                                 INCLUDE.findall(text)} - {unit_of(name)}
    return graph


def reached(start, graph):
    """All that is included from `start` on; itself, where that is a circle."""
    found, ahead = set(), [start]
    while ahead:
        for other in graph.get(ahead.pop(), ()):
            if other not in found:
                found.add(other)
                ahead.append(other)
    return found


def circles(graph):
    """The groups of units that include each other, directly or not."""
    far = {unit: reached(unit, graph) for unit in graph}
    return sorted({tuple(sorted(other for other in far[unit]
                                if unit in far.get(other, ())))
                   for unit in graph if unit in far[unit]})


def plain(text):
    """C++ without comments and the content of literals; same lines."""
    return LITERAL.sub(
        lambda found: ("" if found[0].startswith("/") else '""')
        + "\n" * found[0].count("\n"), text)


def types(text):
    """The types that are defined in namespaces, by their whole names, with the
    lines where they begin. Those of nameless namespaces are their file's own."""
    text = DIRECTIVE.sub(lambda found: "\n" * found[0].count("\n"), plain(text))
    found, inside, end_of_last = [], [], 0  # inside: None is no namespace
    for brace in re.finditer(r"[{};]", text):
        head = text[end_of_last:brace.start()]
        end_of_last = brace.end()
        if brace[0] == "{":
            space, kind = NAMESPACE.search(head), TYPE.search(head)
            if kind and all(inside):
                found.append(("::".join([*inside, kind[1]]),
                              text.count("\n", 0, brace.start()) + 1))
            inside.append(space[1] if space else None)
        elif brace[0] == "}" and inside:
            inside.pop()
    return found


def twice_defined(code):
    """Types of one name that two files define: a program that has both takes
    either for the other. As pairs of the name and the places, "file:line"."""
    places = collections.defaultdict(dict)
    for name, text in code.items():
        if not name.endswith(".py"):
            for kind, line in types(text):
                places[kind].setdefault(name, line)
    return sorted((kind, [f"{name}:{line}" for name, line in of.items()])
                  for kind, of in places.items() if len(of) > 1)


def bases_of(head):
    """The names of what a class inherits, as they stand before its brace."""
    listed = re.search(r"[^:]:(?!:)(.*)$", head, re.S)
    listed = re.sub(r"<[^<>]*>", "", listed[1]) if listed else ""
    return [name for base in listed.split(",")
            for name in re.findall(r"[\w:]+", base)[-1:]]


def classes(text):
    """(name, bases, virtual functions) of each class: the name without
    namespaces, and the functions that it declares itself, which are neither
    destructors nor overrides."""
    text = DIRECTIVE.sub("", plain(text))
    found, inside, end_of_last = [], [], 0  # inside: None is no class
    for brace in re.finditer(r"[{};]", text):
        said = text[end_of_last:brace.start()]
        end_of_last = brace.end()
        if inside and inside[-1] and re.search(r"\bvirtual\b", said) and \
                not re.search(r"~|\boverride\b", said):
            inside[-1][2] += 1
        if brace[0] == "{":
            kind = None if NAMESPACE.search(said) else TYPE.search(said)
            outer = [one[0] for one in inside[-1:] if one]
            inside.append(kind and ["::".join([*outer, kind[1]]),
                                    bases_of(said[kind.start():]), 0])
        elif brace[0] == "}" and inside:
            ended = inside.pop()
            if ended:
                found.append(tuple(ended))
    return found


def wide_interfaces(code, most):
    """Classes in headers that declare virtual functions and have more than
    `most`, with those of the classes that they inherit, as triples of
    the name, the header and the number."""
    known = {name: (header, bases, own) for header, text in code.items()
             if header.endswith(".h") for name, bases, own in classes(text)}

    def functions(name):
        while name not in known and "::" in name:  # a namespace
            name = name.partition("::")[2]
        _, bases, own = known.get(name, ("", [], 0))
        return own + sum(functions(base) for base in bases if base != name)

    return sorted((name, header, functions(name))
                  for name, (header, _, own) in known.items()
                  if own and functions(name) > most)


def long_functions_cpp(text):
    """The first lines and the lengths of functions that are too long."""
    text = plain(text)
    found, opened, end_of_last = [], [], 0
    for brace in re.finditer(r"[{};]", text):
        if brace[0] == "{":
            head = text[end_of_last:brace.start()]
            begins = end_of_last + len(head) - len(head.lstrip())
            opened.append((begins, head.strip()))
        elif brace[0] == "}" and opened:
            begins, head = opened.pop()
            lines = text.count("\n", begins, brace.end()) + 1
            if lines > LONGEST and "(" in head and not NO_FUNCTION.search(head):
                found.append((text.count("\n", 0, begins) + 1, lines))
        end_of_last = brace.end()
    # Of functions in one another (lambdas, loops) the outermost counts.
    return [(at, lines) for at, lines in found
            if not any(a <= at and at + lines <= a + n and (a, n) != (at, lines)
                       for a, n in found)]


def long_functions_python(text):
    return [(node.lineno, node.end_lineno - node.lineno + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.end_lineno - node.lineno + 1 > LONGEST]


def long_functions(code):
    """"file:line" of each function that is too long, with its length."""
    return [(f"{name}:{at}", lines) for name, text in code.items()
            for at, lines in (long_functions_python(text) if name.endswith(".py")
                              else long_functions_cpp(text))]


def lines_of_code(text):
    """The lines that say something, with their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        line = " ".join(line.split())
        if re.search(r"\w", line) and not re.match(
                r"//|#|import |from \S+ import|namespace |\} {2}// namespace",
                line):
            yield number, line


def copies(code):
    """Runs of lines that stand in two places, letter for letter, as pairs of
    "file:line"."""
    places = collections.defaultdict(list)
    for name, text in code.items():
        if text.startswith(WRITTEN):
            continue
        lines = list(lines_of_code(text))
        for at in range(len(lines) - COPIED + 1):
            run = tuple(line for _, line in lines[at:at + COPIED])
            places[run].append((name, at, lines[at][0]))
    shared = {(a, b) for same in places.values()
              for a, b in itertools.combinations(same, 2)}
    before = {((a[0], a[1] + 1), (b[0], b[1] + 1)) for a, b in shared}
    return sorted((f"{a[0]}:{a[2]}", f"{b[0]}:{b[2]}") for a, b in shared
                  if (a[:2], b[:2]) not in before)
