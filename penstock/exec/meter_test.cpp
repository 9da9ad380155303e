#include "penstock/exec/meter.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(StageMeter, WhatWasNeverMeasuredIsUnknown) {
  StageMeter meter("deliver", 1);
  EXPECT_EQ(meter.numbers().blocked_get, std::nullopt);
  EXPECT_EQ(meter.numbers().blocked_put, std::nullopt);
  meter.add_blocked_get(3ns);
  EXPECT_EQ(meter.numbers().blocked_get, 3ns);
  EXPECT_EQ(meter.numbers().blocked_put, std::nullopt);
  meter.add_blocked_put(4ns);
  EXPECT_EQ(meter.numbers().blocked_put, 4ns);
}

TEST(StageMeter, AWaitOfNoTimeWasMeasured) {
  StageMeter meter("deliver", 1);
  meter.add_blocked_get(0ns);
  EXPECT_EQ(meter.numbers().blocked_get, 0ns);
}

TEST(StageMeter, NamesThePoolWhoseThreadsDoIt) {
  EXPECT_EQ(StageMeter("read", 2, "loader").numbers().pool, "loader");
  EXPECT_EQ(StageMeter("read", 2).numbers().pool, "");
}

/// Work on this thread until its CPU clock has gone on by `time`.
void work(Nanoseconds time) {
  for (Nanoseconds end = thread_cpu_time() + time; thread_cpu_time() < end;) {
  }
}

TEST(BusyScope, TellsWorkFromWaiting) {
  StageMeter meter("read", 1);
  {
    BusyScope scope(meter);
    work(2ms);
    std::this_thread::sleep_for(2ms);
  }
  StageNumbers all = meter.numbers();
  EXPECT_GE(all.busy_cpu, 2ms);
  EXPECT_GE(all.busy_wall, all.busy_cpu + 2ms);
}

/// The CPU clock of some scopes stands for that of all.
TEST(BusyScope, EstimatesTheWorkOfManyShortScopes) {
  StageMeter meter("gather", 1);
  Nanoseconds cpu = thread_cpu_time();
  for (int i = 0; i < 50'000; ++i) {
    BusyScope scope(meter);
    work(2us);
  }
  cpu = thread_cpu_time() - cpu;
  EXPECT_GE(meter.numbers().busy_cpu, 0.7 * 50'000 * 2us);
  EXPECT_LE(meter.numbers().busy_cpu, 1.3 * cpu);
}

/// Scopes that take `each`: the share of them that reads the CPU clock, and
/// what those that do stand for, by scope.
std::pair<double, double> sampled(Nanoseconds each) {
  constexpr int kScopes = 100'000;
  StageMeter meter("gather", 1);
  int readings = 0, stand_for = 0;
  for (int i = 0; i < kScopes; ++i) {
    const int weight = meter.cpu_weight();
    readings += weight > 0 ? 1 : 0;
    stand_for += weight;
    meter.add_busy(each, 0ns);
  }
  return {double(readings) / kScopes, double(stand_for) / kScopes};
}

TEST(BusyScope, ReadsTheCpuClockTheSeldomerTheShorterScopesAre) {
  for (auto [each, share] : {std::pair{1us, 1.0 / 128},
                             {4us, 1.0 / 64},
                             {20us, 1.0 / 16},
                             {100us, 1.0 / 4},
                             {200us, 1.0 / 2},
                             {300us, 1.0}}) {
    auto [read, stand_for] = sampled(each);
    EXPECT_NEAR(read, share, 0.01) << each.count();
    EXPECT_NEAR(stand_for, 1, 0.02) << "none is counted twice or left out";
  }
}

TEST(StageMeter, SumsWhatWasSeenOfItsThreads) {
  StageMeter meter("map", 2);
  EXPECT_EQ(meter.numbers().seen.looks, 0);
  meter.add_seen({.running = 3, .in_lock = 2, .looks = 5});
  meter.add_seen({.in_lock = 4, .asleep = 1, .looks = 2});
  const ThreadSightings seen = meter.numbers().seen;
  EXPECT_EQ(seen.running, 3);
  EXPECT_EQ(seen.in_lock, 6);
  EXPECT_EQ(seen.waiting(), 7);
  EXPECT_EQ(seen.total(), 10);
  EXPECT_EQ(seen.looks, 7);
}

TEST(StageMeter, TellsNothingOfItsThreadsWhereOnlyItsFirstScopesWereLookedAt) {
  StageMeter meter("map", 2);
  auto scopes = [&](std::int64_t count, Nanoseconds each) {
    for (std::int64_t i = 0; i < count; ++i) {
      (void)meter.cpu_weight();
      meter.add_busy(each, 0ns);
    }
  };
  scopes(StageMeter::kAllMeasured, 1us);
  meter.add_seen({.in_lock = 40, .looks = 40});
  EXPECT_EQ(meter.numbers().seen.in_lock, 40);
  scopes(StageMeter::kAllMeasured, 1us);
  EXPECT_FALSE(meter.takes_long());
  EXPECT_EQ(meter.numbers().seen.looks, 0);
}

TEST(BusyScope, MeasuresEveryLongScope) {
  StageMeter meter("read", 1);
  for (std::int64_t i = 0; i < 2 * StageMeter::kAllMeasured; ++i) {
    EXPECT_EQ(meter.cpu_weight(), 1);
    meter.add_busy(StageMeter::kLongScope * 2, 0ns);
  }
}

}  // namespace
}  // namespace penstock
