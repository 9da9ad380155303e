#include "penstock/base/utf8.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Utf8, HasCharactersOfOneToFourBytes) {
  for (const char* text :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "aä€😀b"})
    EXPECT_TRUE(is_utf8(text)) << text;
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, HasNoOverlongFormsSurrogatesOrPieces) {
  for (const char* text :
       {"\x80", "\xff", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3",
        "\xe2\x82", "\xf0\x9f\x98", "a\xe4", "\xe4z", "\xc3\xc3"})
    EXPECT_FALSE(is_utf8(text)) << shown_text(text);
}

TEST(Beginning, IsAShortTextItself) {
  EXPECT_EQ(beginning(""), "");
  EXPECT_EQ(beginning("abc", 3), "abc");
  EXPECT_EQ(beginning(std::string(40, 'x')), std::string(40, 'x'));
}

TEST(Beginning, StandsForTheRestByDots) {
  EXPECT_EQ(beginning("abcd", 3), "abc...");
  EXPECT_EQ(beginning("abcd", 0), "...");
  EXPECT_EQ(beginning(std::string(41, 'x')), std::string(40, 'x') + "...");
}

TEST(Beginning, EndsBetweenTwoCharacters) {
  EXPECT_EQ(beginning("ab😀cd", 5), "ab...");
  EXPECT_EQ(beginning("ab😀cd", 6), "ab😀...");
  EXPECT_EQ(beginning("€€", 5), "€...");
}

TEST(Beginning, KeepsMostOfWhatHasNoCharacters) {
  EXPECT_EQ(beginning("\x80\x80\x80\x80\x80\x80\x80", 6), "\x80\x80\x80...");
}

TEST(ShownText, IsQuotedOrWrittenInDigits) {
  EXPECT_EQ(shown_text("it's"), "text 'it's'");
  EXPECT_EQ(shown_text(std::string(39, 'x') + "ä"),
            "text '" + std::string(39, 'x') + "...'");
  EXPECT_EQ(shown_text("a\xff"), "text x'61ff', which is not UTF-8");
  std::string bytes(20, '\xee'), digits;
  for (int i = 0; i < 20; ++i) digits += "ee";
  EXPECT_EQ(shown_text(bytes), "text x'" + digits + "', which is not UTF-8");
  EXPECT_EQ(shown_text(bytes + "a"),
            "text x'" + digits + "...', which is not UTF-8");
}

}  // namespace
}  // namespace penstock
