#include "penstock/session/difference.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

Json parsed(const std::string& text) { return Json::parse(text, "test"); }

/// "path: found / made", or "none".
std::string difference(const std::string& found, const std::string& made) {
  auto first = first_difference(parsed(found), parsed(made), "top");
  return first ? first->path + ": " + first->found.dump() + " / " +
                     first->made.dump()
               : "none";
}

TEST(Difference, ThereIsNoneBetweenTwoOfOneContent) {
  EXPECT_EQ(difference(R"({"a": [1, {"b": 2}]})", R"({"a":[1,{"b":2}]})"),
            "none");
}

TEST(Difference, NamesTheInnermostMemberThatDiffers) {
  EXPECT_EQ(
      difference(R"({"a": {"x": 1, "y": 2}})", R"({"a": {"x": 1, "y": 3}})"),
      "top.a.y: 2 / 3");
}

TEST(Difference, AListIsShownWhole) {
  EXPECT_EQ(difference(R"({"a": [1, 2]})", R"({"a": [1, 3]})"),
            "top.a: [1, 2] / [1, 3]");
}

TEST(Difference, AMemberThatOneSideLacksIsNullThere) {
  EXPECT_EQ(difference(R"({"a": 1})", R"({"a": 1, "b": 2})"),
            "top.b: null / 2");
  EXPECT_EQ(difference(R"({"a": 1, "b": 2})", R"({"a": 1})"),
            "top.b: 2 / null");
}

TEST(Difference, AnotherOrderShowsTheNames) {
  EXPECT_EQ(difference(R"({"a": 1, "b": 2})", R"({"b": 2, "a": 1})"),
            R"(top: ["a", "b"] / ["b", "a"])");
}

TEST(Difference, AnotherTypeIsADifference) {
  EXPECT_EQ(difference("1", "{}"), "top: 1 / {}");
}

}  // namespace
}  // namespace penstock
