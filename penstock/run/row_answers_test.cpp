#include "penstock/run/row_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace penstock {
namespace {

TEST(RowAnswers, AnotherRankReadsWhatOneHasWritten) {
  RowAnswers mine{
      .keys = {Json(std::int64_t{7}), Json("größe")},
      .numbers = {0.1, -0.0, std::numeric_limits<double>::infinity(), 1e-310},
      .texts = {"a \"text\"\n", ""},
      .bad = 1,
      .bad_rows = {{.key = Json(std::int64_t{8}),
                    .shown_key = "8",
                    .column = "x",
                    .why = "'a' is not a number"}}};
  const RowAnswers read = row_answers_in(bytes_of(mine));
  EXPECT_EQ(read.keys, mine.keys);
  EXPECT_EQ(read.numbers, mine.numbers);
  EXPECT_TRUE(std::signbit(read.numbers[1]));
  EXPECT_EQ(read.texts, mine.texts);
  EXPECT_EQ(read.bad, 1);
  ASSERT_EQ(read.bad_rows.size(), 1u);
  EXPECT_EQ(read.bad_rows[0].key, Json(std::int64_t{8}));
  EXPECT_EQ(read.bad_rows[0].shown_key, "8");
  EXPECT_EQ(read.bad_rows[0].column, "x");
  EXPECT_EQ(read.bad_rows[0].why, "'a' is not a number");
}

TEST(RowAnswers, ARankWithoutRowsHasAnswersToo) {
  const RowAnswers none = row_answers_in(bytes_of(RowAnswers()));
  EXPECT_EQ(none.rows(), 0);
  EXPECT_TRUE(none.numbers.empty());
}

TEST(RowAnswers, LaterRowsComeBehindEarlierOnes) {
  RowAnswers all{.keys = {Json("a")}, .numbers = {1, 2}, .bad = 1};
  all.append(RowAnswers{.keys = {Json("b")}, .numbers = {3, 4}, .bad = 2});
  EXPECT_EQ(all.keys, (Json::Array{Json("a"), Json("b")}));
  EXPECT_THAT(all.numbers, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(all.bad, 3);
}

TEST(RowAnswers, OtherBytesAreRefused) {
  EXPECT_THROW(row_answers_in("abc"), Error);
  std::string bytes = bytes_of(RowAnswers{.keys = {Json("a")}, .numbers = {1}});
  EXPECT_THROW(row_answers_in(bytes.substr(0, bytes.size() - 1)), Error);
  EXPECT_THROW(row_answers_in(bytes.substr(0, 12)), Error);
}

}  // namespace
}  // namespace penstock
