#include "penstock/advisor/in_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

/// `quick` batches of a second, then one that takes `slow_s`.
std::vector<double> one_slow(int quick, double slow_s) {
  std::vector<double> batch_s(static_cast<std::size_t>(quick), 1.0);
  batch_s.push_back(slow_s);
  return batch_s;
}

TEST(InOrder, TheSlowerOfWorkersAndLoopDecides) {
  const std::vector<double> batch_s = {0.8};
  for (int workers : {1, 2, 8}) {
    for (bool in_turn : {false, true}) {
      InOrder loop{.batch_s = batch_s,
                   .workers = workers,
                   .depth = 2,
                   .in_turn = in_turn};
      EXPECT_NEAR(seconds_in_order(loop), 0.8 / workers, 0.02);
      loop.loop_s = 1;
      EXPECT_NEAR(seconds_in_order(loop), 1, 1e-9);
    }
  }
}

// While one worker makes the slow batch, the other one makes the three that may
// be on their way.
TEST(InOrder, ASlowBatchHoldsUpThoseBehindIt) {
  const std::vector<double> batch_s = one_slow(49, 100);
  InOrder loop{.batch_s = batch_s, .workers = 2, .depth = 2};
  EXPECT_NEAR(seconds_in_order(loop) * 50, 100 + 46.0 / 2, 3);
  loop.depth = 1000;
  EXPECT_NEAR(seconds_in_order(loop) * 50, 149.0 / 2, 30);
}

TEST(InOrder, WhoTakesTurnsIsBehindAfterASlowBatch) {
  const std::vector<double> batch_s = one_slow(49, 40);
  InOrder loop{.batch_s = batch_s, .workers = 2, .depth = 25, .epoch = 50};
  EXPECT_NEAR(seconds_in_order(loop) * 50, 64.5, 2);
  const std::vector<double> early = {40, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  loop = {.batch_s = early, .workers = 2, .depth = 5, .epoch = 10};
  EXPECT_NEAR(seconds_in_order(loop), 4.0, 1e-9) << "the other one makes all";
  loop.in_turn = true;
  EXPECT_NEAR(seconds_in_order(loop), 4.4, 1e-9) << "four are left to it";
}

// However many workers there are: none makes the slow batch of the next epoch
// ahead.
TEST(InOrder, AnEpochTakesAsLongAsItsSlowestBatch) {
  const std::vector<double> batch_s = one_slow(11, 100);
  for (int workers : {2, 8, 32}) {
    InOrder loop{
        .batch_s = batch_s, .workers = workers, .depth = 2, .epoch = 12};
    EXPECT_GE(seconds_in_order(loop) * 12, 100) << workers;
    EXPECT_LE(seconds_in_order(loop) * 12, 106) << workers;
    loop.epoch = 0;
    EXPECT_LE(seconds_in_order(loop) * 12, workers > 2 ? 90 : 106) << workers;
  }
}

TEST(InOrder, EachEpochWaitsForItsFirstBatch) {
  const std::vector<double> batch_s = {1.0};
  EXPECT_NEAR(seconds_in_order({.batch_s = batch_s,
                                .workers = 10,
                                .depth = 2,
                                .loop_s = 0.5,
                                .epoch = 10}),
              0.6, 1e-9);
}

}  // namespace
}  // namespace penstock
