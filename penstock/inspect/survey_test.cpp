#include "penstock/inspect/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "penstock/inspect/peek.h"
#include "penstock/sources/fake/fake_source.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(DistinctValues, AreCountedExactlyWhereTheyAreFew) {
  DistinctValues values;
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t i = 0; i < 1000; ++i) values.add(mix64(i + 1));
  EXPECT_TRUE(values.exact());
  EXPECT_EQ(values.count(), 1000);
}

TEST(DistinctValues, AreEstimatedWhereTheyAreMany) {
  for (std::uint64_t many : {5'000u, 300'000u}) {
    DistinctValues values, even, odd;
    for (std::uint64_t i = 0; i < many; ++i) {
      values.add(mix64(i + 1));
      (i % 2 == 0 ? even : odd).add(mix64(i + 1));
    }
    EXPECT_FALSE(values.exact());
    EXPECT_NEAR(static_cast<double>(values.count()), static_cast<double>(many),
                0.15 * static_cast<double>(many));
    even.add(odd);
    EXPECT_EQ(even.count(), values.count()) << "together as alone";
  }
}

/// Row i holds i, i / 2 or NULL, one of three words, and nothing.
class SurveyorTest : public testing::Test {
 protected:
  SurveyorTest() {
    table_.schema.columns = {
        {.name = "id", .declared = "int64", .primary_key = true},
        {.name = "half", .declared = "float64"},
        {.name = "word", .declared = "text"},
        {.name = "none", .declared = "float64"}};
    for (std::int64_t i = 0; i < 6000; ++i)
      table_.rows.push_back(
          {i, i % 3 == 0 ? FakeCell() : FakeCell(static_cast<double>(i) / 2),
           std::string(i % 10 == 0  ? "zebra"
                       : i % 2 == 0 ? "bee"
                                    : "ant"),
           FakeCell()});
  }

  /// By so many surveyors, each of every n-th block, put together.
  Json columns(std::size_t surveyors) {
    FakeSource source(table_, surveyed_columns(table_.schema));
    std::vector<Surveyor> all(surveyors, Surveyor(table_.schema, source));
    std::size_t next = 0;
    for (const Partition& part : source.partitions(4))
      source.open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
        all[next++ % surveyors].add(block);
        return true;
      });
    for (std::size_t i = 1; i < surveyors; ++i) all[0].add(all[i]);
    EXPECT_EQ(all[0].survey().rows, std::ssize(table_.rows));
    Json columns(Json::Array{});
    for (const ColumnSurvey& column : all[0].survey().columns)
      columns.push_back(column_json(column, all[0].survey().rows));
    return columns;
  }

  FakeTable table_;
};

TEST_F(SurveyorTest, TellsWhatAColumnHolds) {
  for (std::size_t surveyors : {1u, 3u}) {
    const Json found = columns(surveyors);
    const Json& id = found.array()[0];
    EXPECT_EQ(*id.find("nulls"), Json(0));
    EXPECT_EQ(*id.find("min"), Json(0));
    EXPECT_EQ(*id.find("max"), Json(5999));
    EXPECT_EQ(*id.find("distinct_exact"), Json(false));
    EXPECT_NEAR(static_cast<double>(id.find("distinct")->integer()), 6000, 900);
    const Json& half = found.array()[1];
    EXPECT_EQ(*half.find("nulls"), Json(2000));
    EXPECT_EQ(*half.find("max"), Json(2999.5));
    std::int64_t sampled = 0;
    for (const Json& rows : half.find("histogram")->array()) {
      EXPECT_NEAR(static_cast<double>(rows.integer()), 128, 60);
      sampled += rows.integer();
    }
    EXPECT_EQ(sampled, 1024);
    const Json& word = found.array()[2];
    EXPECT_EQ(*word.find("min"), Json("ant"));
    EXPECT_EQ(*word.find("max"), Json("zebra"));
    EXPECT_EQ(*word.find("distinct"), Json(3));
    EXPECT_EQ(word.find("top")->dump(), R"([{"value": "ant", "rows": 3000}, )"
                                        R"({"value": "bee", "rows": 2400}, )"
                                        R"({"value": "zebra", "rows": 600}])");
    const Json& none = found.array()[3];
    EXPECT_EQ(*none.find("nulls"), Json(6000));
    EXPECT_EQ(*none.find("min"), Json());
    EXPECT_EQ(*none.find("distinct"), Json(0));
  }
}

TEST_F(SurveyorTest, ANumberThatComesAsTextIsReadAsANumber) {
  table_.schema.columns[1].declared = "decimal";
  EXPECT_EQ(*columns(1).array()[1].find("max"), Json()) << "as a text";
  table_.schema.columns[1].as = ReadAs::number;
  EXPECT_EQ(*columns(1).array()[1].find("max"), Json(2999.5));
}

TEST_F(SurveyorTest, AGuessOfDifferentValuesIsNeverMoreThanThereAre) {
  const std::vector<std::vector<FakeCell>> all = table_.rows;
  for (std::size_t rows = 1100; rows < all.size(); rows += 700) {
    table_.rows.assign(all.begin(),
                       all.begin() + static_cast<std::ptrdiff_t>(rows));
    const Json found = columns(1);
    for (std::size_t column : {0u, 1u}) {
      const Json& one = found.array()[column];
      EXPECT_LE(one.find("distinct")->integer(),
                static_cast<std::int64_t>(rows) - one.find("nulls")->integer());
    }
  }
}

TEST_F(SurveyorTest, LargeIntegersAreNotRounded) {
  const std::int64_t large = std::int64_t{1} << 53;
  for (std::size_t i = 0; i < table_.rows.size(); ++i)
    table_.rows[i][0] = i % 2 == 0 ? large : large + 1;
  table_.rows[7][0] = INT64_MAX;
  const Json id = columns(2).array()[0];
  EXPECT_EQ(*id.find("distinct"), Json(3));
  EXPECT_EQ(*id.find("min"), Json(large));
  EXPECT_EQ(*id.find("max"), Json(INT64_MAX));
}

}  // namespace
}  // namespace penstock
