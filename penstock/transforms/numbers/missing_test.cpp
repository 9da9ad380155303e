#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string section(const std::string& missing, const std::string& more = "") {
  return R"({"column": "c", "missing": )" + missing + more + "}";
}

/// 1, NULL, NaN, 2 and 6, of which the last is held out.
FieldRun five(const std::string& missing, const std::string& more = "") {
  FieldRun run(
      section(missing, more),
      column_of<double>(ColumnType::float64, {{1}, {}, {kNan}, {2}, {6}}));
  run.fit({1, 1, 1, 1, 0});
  return run;
}

TEST(Missing, WithoutASettingSuchARowIsBad) {
  FieldRun run(R"({"column": "c"})",
               column_of<double>(ColumnType::float64, {{1}, {}, {kNan}}));
  ASSERT_THAT(run.faults(), SizeIs(2));
  EXPECT_THAT(run.faults()[0].why, HasSubstr("is NULL"));
  EXPECT_THAT(run.faults()[1].why, HasSubstr("holds NaN"));
}

TEST(Missing, IsFilledFromTheTrainRowsOrByANumber) {
  EXPECT_THAT(five(R"("mean")").tensor<float>(),
              ElementsAre(1, 1.5f, 1.5f, 2, 6));
  EXPECT_THAT(five(R"("median")").tensor<float>(),
              ElementsAre(1, 1.5f, 1.5f, 2, 6));
  EXPECT_THAT(five(R"("zero")").tensor<float>(), ElementsAre(1, 0, 0, 2, 6));
  EXPECT_THAT(five("-7.5").tensor<float>(), ElementsAre(1, -7.5f, -7.5f, 2, 6));
  EXPECT_THAT(five(R"("mean")").faults(), IsEmpty());
}

TEST(Missing, StaysNanWhereThatIsAsked) {
  std::vector<float> filled = five(R"("nan")").tensor<float>();
  EXPECT_TRUE(std::isnan(filled[1]) && std::isnan(filled[2]));
  EXPECT_EQ(filled[3], 2);
  std::vector<double> wide =
      five(R"("nan")", R"(, "dtype": "float64")").tensor<double>();
  EXPECT_TRUE(std::isnan(wide[1]));
}

TEST(Missing, AMaskSaysWhatIsPresent) {
  FieldRun run = five(R"("mask")");
  EXPECT_THAT(run.tensor<float>(0), ElementsAre(1, 0, 0, 2, 6));
  EXPECT_EQ(run.tensors()[1].name, "x_mask");
  EXPECT_THAT(run.tensor<float>(1), ElementsAre(1, 0, 0, 1, 1));
}

TEST(Missing, IsFilledBeforeStandardising) {
  const std::string standard = R"(, "standardize": true)";  // (v - 1.5) / 0.5
  EXPECT_THAT(five(R"("mean")", standard).tensor<float>(),
              ElementsAre(-1, 0, 0, 1, 9));
  EXPECT_THAT(five(R"("zero")", standard).tensor<float>(),
              ElementsAre(-1, -3, -3, 1, 9));
  EXPECT_THAT(five("2", standard).tensor<float>(), ElementsAre(-1, 1, 1, 1, 9));
  EXPECT_THAT(five(R"("mask")", standard).tensor<float>(),
              ElementsAre(-1, 0, 0, 1, 9));
  EXPECT_TRUE(std::isnan(five(R"("nan")", standard).tensor<float>()[1]));
}

TEST(Missing, CountsAndFillsAreInTheStatistics) {
  FieldRun run = five(R"("median")");
  const Json& c = *run.statistics().find("c");
  EXPECT_EQ(c.find("missing")->integer(), 2);
  EXPECT_EQ(c.find("count")->integer(), 2);
  EXPECT_EQ(c.find("fill")->number(), 1.5);
  FieldRun later(section(R"("median")"),
                 column_of<double>(ColumnType::float64, {{}, {9}}));
  later.encode(Json::parse(run.statistics().dump(), "test"));
  EXPECT_THAT(later.tensor<float>(), ElementsAre(1.5f, 9));
}

TEST(Missing, TheMedianIsThatOfTheSortedTrainRows) {
  std::vector<std::optional<double>> numbers;
  std::vector<double> sorted;
  for (int i = 0; i < 4001; ++i) {
    const double value = std::sin(i) * std::pow(10, i % 30 - 15);
    numbers.push_back(value);
    sorted.push_back(value);
    auto median = [&] {
      std::vector<double> all = sorted;
      std::ranges::sort(all);
      return std::midpoint(all[(all.size() - 1) / 2], all[all.size() / 2]);
    };
    if (i != 0 && i != 1 && i != 2 && i < 3999) continue;
    numbers.push_back(std::nullopt);
    FieldRun run(section(R"("median")", R"(, "dtype": "float64")"),
                 column_of<double>(ColumnType::float64, numbers));
    run.fit();
    EXPECT_EQ(run.tensor<double>().back(), median()) << i;
    numbers.pop_back();
  }
}

TEST(Missing, AColumnWithoutAnyValueToLearnFromIsAnError) {
  for (const char* settings : {R"("missing": "mean")", R"("missing": "median")",
                               R"("missing": "mask", "standardize": true)",
                               R"("missing": "zero", "min_max": true)",
                               R"("missing": "nan", "quantile": "uniform")"}) {
    FieldRun run(R"({"columns": ["c"], )" + std::string(settings) + "}",
                 column_of<double>(ColumnType::float64, {{}, {3}}));
    try {
      run.fit({1, 0});
      ADD_FAILURE() << settings;
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "transform.nothing_to_fit") << settings;
      EXPECT_THAT(error.what(), HasSubstr("column 'c'")) << settings;
    }
  }
}

TEST(Missing, IntegersKeepTheirBits) {
  const std::int64_t large = 9007199254740993;
  auto column = [&] {
    return column_of<std::int64_t>(ColumnType::int64, {{large}, {}});
  };
  const std::string exact = R"(, "dtype": "int64")";
  FieldRun filled(section("-2", exact), column());
  filled.fit();
  EXPECT_THAT(filled.tensor<std::int64_t>(), ElementsAre(large, -2));
  FieldRun masked(section(R"("mask")", exact), column());
  masked.fit();
  EXPECT_THAT(masked.tensor<std::int64_t>(0), ElementsAre(large, 0));
  EXPECT_THAT(masked.tensor<float>(1), ElementsAre(1, 0));
  EXPECT_NE(masked.canonical()[1],
            FieldRun(section(R"("mask")", exact),
                     column_of<std::int64_t>(ColumnType::int64, {{0}}))
                .canonical()[0])
      << "a missing one is not a 0";
}

TEST(Missing, HashesAreTheSameWhateverTheWidth) {
  auto hashed = [](Column column) {
    return FieldRun(section(R"("mask")"), std::move(column)).canonical();
  };
  EXPECT_EQ(hashed(column_of<double>(ColumnType::float64, {{1}, {}, {kNan}})),
            hashed(column_of<std::int16_t>(ColumnType::number(Dtype::int16),
                                           {{std::int16_t{1}}, {}, {}})));
}

TEST(Missing, AnInfinityIsBadAllTheSame) {
  FieldRun run(section(R"("mean")"),
               column_of<double>(ColumnType::float64,
                                 {{std::numeric_limits<double>::infinity()}}));
  ASSERT_THAT(run.faults(), SizeIs(1));
  EXPECT_THAT(run.faults()[0].why, HasSubstr("infinity"));
}

TEST(Missing, AnInfinityStaysWhereNanDoesAndNothingIsComputed) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto with_infinities = [&](const std::string& more) {
    return FieldRun(
        section(R"("nan")", more),
        column_of<double>(ColumnType::float64, {{kInf}, {}, {-kInf}, {2}}));
  };
  FieldRun run = with_infinities("");
  run.fit({1, 1, 1, 1});
  EXPECT_THAT(run.faults(), IsEmpty());
  EXPECT_THAT(run.tensor<float>(),
              ElementsAre(kInf, testing::IsNan(), -kInf, 2));
  for (const char* computed :
       {R"("standardize": true)", R"("min_max": true)", R"("clip": [0, 1])",
        R"("log1p": true)", R"("quantile": "uniform")"})
    EXPECT_THAT(with_infinities(std::string(", ") + computed).faults(),
                SizeIs(2))
        << computed;
}

TEST(Missing, SettingsThatCannotBeAreRefused) {
  auto refused = [](const std::string& missing, const std::string& more = "") {
    try {
      FieldRun(section(missing, more),
               column_of<double>(ColumnType::float64, {{1}}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  const std::string exact = R"(, "dtype": "int64")";
  EXPECT_THAT(refused(R"("average")"), HasSubstr("\"median\""));
  EXPECT_THAT(refused("true"), HasSubstr("fields.x.missing"));
  for (const char* missing : {R"("mean")", R"("median")", R"("nan")", "0.5"})
    EXPECT_THAT(refused(missing, exact), HasSubstr("dtype is \"int64\""));
}

TEST(Missing, NarrowIntegersHoldWhatFitsAndNameWhatDoesNot) {
  auto column = [] {
    return column_of<std::int64_t>(ColumnType::int64, {{127}, {-128}});
  };
  FieldRun fits(R"({"column": "c", "dtype": "int8"})", column());
  fits.fit();
  EXPECT_THAT(fits.tensor<std::int8_t>(), ElementsAre(127, -128));
  for (const char* dtype : {"uint8", "bool", "uint16", "uint32"}) {
    FieldRun negative(
        R"({"column": "c", "dtype": ")" + std::string(dtype) + "\"}", column());
    negative.fit();
    ASSERT_FALSE(negative.faults().empty()) << dtype;
    EXPECT_THAT(negative.faults().back().why, HasSubstr("found -128"));
    EXPECT_THAT(negative.faults().back().what, HasSubstr(dtype));
  }
}

TEST(Missing, WideIntegersHoldAllOfUint64AndNothingBelowZero) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::string wide = R"({"column": "c", "dtype": "uint64")";
  auto column = [&] {
    return column_of<std::uint64_t>(ColumnType::number(Dtype::uint64),
                                    {{kMost}, {}, {(1ULL << 53) + 1}});
  };
  FieldRun masked(wide + R"(, "missing": "mask"})", column());
  masked.fit();
  EXPECT_THAT(masked.tensor<std::uint64_t>(),
              ElementsAre(kMost, 0U, (1ULL << 53) + 1));
  EXPECT_THAT(masked.tensor<float>(1), ElementsAre(1, 0, 1));
  EXPECT_THAT(FieldRun(wide + "}", column()).faults(), SizeIs(1)) << "NULL";
  FieldRun negative(wide + "}",
                    column_of<std::int64_t>(ColumnType::int64, {{5}, {-128}}));
  negative.fit();
  ASSERT_THAT(negative.faults(), SizeIs(1));
  EXPECT_THAT(negative.faults()[0].why, HasSubstr("found -128"));
  for (const char* other : {"1.5", "-1"})
    EXPECT_THROW(FieldRun(wide + R"(, "missing": )" + other + "}", column()),
                 Error);
  EXPECT_THROW(
      FieldRun(wide + "}", column_of<double>(ColumnType::float64, {{1}})),
      Error);
}

TEST(Missing, ASingleColumnHasNoDimensionOfItsOwn) {
  FieldRun one(R"({"column": "c"})",
               column_of<double>(ColumnType::float64, {{1}, {2}}));
  one.fit();
  EXPECT_THAT(one.tensors()[0].row_shape, IsEmpty());
  EXPECT_THAT(one.tensor<float>(), ElementsAre(1, 2));
  std::vector<Column> columns;
  for (double first : {1, 3})
    columns.push_back(
        column_of<double>(ColumnType::float64, {{first}, {first + 1}}));
  FieldRun two(R"({"columns": ["a", "b"]})", std::move(columns));
  two.fit();
  EXPECT_THAT(two.tensors()[0].row_shape, ElementsAre(2));
  EXPECT_THAT(two.tensor<float>(), ElementsAre(1, 3, 2, 4));
}

}  // namespace
}  // namespace penstock
