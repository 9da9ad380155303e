#include "penstock/exec/durations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(Durations, AQuantileOfNoneIsUnknown) {
  EXPECT_EQ(Durations().quantile(0.5), std::nullopt);
}

TEST(Durations, AQuantileIsRightToWithinATenth) {
  for (double mean = 1; mean < 1e11; mean *= 1.37) {
    Durations times;
    for (int i = 0; i < 99; ++i) times.add(Nanoseconds(std::int64_t(mean)));
    times.add(1h);
    const double found = static_cast<double>(times.quantile(0.5)->count());
    EXPECT_NEAR(found, std::floor(mean), 0.125 * mean + 1) << mean;
    EXPECT_EQ(*times.quantile(0.99), *times.quantile(0.5));
    EXPECT_GT(*times.quantile(1), 800s) << "as long as can be told";
  }
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
  EXPECT_NEAR(times.variation(), 0.5, 0.06);
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
  }
}

}  // namespace
}  // namespace penstock
