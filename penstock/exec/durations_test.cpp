#include "penstock/exec/durations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(Durations, AQuantileOfNoneIsUnknown) {
  EXPECT_EQ(Durations().quantile(0.5), std::nullopt);
}

/// The value of which `share` are no larger, of all of them.
double exact_quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  return values[static_cast<std::size_t>(
      std::max(0.0, std::ceil(share * n) - 1))];
}

TEST(Durations, AQuantileIsOffByThreePercentAtMost) {
  for (double mean = 1; mean < 1e11; mean *= 1.037) {
    Durations times;
    for (int i = 0; i < 99; ++i) times.add(Nanoseconds(std::int64_t(mean)));
    times.add(1h);
    const double found = static_cast<double>(times.quantile(0.5)->count());
    EXPECT_NEAR(found, std::floor(mean), 0.032 * mean + 1) << mean;
    EXPECT_EQ(*times.quantile(0.99), *times.quantile(0.5));
  }
}

TEST(Durations, QuantilesAreThoseOfTheTimes) {
  std::vector<std::vector<double>> all(4);
  for (int i = 0; i < 1000; ++i) {
    all[0].push_back(10e6);  // all alike
    all[1].push_back(i % 2 == 0 ? 1e6 : 30e6);
    all[2].push_back(1e6 * std::exp(i % 97 / 20.0));
    all[3].push_back(10e6);
  }
  for (int i = 0; i < 5; ++i) all[3].push_back(1e9);  // 10 ms, and a few of 1 s
  for (const std::vector<double>& values : all) {
    Durations times;
    for (double ns : values) times.add(Nanoseconds(std::int64_t(ns)));
    for (double share : {0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999}) {
      const double exact = exact_quantile(values, share);
      EXPECT_NEAR(double(times.quantile(share)->count()), exact, 0.032 * exact)
          << share;
    }
    EXPECT_EQ(double(times.quantile(1)->count()),
              std::floor(*std::ranges::max_element(values)));
  }
}

TEST(Durations, TheLongestIsExactHoweverLongItIs) {
  Durations times;
  times.add(10ms, 1000);
  EXPECT_EQ(times.quantile(1), 10ms);
  times.add(1'234'567'891ns, 5);
  EXPECT_EQ(times.quantile(1), 1'234'567'891ns);
  times.add(5h);
  EXPECT_EQ(times.quantile(1), 5h);
  EXPECT_GT(*times.quantile(0.999), 1s);
  Durations more;
  more.add(6h);
  times += more;
  EXPECT_EQ(times.quantile(1), 6h);
}

TEST(Durations, NoQuantileIsLongerThanTheLongest) {
  for (std::int64_t ns = 1; ns < 5000; ++ns) {
    Durations times;
    times.add(Nanoseconds(ns), 3);
    EXPECT_LE(*times.quantile(0.5), Nanoseconds(ns));
    EXPECT_TRUE(times.alike());
  }
  Durations times;
  EXPECT_FALSE(times.alike());
  times.add(1ms);
  times.add(2ms);
  EXPECT_FALSE(times.alike());
}

TEST(Durations, NoTimeAndLessCountAsTheShortest) {
  Durations times;
  times.add(0ns);
  times.add(-5ns);
  EXPECT_EQ(times.count(), 2);
  EXPECT_LE(*times.quantile(1), 1ns);
}

TEST(Durations, SumsAreThoseOfAllThatWereAdded) {
  Durations one, other;
  one.add(1us, 3);
  other.add(1ms);
  one += other;
  EXPECT_EQ(one.count(), 4);
  EXPECT_LT(*one.quantile(0.75), 2us);
  EXPECT_GT(*one.quantile(0.76), 800us);
}

TEST(Durations, KnowHowMuchTheyVary) {
  Durations times;
  EXPECT_EQ(times.variation(), 0);
  times.add(5ms, 100);
  EXPECT_EQ(times.variation(), 0);
  times.add(15ms, 100);
  EXPECT_NEAR(times.variation(), 0.5, 0.02);
}

TEST(DurationMeter, CountsWhatAllThreadsAdd) {
  for (int workers : {1, 2, 8}) {
    DurationMeter meter;
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < workers; ++worker)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) meter.add(Nanoseconds(i));
      });
    threads.clear();
    EXPECT_EQ(meter.read().count(), 1000 * workers);
    EXPECT_EQ(meter.read().quantile(1), 999ns);
  }
}

}  // namespace
}  // namespace penstock
