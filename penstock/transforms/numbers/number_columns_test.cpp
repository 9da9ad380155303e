// What is done column by column is what is done row by row, unchanged where
// numbers may be missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "penstock/base/half.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

template <class Number>
Column numbers(Dtype dtype) {
  using Limits = std::numeric_limits<Number>;
  std::vector<std::optional<Number>> values = {Number{0}, Number{1}};
  if constexpr (std::is_floating_point_v<Number>)
    for (double value : {-0.0, 0.1, -1234.5, 16777217.0, 1e-42, 3e38})
      values.push_back(static_cast<Number>(value));
  else
    for (Number value : {Limits::max(), Limits::min(), Number{7},
                         static_cast<Number>(Limits::max() / 3), Number{100},
                         static_cast<Number>(Limits::min() / 3)})
      values.push_back(value);
  return column_of<Number>(ColumnType::number(dtype), values);
}

std::vector<Column> of_all_widths() {
  std::vector<Column> all;
  all.push_back(numbers<double>(Dtype::float64));
  all.push_back(numbers<float>(Dtype::float32));
  all.push_back(numbers<std::int8_t>(Dtype::int8));
  all.push_back(numbers<std::int16_t>(Dtype::int16));
  all.push_back(numbers<std::int32_t>(Dtype::int32));
  all.push_back(numbers<std::int64_t>(Dtype::int64));
  all.push_back(numbers<std::uint8_t>(Dtype::uint8));
  all.push_back(numbers<std::uint16_t>(Dtype::uint16));
  all.push_back(numbers<std::uint32_t>(Dtype::uint32));
  all.push_back(numbers<std::uint64_t>(Dtype::uint64));
  return all;
}

FieldRun run(const std::string& more) {
  FieldRun run(R"({"columns": ["a", "b", "c", "d", "e", "f", "g", "h", "i",
                              "j"])" +
                   more + "}",
               of_all_widths());
  run.fit();
  return run;
}

TEST(NumberColumns, AreWhatRowsAre) {
  for (const char* more :
       {"", R"(, "dtype": "float64")", R"(, "standardize": true)",
        R"(, "min_max": true, "dtype": "float64")"}) {
    const FieldRun columns = run(more),
                   rows = run(std::string(more) + R"(, "missing": "mask")");
    EXPECT_EQ(columns.canonical(), rows.canonical());
    const bool wide = std::string(more).find("float64") != std::string::npos;
    if (wide)
      EXPECT_EQ(columns.tensor<double>(), rows.tensor<double>(0)) << more;
    else
      EXPECT_EQ(columns.tensor<float>(), rows.tensor<float>(0)) << more;
    EXPECT_EQ(columns.statistics().dump(), rows.statistics().dump());
  }
}

TEST(NumberColumns, HaveNoNegativeZero) {
  FieldRun run(R"({"column": "c", "dtype": "float64"})",
               column_of<double>(ColumnType::float64, {{-0.0}, {-1e-320}}));
  run.fit();
  EXPECT_FALSE(std::signbit(run.tensor<double>()[0]));
  FieldRun narrow(R"({"column": "c"})",
                  column_of<double>(ColumnType::float64, {{-1e-320}}));
  narrow.fit();
  EXPECT_FALSE(std::signbit(narrow.tensor<float>()[0]));
}

TEST(NumberColumns, NameTheRowsThatAreNotFinite) {
  FieldRun run(R"({"column": "c"})",
               column_of<float>(ColumnType::number(Dtype::float32),
                                {{1.0f},
                                 {std::numeric_limits<float>::infinity()},
                                 {2.0f},
                                 {std::numeric_limits<float>::quiet_NaN()}}));
  ASSERT_THAT(run.faults(), SizeIs(2));
  EXPECT_EQ(run.faults()[0].row, 1);
  EXPECT_THAT(run.faults()[0].why, HasSubstr("infinity"));
  EXPECT_EQ(run.faults()[1].row, 3);
  EXPECT_THAT(run.faults()[1].why, HasSubstr("NaN"));
}

TEST(NumberColumns, CountTheTrainRowsWhereNothingIsFitted) {
  FieldRun run(R"({"column": "c"})",
               column_of<double>(ColumnType::float64, {{1}, {2}, {3}}));
  run.fit({1, 0, 1});
  const Json& c = *run.statistics().find("c");
  EXPECT_EQ(c.find("count")->integer(), 2);
  EXPECT_EQ(c.find("missing")->integer(), 0);
  EXPECT_EQ(c.find("mean")->number(), 0);
  EXPECT_EQ(c.find("divisor")->number(), 1);
}

TEST(NumberColumns, BecomeHalvesWhereThatIsAsked) {
  FieldRun run(
      R"({"column": "c", "dtype": "float16", "missing": "nan"})",
      column_of<double>(ColumnType::float64, {{1.5}, {-65504}, {}, {1e-8}}));
  run.fit();
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::float16);
  const std::vector<std::uint16_t> halves = run.tensor<std::uint16_t>();
  EXPECT_EQ(from_float16(halves[0]), 1.5F);
  EXPECT_EQ(from_float16(halves[1]), -65504.0F);
  EXPECT_TRUE(std::isnan(from_float16(halves[2])));
  EXPECT_EQ(halves[3], 0);
  FieldRun large(R"({"column": "c", "dtype": "float16"})",
                 column_of<double>(ColumnType::float64, {{65519}, {65520}}));
  large.fit();
  ASSERT_EQ(large.faults().size(), 1u);
  EXPECT_EQ(large.faults()[0].row, 1);
  EXPECT_THAT(large.faults()[0].what, testing::HasSubstr("float16"));
}

}  // namespace
}  // namespace penstock
