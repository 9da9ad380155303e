#include "penstock/sampling/draws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<std::int64_t> drawn(const Draws& draws, std::int64_t count,
                                std::int64_t first = 0, std::int64_t epoch = 0,
                                std::uint64_t seed = 7) {
  std::vector<SampleRange> ranges(static_cast<std::size_t>(count));
  draws.draw(seed, epoch, first, ranges);
  std::vector<std::int64_t> samples;
  for (const SampleRange& range : ranges) samples.push_back(range.sample);
  return samples;
}

std::vector<double> counts(const std::vector<std::int64_t>& samples,
                           std::size_t of) {
  std::vector<double> counts(of);
  for (std::int64_t sample : samples)
    ++counts[static_cast<std::size_t>(sample)];
  return counts;
}

/// How far counts are from what the weights expect, in standard deviations of
/// chi-square; samples that are expected fewer than five times are left out.
double excess(const std::vector<double>& weights,
              const std::vector<double>& counts) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double chi = 0, freedom = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = draws * weights[i] / all;
    if (expected < 5) continue;
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++freedom;
  }
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(Draws, DrawEachSampleInProportionToItsWeight) {
  Random random(1, 2, 3, 4);
  for (std::size_t samples : {2u, 3u, 10u, 1000u}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<double> weights;
      for (std::size_t i = 0; i < samples; ++i)
        weights.push_back(kind == 0   ? 1
                          : kind == 1 ? random.uniform()
                          : kind == 2
                              ? std::exp(6 * random.uniform())
                              : 1e-300 * static_cast<double>(i % 5 + 1));
      const Draws draws(weights);
      EXPECT_EQ(draws.samples(), static_cast<std::int64_t>(samples));
      EXPECT_LT(excess(weights, counts(drawn(draws, 200'000), samples)), 5)
          << samples << " samples, weights of kind " << kind;
    }
  }
}

TEST(Draws, NeverDrawWhatHasNoWeight) {
  std::vector<double> weights(1000);
  for (std::size_t i = 0; i < weights.size(); i += 10) weights[i] = 1e-9;
  weights[500] = 1e9;
  for (std::int64_t sample : drawn(Draws(weights), 100'000))
    EXPECT_EQ(sample % 10, 0);
}

TEST(Draws, OneSampleMayHaveAllTheWeight) {
  EXPECT_THAT(drawn(Draws(std::vector<double>{0, 0, 1e308, 0}), 1000), Each(2));
  EXPECT_THAT(drawn(Draws(std::vector<double>{5e-324}), 10), Each(0));
}

TEST(Draws, AWeightFarBelowTheOthersMayStillBeDrawn) {
  // One of 2^33, which is the least that is not never: about 8 in 2^36 draws
  // are too many to wait for, so that the others are looked at.
  const Draws draws(std::vector<double>{1e-100, 1});
  EXPECT_THAT(drawn(draws, 100'000), Each(1));
}

TEST(Draws, ADrawDependsOnItsPlaceAlone) {
  std::vector<double> weights(777);
  std::iota(weights.begin(), weights.end(), 1);
  const Draws draws(weights);
  const std::vector<std::int64_t> all = drawn(draws, 3000);
  for (std::int64_t first : {0, 1, 255, 256, 257, 2000}) {
    const auto some = drawn(draws, 900, first);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first));
  }
  EXPECT_NE(drawn(draws, 100, 0, 1), drawn(draws, 100, 0, 0));
  EXPECT_NE(drawn(draws, 100, 0, 0, 8), drawn(draws, 100, 0, 0, 7));
}

// Numbers that were looked at once: saved runs go on with them.
TEST(Draws, AreTheSameOnEveryMachine) {
  std::vector<double> weights;
  for (int i = 0; i < 100; ++i) weights.push_back(0.1 * i);
  const Draws draws(weights);
  EXPECT_THAT(drawn(draws, 8),
              testing::ElementsAre(58, 54, 99, 55, 48, 25, 93, 78));
}

TEST(Draws, TellThatProbabilitiesChanged) {
  EXPECT_EQ(Draws(std::vector<double>{1, 2, 3}).digest(),
            Draws(std::vector<double>{2, 4, 6}).digest());
  EXPECT_NE(Draws(std::vector<double>{1, 2, 3}).digest(),
            Draws(std::vector<double>{1, 3, 2}).digest());
}

TEST(Draws, NeedAWeight) {
  for (const std::vector<double>& weights :
       {std::vector<double>{}, std::vector<double>(5)}) {
    try {
      Draws draws(weights);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "sampling.weights");
      EXPECT_THAT(error.what(), HasSubstr("are zero"));
    }
  }
}

TEST(Draws, BalanceGivesEachValueTheSameShare) {
  std::vector<std::uint64_t> values(900, 11);
  values.resize(990, 22);
  values.resize(1000, 33);
  const auto draws = draws_of({.column = "class", .balance = true}, values);
  std::vector<double> of_value(3);
  for (std::int64_t sample : drawn(*draws, 90'000))
    ++of_value[values[static_cast<std::size_t>(sample)] / 11 - 1];
  EXPECT_LT(excess({1, 1, 1}, of_value), 5);
}

TEST(Draws, AnOrderTakesItsSamplesFromThem) {
  Order order{.samples = 50, .seed = 3, .batch_size = 8, .tail = Tail::pad};
  std::vector<double> weights(50, 1);
  weights[49] = 50;
  order.draws = std::make_shared<const Draws>(weights);
  EXPECT_EQ(steps_per_epoch(order), 7);
  std::vector<std::int64_t> all, ranked;
  Plan plan;
  for (std::int64_t step = 0; step < 7; ++step) {
    plan_step(order, {}, {2, step}, plan);
    for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
      EXPECT_EQ(plan.occurrences[i], step * 8 + static_cast<std::int64_t>(i));
      all.push_back(plan.ranges[i].sample);
    }
    for (int rank : {0, 1, 2}) {
      plan_step(order, {.rank = rank, .world = 3}, {2, step}, plan);
      for (const SampleRange& range : plan.ranges)
        ranked.push_back(range.sample);
    }
  }
  EXPECT_EQ(ranked, all);
  EXPECT_EQ(std::ranges::count(all, -1), 6) << "the last batch is padded";
  EXPECT_GT(std::ranges::count(all, 49), 12);
  EXPECT_EQ(sample_at(order, 2, 9), all[9]);
}

}  // namespace
}  // namespace penstock
