#include "penstock/transforms/json_set/json_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/transforms/json_set/json_grammar.h"

namespace penstock {
namespace {

using testing::HasSubstr;

KeySlots slots_for_tests() {
  JsonSet set{.column = "c", .keys = {"a", "b"}, .max = 9};
  set.required = {"name"};
  return KeySlots(set);
}

class Reference : public testing::Test {
 protected:
  std::optional<JsonFault> parse(std::string_view text) {
    return reference_.parse(text, elements_);
  }
  void expect_fault(std::string_view text, std::int64_t byte,
                    const std::string& says) {
    std::optional<JsonFault> fault = parse(text);
    ASSERT_TRUE(fault) << text;
    EXPECT_EQ(fault->byte, byte) << text << ": " << fault->why;
    EXPECT_THAT(fault->why, HasSubstr(says)) << text;
  }
  double value(std::size_t element, std::size_t slot) {
    return elements_.values[element * elements_.slots + slot];
  }
  Held held(std::size_t element, std::size_t slot) {
    return elements_.held[element * elements_.slots + slot];
  }

  KeySlots slots_ = slots_for_tests();
  ReferenceJson reference_{slots_};
  Elements elements_{slots_.names.size()};
};

TEST_F(Reference, KnowsNumbersBooleansNullsAndWhatIsMissing) {
  ASSERT_FALSE(parse(R"([{"a": 1.5, "b": true}, {"a": null, "name": "x"}])"));
  ASSERT_EQ(elements_.count, 2u);
  EXPECT_EQ(value(0, 0), 1.5);
  EXPECT_EQ(held(0, 0), Held::number);
  EXPECT_EQ(value(0, 1), 1.0);
  EXPECT_EQ(held(0, 1), Held::boolean);
  EXPECT_EQ(held(0, 2), Held::missing);
  EXPECT_TRUE(std::isnan(value(1, 0)));
  EXPECT_EQ(held(1, 0), Held::missing);
  EXPECT_EQ(held(1, 1), Held::missing);
  EXPECT_EQ(held(1, 2), Held::other);
}

TEST_F(Reference, AKeyGivenTwiceTakesTheLast) {
  ASSERT_FALSE(parse(R"([{"a": "no number", "a": 1e999, "a": 2},
                         {"a": 1, "a": null}])"));
  EXPECT_EQ(value(0, 0), 2);
  EXPECT_EQ(held(1, 0), Held::missing);
}

TEST_F(Reference, KeysCompareByTheirUnescapedText) {
  ASSERT_FALSE(parse(R"([{"\u0061": 3, "b\u0000": 4, "\ud800": 5}])"));
  EXPECT_EQ(value(0, 0), 3);
  EXPECT_EQ(held(0, 1), Held::missing);
}

TEST_F(Reference, ExtraKeysMayHoldAnything) {
  ASSERT_FALSE(parse(R"([{"x": [1, {"a": "deep"}], "y": 1e999, "a": 1,
      "z": 123456789012345678901234567890, "t": "\ud800 \u00fc"}])"));
  EXPECT_EQ(value(0, 0), 1);
}

TEST_F(Reference, NumbersAreTheNearestDoubles) {
  ASSERT_FALSE(parse(R"([{"a": 123456789012345678901234567890, "b": 1e-400},
                         {"a": -0.0, "b": 2.2250738585072011e-308}])"));
  EXPECT_EQ(value(0, 0), 123456789012345678901234567890.0);
  EXPECT_EQ(value(0, 1), 0.0);
  EXPECT_FALSE(std::signbit(value(1, 0)));
  EXPECT_EQ(value(1, 1), 2.2250738585072011e-308);
  // More digits than fit into 64 bits, behind zeros.
  ASSERT_FALSE(parse(R"([{"a": 0.000100098189903890345843,
                          "b": 0.95000000000000000000}])"));
  EXPECT_EQ(value(0, 0), 0.000100098189903890345843);
  EXPECT_EQ(value(0, 1), 0.95);
}

TEST_F(Reference, TinyNumbersBecomeZeroAndHugeOnesAreRefused) {
  std::string zeros(400, '0');
  for (const std::string& tiny : std::vector<std::string>{
           "1e-400", "0." + zeros + "1", "1e-99999999999999999999",
           "0." + zeros + "1e5", "-" + zeros.substr(0, 1) + ".1e-399",
           "1" + zeros + "e-900"}) {
    ASSERT_FALSE(parse("[{\"a\": " + tiny + "}]")) << tiny;
    EXPECT_EQ(value(0, 0), 0) << tiny;
    EXPECT_FALSE(std::signbit(value(0, 0)));
  }
  for (const std::string& huge : std::vector<std::string>{
           "1e309", "1" + zeros, "1e+400", "1e99999999999999999999",
           "0." + zeros + "1e800", "-1.8e308"})
    expect_fault("[{\"a\": " + huge + "}]", 7, "not fit float64");
}

TEST_F(Reference, SaysWhichValueIsNoNumber) {
  expect_fault(R"([{"a": 1}, {"b": "12"}])", 17,
               R"([1].b holds a text: "12", expected a number)");
  expect_fault(R"([{"a": [1]}])", 7, "[0].a holds a list, expected a number");
  expect_fault(R"([{"a": {}}])", 7, "[0].a holds an object");
  expect_fault(R"([{"b": "x", "a": "y"}])", 7, "[0].b");
}

TEST_F(Reference, SaysWhichNumberNoFloat64CanHold) {
  expect_fault(R"([{"a": 1e999}])", 7,
               "[0].a holds 1e999, which does not fit float64");
  expect_fault(R"([{"a": -1e999}])", 7, "holds -1e999");
}

TEST_F(Reference, WantsAListOfObjects) {
  expect_fault("null", 0, "holds null, expected a list of objects");
  expect_fault(R"( {"a": 1})", 1, "holds an object");
  expect_fault("3", 0, "holds a number");
  expect_fault("\"x\"", 0, "holds a text");
  expect_fault("true", 0, "holds a boolean");
  expect_fault(R"([{"a": 1}, 7])", 11,
               "element [1] is a number, expected an object");
  expect_fault("[[]]", 1, "element [0] is a list");
  expect_fault("[null]", 1, "element [0] is null");
}

TEST_F(Reference, NamesTheByteWhereATextStopsBeingJson) {
  expect_fault("", 0, "found the end of the text, expected a value");
  expect_fault(R"([{"a": 1)", 8, "expected ',' or '}'");
  expect_fault(R"([{"a": 1}] x)", 11, "found 'x', expected the end");
  expect_fault(R"([{"a": NaN}])", 7, "found 'N', expected a value");
  expect_fault(R"([{"a": Infinity}])", 7, "found 'I'");
  expect_fault(R"([{"a": -Infinity}])", 8, "expected a digit");
  expect_fault(R"([{"a": 01}])", 8, "leading zero");
  expect_fault(R"([{"a": 1.}])", 9, "expected a digit");
  expect_fault(R"([{"a": 1e}])", 9, "expected a digit");
  expect_fault(R"([{"a": 1,}])", 9, "expected a key in quotes");
  expect_fault(R"([{"a" 1}])", 6, "expected ':'");
  expect_fault(R"([{"a": 1} {}])", 10, "expected ',' or ']'");
  expect_fault("[{\"s\": \"a\nb\"}]", 9, "control character");
  expect_fault(R"([{"s": "\x"}])", 9, "an escape that JSON knows");
  expect_fault(R"([{"s": "\u12g4"}])", 12, "hexadecimal");
  expect_fault(R"([{"s": "open)", 12, "closing quote");
  expect_fault(std::string_view("[{\"a\": 1}]\0", 11), 10, "byte 0x00");
}

TEST_F(Reference, NamesTheByteWhereATextStopsBeingUtf8) {
  for (const char* bad :
       {"\x80", "\xc1\x81", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xe2\x82", "\xff"})
    expect_fault(std::string(R"([{"s": "ab)") + bad + "\"}]", 10, "UTF-8");
  EXPECT_FALSE(parse("[{\"s\": \"\xc3\xa4 \xe6\x9d\xb1 \xf0\x9f\x98\x80\"}]"));
  expect_fault("[\xc3\xa4]", 1, "byte 0xc3");
}

TEST_F(Reference, NestingEndsAt64Levels) {
  auto nested = [](int levels) {
    std::string text = R"([{"x": )";
    for (int i = 2; i < levels; ++i) text += "[";
    for (int i = 2; i < levels; ++i) text += "]";
    return text + "}]";
  };
  EXPECT_FALSE(parse(nested(kDeepest)));
  expect_fault(nested(kDeepest + 1), 7 + 62, "deeper than 64 levels");
  expect_fault(std::string(10'000'000, '['), 64, "deeper than 64 levels");
}

}  // namespace
}  // namespace penstock
