#include "penstock/models/schedule.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

const Schedule kSchedule{.peak = 2, .warmup_steps = 4, .steps = 24};

TEST(Schedule, GoesUpInAStraightLine) {
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 1), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 3), 2.0);
}

TEST(Schedule, GoesDownAlongACosine) {
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 4), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(kSchedule, 14), 1.0);
  for (std::int64_t step = 5; step < 24; ++step)
    EXPECT_LT(learning_rate(kSchedule, step),
              learning_rate(kSchedule, step - 1));
}

TEST(Schedule, EndsAtNearlyNothing) {
  EXPECT_GT(learning_rate(kSchedule, 23), 0);
  EXPECT_LT(learning_rate(kSchedule, 23), 0.02);
  EXPECT_EQ(learning_rate(kSchedule, 24), 0);
  EXPECT_EQ(learning_rate(kSchedule, 1'000'000), 0);
}

TEST(Schedule, MayHaveNoWarmUp) {
  EXPECT_EQ(learning_rate({.peak = 3, .warmup_steps = 0, .steps = 10}, 0), 3);
}

TEST(Schedule, FallsInAStraightLine) {
  Schedule schedule = kSchedule;
  schedule.decay = Learning::Decay::linear;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 9), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 14), 1.0);
  EXPECT_EQ(learning_rate(schedule, 24), 0);
}

TEST(Schedule, StaysAtItsPeak) {
  Schedule schedule = kSchedule;
  schedule.decay = Learning::Decay::constant;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.5);
  EXPECT_EQ(learning_rate(schedule, 4), 2);
  EXPECT_EQ(learning_rate(schedule, 23), 2);
  EXPECT_EQ(learning_rate(schedule, 24), 0);
}

TEST(Schedule, MayBeShorterThanItsWarmUp) {
  Schedule schedule{.peak = 10, .warmup_steps = 100, .steps = 5};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.5);
  EXPECT_EQ(learning_rate(schedule, 5), 0);
}

}  // namespace
}  // namespace penstock
