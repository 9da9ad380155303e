#!/usr/bin/env python3
"""Each C++ file reaches what it uses through the includes that are written in it.

Where files are compiled together, or behind precompiled headers, a file compiles
without an include that it needs, until its neighbour changes. So for each name of
the standard library and each type of ours that a file uses, the header that
declares it must be included by the file, or by one of ours that it includes.
Exits 1 and says which file lacks what. Functions of ours are not looked for:
their names are not theirs alone.
"""
import pathlib
import re
import sys

import measure_rooms as measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = "penstock", "python", "tests", "bench", "examples"
# Of each header the names that need it; those that end in :: are namespaces.
STANDARD = {
    "algorithm": "all_of any_of none_of for_each find_if find_if_not count "
                 "count_if equal mismatch search copy_n copy_if fill fill_n "
                 "transform generate remove_if replace unique reverse rotate "
                 "partition stable_partition sort stable_sort nth_element "
                 "partial_sort lower_bound upper_bound equal_range "
                 "binary_search min max clamp min_element max_element "
                 "minmax_element ranges::",
    "array": "array to_array",
    "atomic": "atomic atomic_flag atomic_ref memory_order_relaxed "
              "memory_order_acquire memory_order_release",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero "
           "popcount has_single_bit endian",
    "charconv": "from_chars to_chars",
    "chrono": "chrono::",
    "cmath": "sqrt exp log log2 log10 pow floor ceil round lround llround "
             "nearbyint isnan isinf isfinite fabs fmod sin cos ldexp",
    "condition_variable": "condition_variable condition_variable_any",
    "cstring": "memcpy memmove memset memcmp memchr strlen strcmp strerror",
    "deque": "deque",
    "exception": "exception_ptr current_exception rethrow_exception "
                 "make_exception_ptr uncaught_exceptions",
    "filesystem": "filesystem::",
    "fstream": "ifstream ofstream fstream",
    "functional": "function invoke hash less greater plus",
    "future": "future promise async",
    "iomanip": "setprecision setw setfill",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared",
    "mutex": "mutex unique_lock lock_guard scoped_lock call_once once_flag",
    "numbers": "numbers::",
    "numeric": "accumulate iota partial_sum inner_product gcd lcm reduce",
    "optional": "optional nullopt",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 uniform_int_distribution "
              "normal_distribution discrete_distribution",
    "regex": "regex smatch regex_match regex_search",
    "set": "set multiset",
    "span": "span as_bytes",
    "sstream": "ostringstream istringstream stringstream",
    "string": "string to_string stoi stol stod stoull getline",
    "string_view": "string_view",
    "thread": "thread jthread this_thread::",
    "tuple": "tuple tie make_tuple",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "variant": "variant visit get_if holds_alternative monostate",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in STANDARD.items()
             for name in names.split()}
HOLDS = {"string": {"string_view"}, "filesystem": {"string", "string_view"}}
STANDARD_NAME = re.compile(r"\bstd::(\w+)(::)?")
INCLUDE = re.compile(r'#include [<"]([\w/.-]+)[>"]')
TYPE_USED = re.compile(r"(?<![\w:.>])[A-Z]\w+\b")
KIND = "class|struct|enum|typename|using"
NAMED = re.compile(rf"(?:\b(?:{KIND}) +|[,{{]\s*(?!{KIND}))(\w+)(?! *;)")
FORWARD = re.compile(r"^ *(?:friend )?(?:class|struct|enum class) (\w+)(?: : \w+)?;",
                     re.M)
TEST_SUITE = re.compile(r"\b(?:INSTANTIATE_)?TEST\w*\(\w+")


def read_files():
    return {name: of for name, of in measure.read_code(ROOT, *FOLDERS).items()
            if name.endswith((".h", ".cpp")) and "must_not_compile" not in name}


def includes(text):
    """The files of ours that each file includes, and the headers of others."""
    ours, others = {}, {}
    for name, of in text.items():
        ours[name], others[name] = set(), set()
        for header in INCLUDE.findall(of):
            beside = str(pathlib.PurePath(name).parent / header)
            found = next((of for of in (header, beside) if of in text), None)
            if found is None:
                others[name] |= {header, *HOLDS.get(header, ())}
            else:
                ours[name].add(found)
    return ours, others


def own_types(code):
    """The header of each type of ours whose name nothing else has."""
    defined, named = {}, {}
    for name, text in code.items():
        for kind, _ in measure.types(text):
            defined.setdefault(kind.rsplit("::", 1)[-1], set()).add(name)
        for kind in NAMED.findall(text):
            named.setdefault(kind, set()).add(name)
    return {kind: next(iter(of)) for kind, of in defined.items()
            if len(of) == 1 and next(iter(of)).endswith(".h")
            and named.get(kind, of) <= of}


def lacking(code, known, theirs, header_of, seen):
    """What a file uses and does not reach, as (what, header). `known`: types
    that are declared, `theirs`: headers of others, in the files of ours that
    are `seen` from it."""
    for word, inside in STANDARD_NAME.findall(code):
        header = HEADER_OF.get(word + inside) or HEADER_OF.get(word)
        if header and header not in theirs:
            yield f"std::{word}", f"<{header}>"
    for kind in set(TYPE_USED.findall(code)) - known:
        if kind in header_of and header_of[kind] not in seen:
            yield kind, f'"{header_of[kind]}"'


def all_lacking(text):
    """What each file lacks, as lines to be printed; text: of each file."""
    code = {name: TEST_SUITE.sub("TEST(", measure.plain(of))
            for name, of in text.items()}
    declared = {name: set(FORWARD.findall(of)) for name, of in code.items()}
    ours, others = includes(text)
    header_of = own_types(code)
    bad = set()
    for name in code:
        seen = {name} | measure.reached(name, ours)
        for what, header in lacking(
                code[name], set().union(*(declared[of] for of in seen)),
                set().union(*(others[of] for of in seen)), header_of, seen):
            bad.add(f"{name}: {what} is used: #include {header}")
    return sorted(bad)


def main():
    bad = all_lacking(read_files())
    print("\n".join(bad) if bad else "each file includes what it uses")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
