#include "penstock/device/cuda/time_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

namespace penstock::cuda {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeMap, AfterOneReadingBothClocksGoAtOneRate) {
  TimeMap map;
  map.read(seconds(5), seconds(100));
  EXPECT_EQ(map.host_time(seconds(5)), seconds(100));
  EXPECT_EQ(map.host_time(seconds(7)), seconds(102));
  EXPECT_EQ(map.host_time(seconds(4)), seconds(99));
}

TEST(TimeMap, WithoutAReadingIsAnInternalError) {
  EXPECT_THROW(TimeMap().host_time(seconds(1)), Error);
}

TEST(TimeMap, MakesUpForADifferenceUntilTheNextReading) {
  TimeMap map;
  map.read(seconds(0), seconds(0));
  map.read(seconds(1), seconds(1) + microseconds(50));
  EXPECT_EQ(map.host_time(seconds(1)), seconds(1));
  EXPECT_EQ(map.host_time(seconds(2)), seconds(2) + microseconds(50));
}

TEST(TimeMap, MakesUpForADifferenceOnceThoughNobodyReadsForLong) {
  TimeMap map;
  map.read(seconds(0), seconds(0));
  map.read(seconds(1), seconds(1) + microseconds(50));
  EXPECT_EQ(map.host_time(seconds(61)), seconds(61) + microseconds(50));
}

TEST(TimeMap, FollowsAClockThatDrifts) {
  // The device's clock is 40 millionths fast, and readings are off by up to
  // 20 us, for two hours.
  TimeMap map;
  Random random(1, 0, 0, 0);
  auto device_at = [](Nanoseconds host) {
    return host + Nanoseconds(host.count() / 25'000);
  };
  for (int second = 0; second < 7200; ++second) {
    Nanoseconds host = seconds(second);
    auto noise = Nanoseconds(static_cast<std::int64_t>(random.below(20'000)));
    map.read(device_at(host), host + noise);
    if (second < 10) continue;
    Nanoseconds later = host + milliseconds(700);
    Nanoseconds off = map.host_time(device_at(later)) - later;
    EXPECT_LT(std::chrono::abs(off), microseconds(120)) << second;
  }
}

TEST(TimeMap, NeverChangesTheOrderOfEvents) {
  TimeMap map;
  Random random(2, 0, 0, 0);
  std::vector<Nanoseconds> told;
  for (int second = 0; second < 60; ++second) {
    auto noise = Nanoseconds(static_cast<std::int64_t>(random.below(200'000)));
    map.read(seconds(second), seconds(second) + noise);
  }
  for (int i = 0; i < 60'000; ++i)
    told.push_back(map.host_time(milliseconds(i)));
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST(TimeMap, AnEventKeepsItsTimeWhenTheNextReadingComes) {
  TimeMap map;
  map.read(seconds(0), seconds(0));
  map.read(seconds(1), seconds(1) + microseconds(30));
  Nanoseconds told = map.host_time(milliseconds(1500));
  map.read(seconds(2), seconds(2) - microseconds(90));
  EXPECT_EQ(map.host_time(milliseconds(1500)), told);
}

TEST(TimeMap, RunsFastOrSlowByAThousandthAtMost) {
  TimeMap map;
  map.read(seconds(0), seconds(0));
  map.read(seconds(1), seconds(1) + milliseconds(9));
  EXPECT_EQ(map.host_time(seconds(2)), seconds(2) + milliseconds(1));
}

TEST(TimeMap, JumpsWhenAClockHasStoodStill) {
  TimeMap map;
  map.read(seconds(0), seconds(0));
  map.read(seconds(1), seconds(61));
  EXPECT_EQ(map.host_time(seconds(2)), seconds(62));
}

}  // namespace
}  // namespace penstock::cuda
