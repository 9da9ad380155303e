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

/// The clocks of some scopes stand for those of all.
TEST(BusyScope, EstimatesTheWorkOfManyShortScopes) {
  StageMeter meter("gather", 1);
  Nanoseconds cpu = thread_cpu_time();
  for (int i = 0; i < 50'000; ++i) {
    BusyScope scope(meter);
    work(2us);
  }
  cpu = thread_cpu_time() - cpu;
  EXPECT_NEAR(double(meter.numbers().times.count()), 50'000, 2'000);
  EXPECT_GE(meter.numbers().busy_wall, 0.7 * 50'000 * 2us);
  EXPECT_GE(meter.numbers().busy_cpu, 0.7 * 50'000 * 2us);
  EXPECT_LE(meter.numbers().busy_cpu, 1.3 * cpu);
}

/// Of scopes that take `each`: the share of them that reads a clock, and what
/// those that do stand for, by scope.
struct Sampled {
  double read_cpu = 0, read_wall = 0, of_cpu = 0, of_wall = 0;
};

Sampled sampled(Nanoseconds each) {
  constexpr int kScopes = 100'000;
  StageMeter meter("gather", 1);
  Sampled all;
  for (int i = 0; i < kScopes; ++i) {
    const StageMeter::Weight weight = meter.weight();
    EXPECT_TRUE(weight.cpu == 0 || weight.wall > 0);
    all.read_cpu += weight.cpu > 0 ? 1.0 / kScopes : 0;
    all.read_wall += weight.wall > 0 ? 1.0 / kScopes : 0;
    all.of_cpu += 1.0 * weight.cpu / kScopes;
    all.of_wall += 1.0 * weight.wall / kScopes;
    if (weight.wall > 0) meter.add_busy(each, 0ns, weight);
  }
  const StageNumbers numbers = meter.numbers();
  EXPECT_NEAR(seconds(numbers.busy_wall) / (kScopes * seconds(each)), 1, 0.02);
  EXPECT_NEAR(1.0 * double(numbers.times.count()) / kScopes, 1, 0.02);
  return all;
}

TEST(BusyScope, ReadsClocksTheSeldomerTheShorterScopesAre) {
  struct Share {
    Nanoseconds each;
    double cpu, wall;
  };
  for (const Share& share : {Share{1us, 1.0 / 128, 1.0 / 16},
                             {4us, 1.0 / 64, 1.0 / 8},
                             {20us, 1.0 / 16, 1.0 / 2},
                             {100us, 1.0 / 4, 1},
                             {200us, 1.0 / 2, 1},
                             {300us, 1.0, 1}}) {
    const Sampled all = sampled(share.each);
    EXPECT_NEAR(all.read_cpu, share.cpu, 0.01) << share.each.count();
    EXPECT_NEAR(all.read_wall, share.wall, 0.01) << share.each.count();
    EXPECT_NEAR(all.of_cpu, 1, 0.02) << "none is counted twice or left out";
    EXPECT_NEAR(all.of_wall, 1, 0.02);
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
      const StageMeter::Weight weight = meter.weight();
      if (weight.wall > 0) meter.add_busy(each, 0ns, weight);
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
    const StageMeter::Weight weight = meter.weight();
    EXPECT_EQ(weight.cpu, 1);
    EXPECT_EQ(weight.wall, 1);
    meter.add_busy(StageMeter::kLongScope * 2, 0ns);
  }
}

}  // namespace
}  // namespace penstock
