#include "penstock/base/shown.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(Shown, SharesHaveAsManyDigitsAsAskedFor) {
  EXPECT_EQ(shown_percent(0.712, 1), "71.2 %");
  EXPECT_EQ(shown_percent(0.716, 0), "72 %");
  EXPECT_EQ(shown_percent(1, 2), "100.00 %");
}

TEST(Shown, CountsAreGroupedAndTheirNounFollowsThem) {
  EXPECT_EQ(shown_count(344), "344");
  EXPECT_EQ(shown_count(336776), "336,776");
  EXPECT_EQ(shown_count(-336776), "-336,776");
  EXPECT_EQ(shown_count(-336), "-336");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(1234567, "row"), "1,234,567 rows");
}

struct Named {
  std::string name;
};

TEST(Shown, ListsAreSeparatedByCommas) {
  const std::vector<std::string> names = {"a", "", "c"};
  EXPECT_EQ(listed(names), "a, , c");
  EXPECT_EQ(quoted_list(names), "'a', '', 'c'");
  EXPECT_EQ(listed(std::vector<std::string>()), "");
  EXPECT_EQ(listed(std::vector<Named>{{"x"}, {"y"}}, &Named::name), "x, y");
  EXPECT_EQ(quoted_list(std::vector<Named>{{"x"}}, &Named::name), "'x'");
}

TEST(Shown, TextsAreWrappedByThePlacesOfTheirCharacters) {
  EXPECT_EQ(places_of("größe █"), 7U);
  EXPECT_EQ(wrapped("größe and more", 12, "-> ", "   "),
            "-> größe and\n   more\n");
  EXPECT_EQ(wrapped("a word-that-is-too-long b", 8, "", ""),
            "a\nword-that-is-too-long\nb\n");
  EXPECT_EQ(wrapped("  two  blanks ", 80, "", ""), "two blanks\n");
  EXPECT_EQ(wrapped("", 80, "  ", ""), "  \n");
}

}  // namespace
}  // namespace penstock
