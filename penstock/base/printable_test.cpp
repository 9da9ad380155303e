#include "penstock/base/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr std::pair<std::string_view, std::string_view> kHostile[] = {
    {"\x1b]0;OWNED\x07", "\\u001b]0;OWNED\\u0007"},
    {"\x1b[31mred", "\\u001b[31mred"},
    {"a\rb\tc\bd", "a\\rb\\tc\\bd"},
    {"\x7f", "\\u007f"},
    {"x\xc2\x9b"
     "1;31m",
     "x\\u009b1;31m"},
    {"\xc2\x80\xc2\x9f", "\\u0080\\u009f"},
    {"\xe2\x80\xaa\xe2\x80\xae", "\\u202a\\u202e"},
    {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069"},
    {"\xff\x9b", "\\xff\\x9b"},
    {"\xe2\x80", "\\xe2\\x80"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
};
constexpr std::string_view kHarmless[] = {"",
                                          "größe",
                                          "漢字",
                                          "\xc2\xa0",
                                          "\xe2\x80\xa9 ",
                                          "\\u001b",
                                          "a | b",
                                          "\xf0\x9f\x98\x80",
                                          "\xe2\x81\xaa",
                                          "עברית"};

TEST(Printable, IsWhatATerminalWouldObey) {
  for (auto [text, shown] : kHostile) {
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(printable_lines(text), shown);
    EXPECT_EQ(printable(shown), shown);
    EXPECT_FALSE(is_printable(text)) << shown;
  }
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\u0000b");
}

TEST(Printable, ChangesNothingElse) {
  for (std::string_view text : kHarmless) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
    EXPECT_TRUE(is_printable(text)) << text;
  }
  EXPECT_EQ(printable("a\nb"), "a\\nb");
  EXPECT_EQ(printable_lines("a\nb"), "a\nb");
  EXPECT_TRUE(is_printable("a\nb"));
}

TEST(Printable, IsEveryErrorAndEveryMessageOfTheLog) {
  std::string logged;
  set_log_writer([&](LogLevel, std::string_view text) { logged = text; });
  for (auto [text, shown] : kHostile) {
    const std::string hostile(text);
    const Error error(ErrorKind::source, {.code = "a.code",
                                          .what = hostile,
                                          .where = hostile,
                                          .why = hostile,
                                          .next = hostile});
    for (const std::string& part :
         {std::string(error.what()), error.parts().what, error.parts().where,
          error.parts().why, error.parts().next, error.json()}) {
      EXPECT_TRUE(is_printable(part)) << shown;
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(shown)));
    }
    log(LogLevel::error, hostile);
    EXPECT_EQ(logged, shown);
  }
  set_log_writer({});
}

TEST(Printable, AnErrorOnlyHasLinesWhereItSaysWhy) {
  const Error error(
      ErrorKind::source,
      {.code = "a.code", .what = "a\nb", .where = "c\nd", .why = "e\nf"});
  EXPECT_STREQ(error.what(), "a\\nb at c\\nd: e\nf");
}

}  // namespace
}  // namespace penstock
