#!/usr/bin/env python3
"""What check_includes.py says of files that are made up."""
import unittest

from check_includes import all_lacking

ROW = '#include <string>\nstruct Row {\n  std::string text;\n};\n'


class CheckIncludes(unittest.TestCase):
    def test_a_name_of_the_standard_library_needs_its_header(self):
        self.assertEqual(
            all_lacking({"penstock/a/x.cpp": "std::vector<int> x;\n"}),
            ["penstock/a/x.cpp: std::vector is used: #include <vector>"])
        self.assertEqual(all_lacking({
            "penstock/a/x.cpp": "std::chrono::seconds x;\n"}),
            ["penstock/a/x.cpp: std::chrono is used: #include <chrono>"])

    def test_a_type_needs_the_header_that_defines_it(self):
        self.assertEqual(
            all_lacking({"penstock/a/row.h": ROW,
                         "penstock/b/x.cpp": "int f(const Row& row);\n"}),
            ['penstock/b/x.cpp: Row is used: #include "penstock/a/row.h"'])

    def test_what_is_included_may_include_it(self):
        self.assertEqual(all_lacking({
            "penstock/a/row.h": ROW,
            "penstock/a/rows.h": '#include "penstock/a/row.h"\n',
            "penstock/b/x.cpp": '#include "penstock/a/rows.h"\n'
                                "std::string f(const Row& row);\n",
            "examples/x.cpp": "#include <penstock/a/rows.h>\nRow row;\n"}), [])

    def test_a_type_that_is_declared_or_defined_here_needs_none(self):
        self.assertEqual(all_lacking({
            "penstock/a/row.h": ROW,
            "penstock/b/x.h": "class Row;\nint f(const Row& row);\n",
            "penstock/b/y.cpp": "struct Row {};\nint g(const Row& row);\n"}), [])

    def test_words_and_names_of_suites_are_not_types(self):
        self.assertEqual(all_lacking({
            "penstock/a/row.h": ROW,
            "penstock/b/x.cpp": '// Row, std::vector\nauto x = "Row";\n'
                                "TEST(Row, HasAText) {}\n"}), [])


if __name__ == "__main__":
    unittest.main()
