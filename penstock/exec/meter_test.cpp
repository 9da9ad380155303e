#include "penstock/exec/meter.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace penstock
