#include "penstock/transforms/field_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

/// Of the field `x`.
FieldFacts facts_of(const std::string& section) {
  return parse_fields(Json::parse("{\"x\": " + section + "}", "test"),
                      "fields")[0]
      .kind->facts();
}

TEST(FieldFacts, OfClassesSayWhetherARowHasOneOfThem) {
  const FieldFacts one = facts_of(R"({"category": {"column": "c"}})");
  EXPECT_TRUE(one.one_class());
  EXPECT_TRUE(one.classes->unknown);
  EXPECT_FALSE(one.classes->one_hot);
  const FieldFacts wide = facts_of(
      R"({"category": {"column": "c", "unknown": "error", "one_hot": 3}})");
  EXPECT_TRUE(wide.one_class());
  EXPECT_FALSE(wide.classes->unknown);
  EXPECT_TRUE(wide.classes->one_hot);
  const FieldFacts many =
      facts_of(R"({"multi_hot": {"column": "c", "size": 3}})");
  EXPECT_TRUE(many.classes->many);
  EXPECT_FALSE(many.one_class());
  EXPECT_FALSE(facts_of(R"({"column": "c"})").classes);
}

TEST(FieldFacts, OfNumbersSayWhatTheTensorHolds) {
  const NumberFacts plain = *facts_of(R"({"columns": ["a", "b"],
      "dtype": "float64", "missing": "mask"})")
                                 .numbers;
  EXPECT_THAT(plain.columns, ElementsAre("a", "b"));
  EXPECT_EQ(plain.dtype, Dtype::float64);
  EXPECT_EQ(plain.missing, MissingValue::By::mask);
  EXPECT_FALSE(plain.bucketized);
  EXPECT_FALSE(plain.quantiles);
  EXPECT_TRUE(
      facts_of(R"({"column": "a", "bucketize": 4})").numbers->bucketized);
  EXPECT_TRUE(
      facts_of(R"({"column": "a", "quantile": "normal"})").numbers->quantiles);
}

TEST(FieldFacts, OfTokensSayWhereTheyComeFrom) {
  const FieldFacts ids = facts_of(R"({"tokens": {"column": "ids",
      "labels": "targets", "max_length": 16, "vocab_size": 99}})");
  EXPECT_EQ(ids.tokens->column, "ids");
  EXPECT_FALSE(ids.tokens->tokenized);
  EXPECT_TRUE(ids.tokens->labelled);
  EXPECT_EQ(ids.tokens->max_length, 16);
  EXPECT_EQ(ids.tokens->vocab_size, 99);
  EXPECT_EQ(ids.packing->size, 16);
  EXPECT_TRUE(ids.packing->pads);
  EXPECT_FALSE(
      facts_of(R"({"tokens": {"column": "ids", "pack": "none"}})").packing);
}

TEST(FieldFacts, OfPicturesHaveTheFormThatIsKeptDecoded) {
  const FieldFacts files = facts_of(R"({"image": {"size": 8}})");
  EXPECT_FALSE(files.is_larger);
  EXPECT_EQ(files.costs, "");
  EXPECT_FALSE(files.folder);
  ASSERT_TRUE(files.larger);
  EXPECT_TRUE(files.larger->same_bytes);
  const FieldFacts decoded =
      facts_of("{\"image\": {\"size\": 8, " + files.larger->setting + "}}");
  EXPECT_EQ(files.larger->kind->facts().recipe, decoded.recipe);
  EXPECT_TRUE(decoded.is_larger);
  EXPECT_FALSE(decoded.larger);
  EXPECT_FALSE(facts_of(R"({"image": {"decode": "device"}})").larger);
}

TEST(FieldFacts, OfFastPicturesSayWhatThatCosts) {
  const FieldFacts fast = facts_of(R"({"image": {"parity": "fast"}})");
  EXPECT_THAT(fast.costs, StartsWith("\"parity\": \"fast\": in photo-like"));
  EXPECT_FALSE(fast.larger->same_bytes);
}

TEST(FieldFacts, OfPathsNameTheFolderWhereTheyBegin) {
  const FolderFacts pictures =
      *facts_of(R"({"image": {"folder": "photos"}})").folder;
  EXPECT_EQ(pictures.path, "photos");
  EXPECT_EQ(pictures.setting, "fields.x.image.folder");
  EXPECT_EQ(pictures.source_kind, "images");
  const FolderFacts sounds =
      *facts_of(R"({"audio": {"folder": "clips", "seconds": 1}})").folder;
  EXPECT_EQ(sounds.setting, "fields.x.audio.folder");
  EXPECT_EQ(sounds.source_kind, "audio");
}

}  // namespace
}  // namespace penstock
