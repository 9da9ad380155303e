#!/usr/bin/env python3
"""What measure_rooms.py finds in code that is made up."""
import unittest

import measure_rooms as measure


def function(lines, head="int f(int a)", inside="  a();"):
    return f"{head} {{\n" + f"{inside}\n" * (lines - 2) + "}\n"


class MeasureRooms(unittest.TestCase):
    def test_a_unit_is_a_header_with_its_implementation(self):
        graph = measure.includes({
            "penstock/a/x.h": "",
            "penstock/a/x.cpp": '#include "penstock/a/x.h"\n'
                                '#include "penstock/a/y.h"\n'})
        self.assertEqual(graph["penstock/a/x"], {"penstock/a/y"})

    def test_finds_circles_of_any_length_once(self):
        graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(),
                 "e": {"d", "f"}, "f": {"e"}}
        self.assertEqual(measure.circles(graph), [("a", "b", "c"), ("e", "f")])

    def test_a_function_of_60_lines_is_not_long(self):
        self.assertEqual(measure.long_functions({"a.cpp": function(60)}), [])

    def test_finds_a_function_of_61_lines(self):
        code = {"a.cpp": "// f()\nnamespace n {\n" + function(61) + "}\n"}
        self.assertEqual(measure.long_functions(code), [("a.cpp:3", 61)])

    def test_braces_in_literals_and_comments_do_not_count(self):
        inside = "  a(\"}\", '{', R\"({)\");  // }"
        code = {"a.cpp": function(61, inside=inside) + function(60)}
        self.assertEqual(measure.long_functions(code), [("a.cpp:1", 61)])

    def test_a_class_is_not_a_function(self):
        code = {"a.h": function(99, "class A final : public B")}
        self.assertEqual(measure.long_functions(code), [])

    def test_a_block_of_c_is_not_a_function_but_what_is_in_it_may_be_one(self):
        head = '#define M(a) a\nextern "C"'
        code = {"a.cpp": function(99, head),
                "b.cpp": function(99, head, inside="int f() {}"),
                "c.cpp": head + " {\n" + function(61) + "}\n",
                "d.cpp": function(61, 'extern "C" int f(int a)')}
        self.assertEqual(measure.long_functions(code),
                         [("c.cpp:3", 61), ("d.cpp:1", 61)])

    def test_finds_a_long_function_of_python(self):
        code = {"a.py": "def f():\n" + "    a()\n" * 60}
        self.assertEqual(measure.long_functions(code), [("a.py:1", 61)])

    def test_finds_types_by_their_whole_names(self):
        text = """#include <x>
namespace a::b {
template <class T, class U>
class One final : public Base<T> {
  struct Inside {};
};
enum class Two : int { x };
struct One<int, int> { };
struct Later;
struct stat found {};
namespace {
struct Own { };
}  // namespace
void f() { struct Local {}; }
}  // namespace a::b
struct alignas(8) Three {};
"""
        self.assertEqual(measure.types(text),
                         [("a::b::One", 4), ("a::b::Two", 7), ("Three", 16)])

    def test_finds_types_that_two_files_define(self):
        code = {"a.h": "namespace n {\nstruct A {};\nclass B {};\n}\n",
                "b.cpp": "namespace n {\nclass A {\n};\n}\n",
                "c.cpp": "namespace n {\nnamespace {\nclass A {};\n}\n}\n",
                "d.h": "namespace m {\nclass A {};\n}\n",
                "e.h": "namespace n {\nclass B;\n}\n"}
        self.assertEqual(measure.twice_defined(code),
                         [("n::A", ["a.h:2", "b.cpp:2"])])

    def test_one_file_may_choose_between_two_definitions(self):
        code = {"a.h": "#if X\nstruct A {};\n#else\nclass A {};\n#endif\n"}
        self.assertEqual(measure.twice_defined(code), [])

    def test_counts_the_virtual_functions_that_a_class_declares(self):
        text = """namespace n {
class A : public m::B, std::enable_shared_from_this<A> {
 public:
  virtual ~A() = default;
  virtual int one() const = 0;  // virtual
  virtual Json two(int a = {}) { return {}; }
  virtual int three() override;
  int four() override;
  struct Inside {
    virtual void five() {}
  };
};
}  // namespace n
"""
        self.assertEqual(measure.classes(text),
                         [("A::Inside", [], 1),
                          ("A", ["m::B", "std::enable_shared_from_this"], 2)])

    def test_counts_those_of_an_interface_that_another_inherits(self):
        def of(count):
            return "".join(f"  virtual int f{i}() = 0;\n" for i in range(count))
        code = {"a.h": f"namespace m {{\nclass A {{\n{of(5)}}};\n}}\n",
                "b.h": f"struct B : public m::A {{\n{of(2)}}};\n",
                "c.h": f"struct C final : m::A, D<A, A> {{\n{of(3)}}};\n",
                "d.h": "struct E : C {\n  int f0() override;\n};\n"}
        self.assertEqual(measure.wide_interfaces(code, 7), [("C", "c.h", 8)])

    def test_tables_that_a_tool_writes_are_not_code(self):
        lines = "".join(f"a{i} = {i};\n" for i in range(9))
        code = {"a.cpp": measure.WRITTEN + "x.py.\n" + lines + lines}
        self.assertEqual(measure.copies(code), [])

    def test_finds_six_lines_that_stand_twice(self):
        lines = [f"a{i} = {i};\n" for i in range(9)]
        code = {"a.cpp": "".join(lines),
                "b.cpp": "b = 0;\n" + "  // why\n".join(lines[2:8])}
        self.assertEqual(measure.copies(code), [("a.cpp:3", "b.cpp:2")])

    def test_five_lines_may_stand_twice(self):
        lines = "".join(f"a{i} = {i};\n" for i in range(5))
        self.assertEqual(measure.copies({"a.cpp": lines, "b.cpp": lines}), [])


if __name__ == "__main__":
    unittest.main()
