#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"

// What people do to numbers before a model sees them.

namespace penstock {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// 0, 1, 3, NULL and 1000, of which the last is held out.
FieldRun five(const std::string& more) {
  FieldRun run(
      R"({"column": "c", )" + more + "}",
      column_of<double>(ColumnType::float64, {{0}, {1}, {3}, {}, {1000}}));
  run.fit({1, 1, 1, 1, 0});
  return run;
}

std::string refusal(const std::string& more) {
  try {
    five(more);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "accepted";
}

TEST(NumberMaths, ClipsThenTakesTheLogarithm) {
  EXPECT_THAT(five(R"("clip": [0.5, 10], "missing": "zero")").tensor<float>(),
              ElementsAre(0.5f, 1, 3, 0.5f, 10))
      << "a fill is a number as any other";
  EXPECT_THAT(
      five(R"("log1p": true, "missing": "zero")").tensor<float>(),
      ElementsAre(0, FloatEq(std::log1p(1.0f)), FloatEq(std::log1p(3.0f)), 0,
                  FloatEq(std::log1p(1000.0f))));
  EXPECT_THAT(five(R"("clip": [1, 3], "log1p": true, "missing": 2,
                      "dtype": "float64")")
                  .tensor<double>(),
              ElementsAre(DoubleEq(std::log1p(1.0)), DoubleEq(std::log1p(1.0)),
                          DoubleEq(std::log1p(3.0)), DoubleEq(std::log1p(2.0)),
                          DoubleEq(std::log1p(3.0))));
}

TEST(NumberMaths, MinMaxGoesFromZeroToOneOverTheTrainRows) {
  EXPECT_THAT(five(R"("min_max": true, "missing": "mean")").tensor<float>(),
              ElementsAre(0, FloatEq(1 / 3.0f), 1, FloatEq(4 / 9.0f),
                          FloatEq(1000 / 3.0f)));
  FieldRun constant(R"({"column": "c", "min_max": true})",
                    column_of<double>(ColumnType::float64, {{7}, {7}}));
  constant.fit({1, 1});
  EXPECT_THAT(constant.tensor<float>(), ElementsAre(0, 0));
}

TEST(NumberMaths, StatisticsUndoIt) {
  FieldRun run = five(
      R"("log1p": true, "min_max": true, "missing": "median",
         "dtype": "float64")");
  const std::vector<double> tensor = run.tensor<double>();
  const Standardization of = standardizations_from(run.statistics())[0];
  EXPECT_TRUE(of.log1p && of.min_max);
  const double given[] = {0, 1, 3, 1, 1000};
  for (std::size_t i = 0; i < tensor.size(); ++i)
    EXPECT_NEAR(std::expm1(tensor[i] * of.divisor + of.mean), given[i], 1e-9);
}

TEST(NumberMaths, ANumberWithoutALogarithmIsABadRow) {
  FieldRun run(
      R"({"column": "c", "log1p": true, "missing": "nan"})",
      column_of<double>(ColumnType::float64, {{-0.5}, {-1}, {-7}, {kNan}}));
  ASSERT_THAT(run.faults(), SizeIs(2));
  EXPECT_EQ(run.faults()[0].row, 1);
  EXPECT_THAT(run.faults()[0].why, HasSubstr("log1p"));
  FieldRun clipped(R"({"column": "c", "log1p": true, "clip": [0, 9]})",
                   column_of<double>(ColumnType::float64, {{-7}, {8}}));
  EXPECT_THAT(clipped.faults(), IsEmpty());
}

TEST(NumberMaths, SettingsThatMeanNothingAreRefused) {
  for (const char* clip : {"3", "[1]", "[2, 1]", R"(["a", 1])", "[1, 2, 3]"})
    EXPECT_THAT(refusal(R"("clip": )" + std::string(clip)),
                HasSubstr("write the least and the greatest"))
        << clip;
  EXPECT_THAT(refusal(R"("min_max": true, "standardize": true)"),
              HasSubstr("choose one"));
  EXPECT_THAT(refusal(R"("log1p": true, "missing": -1)"),
              HasSubstr("no log1p"));
  for (const char* maths :
       {R"("clip": [0, 1])", R"("log1p": true)", R"("min_max": true)"})
    EXPECT_THAT(refusal(std::string(R"("dtype": "int64", )") + maths),
                HasSubstr("leave it out"));
}

TEST(NumberMaths, HashesSeeTheNumbersOfTheSource) {
  FieldRun plain(R"({"column": "c"})",
                 column_of<double>(ColumnType::float64, {{-1}, {8}}));
  FieldRun clipped(R"({"column": "c", "clip": [0, 1]})",
                   column_of<double>(ColumnType::float64, {{-1}, {8}}));
  EXPECT_EQ(plain.canonical(), clipped.canonical());
}

}  // namespace
}  // namespace penstock
