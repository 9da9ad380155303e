#!/usr/bin/env python3
"""What count_returns.py counts in code that is made up."""
import unittest

import count_returns


def way(code):
    of = count_returns.Way({f"penstock/run/{name}": text
                            for name, text in code.items()})
    of.follow("open", "penstock/run/a")
    return [unit[-1] for unit, _ in of.entered], list(of.returns())


class CountReturns(unittest.TestCase):
    def test_a_unit_that_was_left_is_returned_to(self):
        includes = '#include "penstock/run/b.h"\n#include "penstock/run/c.h"\n'
        units, returns = way({
            "a.cpp": includes + "void open() { first(); other(); second(); }",
            "b.h": "", "c.h": "",
            "b.cpp": "void first() { work(1); }\nvoid second() { work(2); }",
            "c.cpp": "void other() { work(3); }"})
        self.assertEqual(units, ["a", "b", "c", "b"])
        self.assertEqual(returns, [False, False, False, True])

    def test_a_function_is_followed_once(self):
        units, _ = way({
            "a.cpp": '#include "penstock/run/b.h"\n'
                     "void open() { one(); two(); }\n"
                     "void one() { work(1); }\nvoid two() { one(); b(); b(); }",
            "b.h": "", "b.cpp": "void b() { work(2); }"})
        self.assertEqual(units, ["a", "b"])

    def test_what_calls_nothing_and_what_is_unknown_is_no_stop(self):
        units, _ = way({
            "a.cpp": '#include "penstock/run/b.h"\n'
                     "void open() { leaf(); unknown(); if (x) return; }",
            "b.h": "", "b.cpp": "int leaf() { return 1; }"})
        self.assertEqual(units, ["a"])


if __name__ == "__main__":
    unittest.main()
