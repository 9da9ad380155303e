// Keys with dots, and what is JSON and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/text/test_text.h"

namespace penstock::text {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonLinesTest : public TextTest {
 protected:
  std::vector<std::string> found(const std::string& text) {
    return types("jsonl", folder_.write("t.jsonl", text));
  }
};

TEST_F(JsonLinesTest, ReadsAKeyThatHasADot) {
  EXPECT_THAT(jsonl("{\"a.b\": 1, \"c\": 5}\n{\"a.b\": 2, \"c\": 6}\n"),
              ElementsAre("1.0 | 5.0", "2.0 | 6.0"));
  EXPECT_THAT(jsonl("{\"a..b\": 1, \".\": 2, \"c.\": \"x\"}\n"),
              ElementsAre("1.0 | 2.0 | x"));
  EXPECT_THAT(jsonl("{\"a\": {\"b.c\": 1}, \"a.d\": {\"e\": 2}}\n"
                    "{\"a.d\": {\"e\": 4}, \"a\": {\"b.c\": 3}}\n"),
              ElementsAre("1.0 | 2.0", "3.0 | 4.0"));
}

TEST_F(JsonLinesTest, TakesAKeyWithADotForTheSameColumnAsAnObject) {
  EXPECT_THAT(jsonl("{\"a\": {\"b\": 1}}\n{\"a.b\": 2}\n"),
              ElementsAre("1.0", "2.0"));
  EXPECT_THAT(jsonl("{\"a.b.c\": 1}\n{\"a\": {\"b\": {\"c\": 2}}}\n"
                    "{\"a.b\": {\"c\": 3}}\n{\"a\": {\"b.c\": 4}}\n"),
              ElementsAre("1.0", "2.0", "3.0", "4.0"));
}

TEST_F(JsonLinesTest, NamesAColumnThatALineHoldsInBothWays) {
  EXPECT_THAT(
      jsonl("{\"a\": {\"b\": 1}, \"a.b\": 2}\n{\"a.b\": 3}\n"),
      ElementsAre(AllOf(HasSubstr("appears twice"), HasSubstr("t.jsonl:1:24")),
                  "3.0"));
}

TEST_F(JsonLinesTest, KeepsAKeyWithADotApartFromAnObjectThatStaysJson) {
  const std::string text =
      "{\"a\": {\"b\": 1}, \"a.b\": 2}\n{\"a\": [3], \"a.b\": 4}\n";
  EXPECT_THAT(found(text), ElementsAre("a json", "a.b int64"));
  EXPECT_THAT(jsonl(text), ElementsAre("{\"b\": 1} | 2.0", "[3] | 4.0"));
  EXPECT_THAT(files::shown_rows(
                  files::section_of("jsonl", folder_.path("t.jsonl")), {"a.b"}),
              ElementsAre("2.0", "4.0"));
  EXPECT_THAT(jsonl("{\"a\": 1, \"a.b\": 2}\n{\"a.b\": 3}\n"),
              ElementsAre("1.0 | 2.0", "null | 3.0"));
}

TEST_F(JsonLinesTest, TakesAnObjectWholeWhereTheJobChoosesSo) {
  Json section = files::section_of(
      "jsonl", folder_.write("t.jsonl", "{\"a\": {\"b\": 1}, \"c.d\": 2}\n"));
  section["columns"]["a"] = "json";
  section["columns"]["c.d"] = "float32";
  section["columns"]["e.f"] = "int8";
  EXPECT_THAT(files::shown_rows(section),
              ElementsAre("{\"b\": 1} | 2.0 | null"));
}

TEST_F(JsonLinesTest, ReadsAKeyWithADotThatItHasNotLookedAt) {
  std::string text;
  for (int row = 0; row < 400'000; ++row)
    text += row == 211'111
                ? "{\"a.b\": 7, \"pad\": \"" + std::string(80, 'x') + "\"}\n"
                : "{\"a\": {\"b\": 1}, \"pad\": \"" + std::string(80, 'x') +
                      "\"}\n";
  const std::vector<std::string> rows = files::shown_rows(
      files::section_of("jsonl", folder_.write("t.jsonl", text)), {"a.b"});
  ASSERT_THAT(rows, testing::SizeIs(400'000));
  EXPECT_EQ(rows[211'111], "7.0");
  EXPECT_EQ(rows[211'112], "1.0");
}

TEST_F(JsonLinesTest, RefusesNumbersThatAreNotJson) {
  for (const char* number :
       {"01", "-01", "00", "1.", "-1.", "1.e5", ".5", "-.5", "+1", "-", "1e",
        "1e+", "0x10", "1_000", "1 2", "--1", "1.2.3", "-Infinity", "NaN"}) {
    const std::string bad = "{\"x\": " + std::string(number) + "}\n";
    const auto refused =
        AllOf(HasSubstr("is not JSON"), HasSubstr("t.jsonl:2:"));
    // Among integers, numbers, texts, and where all are so.
    for (const char* good : {"1", "0.5", "\"t\"", "true"})
      EXPECT_THAT(jsonl("{\"x\": " + std::string(good) + "}\n" + bad).back(),
                  refused)
          << number << " after " << good;
  }
  EXPECT_THAT(jsonl("{\"x\": 0}\n{\"x\": -0.5}\n{\"x\": 10}\n{\"x\": 1E+2}\n"),
              ElementsAre("0.0", "-0.5", "10.0", "100.0"));
}

TEST_F(JsonLinesTest, RefusesLinesThatAreNotJson) {
  const char* const lines[] = {"{\"x\": 1,}",
                               "{\"x\": 1,, \"y\": 2}",
                               "{,\"x\": 1}",
                               "{\"x\": 1 \"y\": 2}",
                               "{\"x\" 1}",
                               "{x: 1}",
                               "{'x': 1}",
                               "{\"x\": tru}",
                               "{\"x\": True}",
                               "{\"x\": nul}",
                               "{\"x\": \"\\q\"}",
                               "{\"x\": \"\\u12\"}",
                               "{\"x\": \"a\tb\"}",
                               "{\"x\": \"a}",
                               "{\"x\": [1,]}",
                               "{\"x\": [01]}",
                               "{\"x\": [1 2]}",
                               "{\"x\": [tru]}",
                               "{\"x\": [\"\\q\"]}",
                               "{\"x\": {\"y\": 1.}}",
                               "{\"x\": [{\"y\": 1,}]}",
                               "{\"x\": 1}}",
                               "{\"x\": 1} {}",
                               "{\"x\": [1}"};
  for (const char* line : lines)
    for (const char* good : {"1", "\"t\"", "[1]", "{\"y\": 1}"})
      EXPECT_THAT(
          jsonl("{\"x\": " + std::string(good) + "}\n" + line + "\n").back(),
          AllOf(HasSubstr("is not JSON"), HasSubstr("t.jsonl:2:")))
          << line << " after " << good;
}

TEST_F(JsonLinesTest, ReadsListsAsTheyAreWritten) {
  EXPECT_THAT(
      jsonl("{\"l\": [1, -0.5e-3, \"a\\u00e4\\\"]\", null, {\"b\": []}]}\n"
            "{\"l\": [ ]}\n"),
      ElementsAre("[1, -0.5e-3, \"a\\u00e4\\\"]\", null, {\"b\": []}]", "[ ]"));
}

TEST_F(JsonLinesTest, ReadsNumbersThatAreTooSmallAsZero) {
  EXPECT_THAT(jsonl("{\"p\": 0.5}\n{\"p\": 1e-400}\n{\"p\": -3.2e-330}\n"),
              ElementsAre("0.5", "0.0", "-0.0"));
  EXPECT_THAT(found("{\"p\": 1e-400}\n"), ElementsAre("p float64"));
}

TEST_F(JsonLinesTest, RefusesAKeyThatStandsTwice) {
  EXPECT_THAT(jsonl("{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n"),
              ElementsAre("1.0", HasSubstr("appears twice in its line")));
  EXPECT_THAT(jsonl("{\"a.b\": 1}\n{\"a.b\": 1, \"a.b\": 2}\n"),
              ElementsAre("1.0", HasSubstr("appears twice in its line")));
}

}  // namespace
}  // namespace penstock::text
