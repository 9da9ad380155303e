#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/filler.h"

namespace penstock {
namespace {

StageNames names_for(const char* fields) {
  return stage_names(parse_fields(Json::parse(fields, "test"), "fields"));
}

TEST(StageNames, OfNumbersAreThoseOfAnyTable) {
  const StageNames names = names_for(R"({"x": {"columns": ["a", "b"]}})");
  EXPECT_EQ(names.parse, "parse");
  EXPECT_EQ(names.make, "collate");
  EXPECT_EQ(names.gather, "gather");
}

TEST(StageNames, OfPicturesSayWhetherTheyAreDecodedForEachBatch) {
  StageNames names = names_for(R"({"x": {"image": {"size": 8}}})");
  EXPECT_EQ(names.make, "decode");
  EXPECT_EQ(names.gather, "decode kept rows");
  names = names_for(
      R"({"x": {"image": {"size": 8, "store": {"form": "decoded"}}}})");
  EXPECT_EQ(names.make, "transform");
}

TEST(StageNames, NameTheWorkOfEachFieldOnce) {
  const StageNames names = names_for(R"({
    "a": {"image": {"column": "a", "size": 8}},
    "b": {"image": {"column": "b", "size": 8, "store": {"form": "decoded"}}},
    "c": {"image": {"column": "c", "size": 8}},
    "d": {"columns": ["d"]}})");
  EXPECT_EQ(names.make, "decode and transform");
}

}  // namespace
}  // namespace penstock
