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
  for (int i = 0; i < 5000; ++i) {
    BusyScope scope(meter);
    work(2us);
  }
  cpu = thread_cpu_time() - cpu;
  EXPECT_GE(meter.numbers().busy_cpu, 0.7 * 5000 * 2us);
  EXPECT_LE(meter.numbers().busy_cpu, 1.3 * cpu);
  EXPECT_EQ(meter.cpu_weight() + meter.cpu_weight() + meter.cpu_weight() +
                meter.cpu_weight() + meter.cpu_weight() + meter.cpu_weight() +
                meter.cpu_weight(),
            StageMeter::kSampled);
}

TEST(BusyScope, MeasuresEveryLongScope) {
  StageMeter meter("read", 1);
  for (std::int64_t i = 0; i < 2 * StageMeter::kAllMeasured; ++i) {
    EXPECT_EQ(meter.cpu_weight(), 1);
    meter.add_busy(StageMeter::kShortScope * 2, 0ns);
  }
}

}  // namespace
}  // namespace penstock
