#include "penstock/sampling/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::Le;

using Shares = std::vector<MixtureShare>;

std::vector<MixturePlace> places(const Mixture& mixture, std::int64_t epoch = 0,
                                 bool shuffle = true, std::uint64_t seed = 7) {
  std::vector<MixturePlace> all(
      static_cast<std::size_t>(mixture.epoch_samples()));
  mixture.places(seed, shuffle, epoch, 0, all);
  return all;
}

std::vector<std::int64_t> counts(std::span<const MixturePlace> places,
                                 std::size_t sources) {
  std::vector<std::int64_t> counts(sources);
  for (const MixturePlace& place : places) ++counts[place.source];
  return counts;
}

Order order_of(const Shares& shares, Exhausted exhausted, bool shuffle = true) {
  Order order{.seed = 3, .shuffle = shuffle, .batch_size = 8};
  order.mixture = std::make_shared<const Mixture>(shares, exhausted);
  order.samples = order.mixture->epoch_samples();
  return order;
}

TEST(Mixture, StopsBeforeASourceWouldBeginAgain) {
  const Mixture even(Shares{{100, 1}, {50, 1}}, Exhausted::stop);
  EXPECT_EQ(even.epoch_samples(), 100);
  EXPECT_THAT(even.taken(), ElementsAre(50, 50));
  const Mixture uneven(Shares{{700, 0.7}, {300, 0.3}}, Exhausted::stop);
  EXPECT_EQ(uneven.epoch_samples(), 1000) << "though 0.3 is rounded";
  EXPECT_THAT(uneven.taken(), ElementsAre(700, 300));
  const Mixture three(Shares{{10, 3}, {1000, 1}, {1000, 2}}, Exhausted::stop);
  EXPECT_EQ(three.epoch_samples(), 20);
  EXPECT_THAT(three.taken(), ElementsAre(10, 3, 7)) << "of 10, 3.3 and 6.7";
}

TEST(Mixture, RepeatsUntilEachSourceWasUsedUp) {
  const Mixture even(Shares{{100, 1}, {50, 1}}, Exhausted::repeat);
  EXPECT_EQ(even.epoch_samples(), 200);
  EXPECT_THAT(even.taken(), ElementsAre(100, 100));
  const Mixture thirds(Shares{{10, 1. / 3}, {90, 2. / 3}}, Exhausted::repeat);
  EXPECT_EQ(thirds.epoch_samples(), 135);
  EXPECT_THAT(thirds.taken(), ElementsAre(45, 90));
}

TEST(Mixture, AnEpochHasWhatTheWeightsPromise) {
  for (bool shuffle : {true, false})
    for (Exhausted exhausted : {Exhausted::stop, Exhausted::repeat}) {
      const Mixture mixture(Shares{{977, 5}, {3000, 2.5}, {12'345, 1.1}},
                            exhausted);
      EXPECT_EQ(counts(places(mixture, 4, shuffle), 3), mixture.taken());
      EXPECT_EQ(std::reduce(mixture.taken().begin(), mixture.taken().end()),
                mixture.epoch_samples());
    }
}

TEST(Mixture, SoHasEveryBlockOfIt) {
  const Mixture mixture(Shares{{50'000, 3}, {50'000, 1}}, Exhausted::stop);
  const std::vector<MixturePlace> all = places(mixture);
  for (std::size_t at = 0; at + Mixture::kBlock <= all.size();
       at += Mixture::kBlock) {
    const auto of = counts(std::span(all).subspan(at, Mixture::kBlock), 2);
    EXPECT_NEAR(static_cast<double>(of[0]), 0.75 * Mixture::kBlock, 1);
  }
}

TEST(Mixture, UnshuffledItIsAsEvenAsMayBe) {
  const Mixture mixture(Shares{{9, 3}, {30, 1}}, Exhausted::stop);
  std::vector<std::size_t> sources;
  std::vector<std::int64_t> second;
  for (const MixturePlace& place : places(mixture, 0, false)) {
    sources.push_back(place.source);
    if (place.source == 1) second.push_back(place.at);
  }
  EXPECT_THAT(sources, ElementsAre(0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0));
  EXPECT_THAT(second, ElementsAre(0, 1, 2));
}

TEST(Mixture, APlaceDependsOnItsPositionAlone) {
  const Mixture mixture(Shares{{3000, 2}, {9000, 3}, {500, 0.01}},
                        Exhausted::repeat);
  for (bool shuffle : {true, false}) {
    const std::vector<MixturePlace> all = places(mixture, 2, shuffle);
    for (std::int64_t first : {0, 1, 4095, 4096, 9000}) {
      std::vector<MixturePlace> some(777);
      mixture.places(7, shuffle, 2, first, some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const MixturePlace& same = all[static_cast<std::size_t>(first) + i];
        EXPECT_EQ(some[i].source, same.source);
        EXPECT_EQ(some[i].pass, same.pass);
        EXPECT_EQ(some[i].at, same.at);
      }
    }
  }
}

TEST(Mixture, ASourceIsGoneThroughBeforeItBeginsAgain) {
  const Shares shares{{10, 1}, {7, 1}};
  for (bool shuffle : {true, false}) {
    const Order order = order_of(shares, Exhausted::repeat, shuffle);
    std::vector<std::int64_t> of_second;  // 20 positions take 10 of 7
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (std::int64_t epoch = 0; epoch < 7; ++epoch)
      for (const MixturePlace& place : places(*order.mixture, epoch, shuffle)) {
        EXPECT_TRUE(place.source == 0 ||
                    seen.emplace(place.pass, place.at).second);
      }
    EXPECT_EQ(seen.size(), 70u) << "7 epochs are 10 passes, each whole";
    EXPECT_EQ(std::prev(seen.end())->first, 9);
  }
}

TEST(Mixture, AnOrderGivesEachSampleOnceAPass) {
  for (Pages pages : {Pages{}, Pages{.page = 4, .window = 2}}) {
    Order order = order_of({{40, 1}, {40, 3}}, Exhausted::stop);
    order.pages = pages;
    ASSERT_EQ(order.samples, 53);
    std::vector<int> times(80);
    for (std::int64_t epoch = 0; epoch < 40; ++epoch)
      for (std::int64_t at = 0; at < order.samples; ++at)
        ++times[static_cast<std::size_t>(sample_at(order, epoch, at))];
    for (std::size_t i = 0; i < times.size(); ++i)
      EXPECT_EQ(times[i], i < 40 ? 13 : 40) << i;
  }
}

TEST(Mixture, RanksShareAStep) {
  const Order order = order_of({{40, 1}, {400, 2}}, Exhausted::repeat);
  EXPECT_EQ(order.samples, 600);
  EXPECT_EQ(steps_per_epoch(order), 75);
  Plan plan;
  for (std::int64_t step : {0, 1, 74}) {
    std::vector<SampleRange> whole, ranked;
    std::vector<std::int64_t> occurrences;
    plan_step(order, {}, {1, step}, plan);
    whole = plan.ranges;
    EXPECT_EQ(plan.occurrences[3], 8 * step + 3);
    for (int rank : {0, 1, 2}) {
      plan_step(order, {.rank = rank, .world = 3}, {1, step}, plan);
      ranked.insert(ranked.end(), plan.ranges.begin(), plan.ranges.end());
      occurrences.insert(occurrences.end(), plan.occurrences.begin(),
                         plan.occurrences.end());
    }
    EXPECT_EQ(ranked, whole);
    EXPECT_TRUE(std::ranges::is_sorted(occurrences));
  }
}

TEST(Mixture, EverySampleOfABatchSizeIsSpreadOverRanks) {
  // Two ranks of a batch of two: neither has one of the sources for itself.
  Order order = order_of({{4096, 1}, {4096, 1}}, Exhausted::stop);
  order.batch_size = 2;
  std::int64_t first_of_rank_0 = 0;
  Plan plan;
  for (std::int64_t step = 0; step < 4096; ++step) {
    plan_step(order, {.rank = 0, .world = 2}, {0, step}, plan);
    first_of_rank_0 += plan.ranges[0].sample < 4096 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(first_of_rank_0), 2048, 200);
}

// Numbers that were looked at once: saved runs go on with them.
TEST(Mixture, IsTheSameOnEveryMachine) {
  Order order = order_of({{1000, 0.7}, {50, 0.3}}, Exhausted::repeat);
  std::vector<std::int64_t> samples;
  for (std::int64_t at = 0; at < 10; ++at)
    samples.push_back(sample_at(order, 3, at));
  EXPECT_THAT(samples,
              ElementsAre(687, 987, 1048, 669, 24, 751, 1027, 424, 1021, 162));
}

TEST(Mixture, ManyEpochsDoNotOverflow) {
  const Mixture mixture(Shares{{1'000'000'007, 1e6}, {3, 1e-3}},
                        Exhausted::stop);
  std::vector<MixturePlace> some(100);
  mixture.places(1, true, std::int64_t{1} << 40, 5, some);
  for (const MixturePlace& place : some) {
    EXPECT_GE(place.pass, 0);
    EXPECT_THAT(place.at, Le(mixture.shares()[place.source].samples - 1));
  }
}

TEST(Mixture, AnEpochWithoutAnEndIsRefused) {
  try {
    Mixture(Shares{{std::int64_t{1} << 40, 1e-6}, {3, 1e6}}, Exhausted::repeat);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "sampling.mixture");
  }
}

}  // namespace
}  // namespace penstock
