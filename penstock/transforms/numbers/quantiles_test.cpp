#include "penstock/transforms/numbers/quantiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"
#include "penstock/transforms/numbers/number_map.h"

// Buckets, and places among the rows.

namespace penstock {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Numbers64 = std::vector<std::optional<double>>;

FieldRun run_of(const std::string& more, const Numbers64& numbers,
                std::vector<std::uint8_t> train = {}) {
  FieldRun run(R"({"column": "c", )" + more + "}",
               column_of<double>(ColumnType::float64, numbers));
  run.fit(std::move(train));
  return run;
}

Numbers64 shuffled(std::int64_t count) {
  Numbers64 numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<double>(i * 7919 % count));
  return numbers;
}

std::string refusal(const std::string& more) {
  try {
    run_of(more, {{1}});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "accepted";
}

std::vector<double> list(const FieldRun& run, const char* key) {
  std::vector<double> numbers;
  for (const Json& number : run.statistics().find("c")->find(key)->array())
    numbers.push_back(number.number());
  return numbers;
}

TEST(Bucketize, AnEdgeBeginsTheBucketAboveIt) {
  FieldRun run = run_of(R"("bucketize": [0, 10.5, 100])",
                        {{-3}, {0}, {10.4}, {10.5}, {99}, {100}, {1e9}});
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 1, 1, 2, 2, 3, 3));
  EXPECT_EQ(run.tensors()[0].dtype, Dtype::int64);
  EXPECT_THAT(list(run, "edges"), ElementsAre(0, 10.5, 100));
}

TEST(Bucketize, SoManyBucketsHaveAsManyTrainRowsEach) {
  for (std::int64_t rows : {10, 1000, 5000}) {
    FieldRun run = run_of(R"("bucketize": 5)", shuffled(rows));
    std::vector<std::int64_t> counts(5);
    for (std::int64_t bucket : run.tensor<std::int64_t>())
      ++counts[static_cast<std::size_t>(bucket)];
    EXPECT_THAT(counts, Each(rows / 5));
    EXPECT_THAT(list(run, "edges"), SizeIs(4));
  }
}

TEST(Bucketize, EdgesAreThoseOfTheTrainRows) {
  FieldRun run = run_of(R"("bucketize": 2)", {{1}, {2}, {3}, {4}, {1000}},
                        {1, 1, 1, 1, 0});
  EXPECT_THAT(list(run, "edges"), ElementsAre(2.5));
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 0, 1, 1, 1));
}

TEST(Bucketize, OfManyEqualValuesSomeBucketsAreEmpty) {
  Numbers64 numbers(90, 0.0);
  for (int i = 0; i < 10; ++i) numbers.push_back(5.0 + i);
  FieldRun run = run_of(R"("bucketize": 4)", numbers);
  EXPECT_THAT(list(run, "edges"), ElementsAre(0, 0, 0));
  const std::vector<std::int64_t> buckets = run.tensor<std::int64_t>();
  EXPECT_THAT(buckets, Each(3));
}

TEST(Bucketize, WhatIsMissingHasABucketOrAMask) {
  FieldRun run =
      run_of(R"("bucketize": [2], "missing": "mask")", {{1}, {}, {3}});
  EXPECT_THAT(run.tensor<std::int64_t>(0), ElementsAre(0, 0, 1));
  EXPECT_THAT(run.tensor<float>(1), ElementsAre(1, 0, 1));
  FieldRun filled =
      run_of(R"("bucketize": [2], "missing": "median")", {{1}, {}, {3}});
  EXPECT_THAT(filled.tensor<std::int64_t>(), ElementsAre(0, 1, 1));
}

TEST(Bucketize, MathsComesFirst) {
  FieldRun run =
      run_of(R"("log1p": true, "bucketize": [1, 2])", {{0}, {2}, {10}});
  EXPECT_THAT(run.tensor<std::int64_t>(), ElementsAre(0, 1, 2));
}

TEST(Quantile, AreThePlacesAmongTheTrainRows) {
  FieldRun run =
      run_of(R"("quantile": "uniform", "dtype": "float64")",
             {{10}, {20}, {30}, {25}, {-1}, {99}}, {1, 1, 1, 0, 0, 0});
  EXPECT_THAT(list(run, "quantiles"), SizeIs(1001));
  EXPECT_THAT(list(run, "quantiles")[500], 20);
  EXPECT_THAT(list(run, "quantiles")[250], 15);
  const std::vector<double> places = run.tensor<double>();
  EXPECT_THAT(places[0], 0);
  EXPECT_NEAR(places[1], 0.5, 1e-12);
  EXPECT_THAT(places[2], 1);
  EXPECT_NEAR(places[3], 0.75, 1e-12);
  EXPECT_THAT(places[4], 0) << "below all";
  EXPECT_THAT(places[5], 1) << "above all";
}

TEST(Quantile, AreExactWhateverTheValues) {
  Numbers64 numbers;
  std::vector<double> sorted;
  Random random(1, 2, 3, 4);
  for (int i = 0; i < 5003; ++i) {
    const double value = std::ldexp(random.uniform() - 0.5, i % 40 - 20);
    numbers.push_back(value);
    sorted.push_back(value);
  }
  std::ranges::sort(sorted);
  FieldRun run = run_of(R"("quantile": "uniform")", numbers);
  const std::vector<double> found = list(run, "quantiles");
  for (std::size_t k = 0; k <= 1000; ++k) {
    const double at = static_cast<double>(k) * 5002 / 1000;
    const auto low = static_cast<std::size_t>(at);
    const double low_value = sorted[low],
                 high = sorted[std::min<std::size_t>(low + 1, 5002)];
    EXPECT_NEAR(
        found[k],
        low_value + (high - low_value) * (at - static_cast<double>(low)),
        1e-12 * std::abs(high));
  }
}

TEST(Quantile, OfEqualValuesIsTheMiddleOfTheirPlaces) {
  FieldRun run = run_of(R"("quantile": "uniform", "dtype": "float64")",
                        {{0}, {0}, {0}, {0}, {8}});
  // Three quarters of the way from least to greatest are 0.
  EXPECT_NEAR(run.tensor<double>()[0], 0.375, 1e-12);
  FieldRun constant =
      run_of(R"("quantile": "uniform", "dtype": "float64")", {{7}, {7}});
  EXPECT_THAT(constant.tensor<double>(), ElementsAre(0.5, 0.5));
}

TEST(Quantile, NormalIsThatOfANormalDistribution) {
  FieldRun run =
      run_of(R"("quantile": "normal", "dtype": "float64")", shuffled(10'001));
  std::vector<double> made = run.tensor<double>();
  double sum = 0, squares = 0;
  for (double number : made) {
    sum += number;
    squares += number * number;
  }
  EXPECT_NEAR(sum / 10'001, 0, 1e-3);
  EXPECT_NEAR(squares / 10'001, 1, 5e-3);
  std::ranges::sort(made);
  EXPECT_NEAR(made[0], -5.199337582, 1e-6);
  EXPECT_NEAR(made[8413], 1, 2e-3) << "84.13 % are below one deviation";
  EXPECT_TRUE(
      std::get<bool>(run.statistics().find("c")->find("normal")->value()));
}

TEST(Quantile, TheInverseOfTheNormalDistributionIsExact) {
  for (double at = -5; at <= 5; at += 0.01) {
    const double share = std::erfc(-at / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(normal_quantile(share), at, at > 4 ? 1e-9 : 1e-12) << at;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(Quantile, StatisticsUndoIt) {
  FieldRun run =
      run_of(R"("quantile": "uniform", "dtype": "float64")", shuffled(300));
  const std::vector<double> quantiles = list(run, "quantiles");
  const std::vector<double> places = run.tensor<double>();
  const Numbers64 given = shuffled(300);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double at = places[i] * 1000;
    const auto low = std::min<std::size_t>(static_cast<std::size_t>(at), 999);
    EXPECT_NEAR(quantiles[low] + (quantiles[low + 1] - quantiles[low]) *
                                     (at - static_cast<double>(low)),
                *given[i], 1e-9);
  }
}

TEST(Quantile, SavedStatisticsGiveTheSameNumbers) {
  for (const char* more : {R"("quantile": "normal")", R"("bucketize": 7)",
                           R"("bucketize": [1, 2.5])"}) {
    FieldRun first = run_of(more, shuffled(50));
    FieldRun later(R"({"column": "c", )" + std::string(more) + "}",
                   column_of<double>(ColumnType::float64, shuffled(50)));
    later.encode(Json::parse(first.statistics().dump(), "test"));
    if (std::string(more).find("quantile") != std::string::npos)
      EXPECT_EQ(later.tensor<float>(), first.tensor<float>());
    else
      EXPECT_EQ(later.tensor<std::int64_t>(), first.tensor<std::int64_t>());
  }
}

TEST(Quantile, DamagedStatisticsAreRefused) {
  FieldRun run = run_of(R"("bucketize": 3)", shuffled(9));
  Json saved = run.statistics();
  for (const char* edges : {"3", R"(["a"])", "[2, 1]"}) {
    saved["c"]["edges"] = Json::parse(edges, "test");
    try {
      run.encode(saved);
      ADD_FAILURE() << "accepted " << edges;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("statistics.x.c.edges"));
    }
  }
}

TEST(Quantile, SettingsThatMeanNothingAreRefused) {
  for (const char* edges : {"[]", "[2, 1]", "[1, 1]", R"(["a"])"})
    EXPECT_THAT(refusal(R"("bucketize": )" + std::string(edges)),
                HasSubstr("write ascending edges"))
        << edges;
  EXPECT_THAT(refusal(R"("bucketize": 1)"), HasSubstr("2"));
  EXPECT_THAT(refusal(R"("bucketize": 5, "standardize": true)"),
              HasSubstr("choose one"));
  EXPECT_THAT(refusal(R"("bucketize": 5, "quantile": "normal")"),
              HasSubstr("choose one"));
  EXPECT_THAT(refusal(R"("bucketize": 5, "dtype": "int64")"),
              HasSubstr("buckets are int64"));
  EXPECT_THAT(refusal(R"("bucketize": 5, "missing": "nan")"),
              HasSubstr("no bucket holds NaN"));
  EXPECT_THAT(refusal(R"("quantile": "even")"), HasSubstr("uniform"));
  EXPECT_THAT(refusal(R"("quantile": "uniform", "dtype": "int32")"),
              HasSubstr("leave it out"));
}

}  // namespace
}  // namespace penstock
