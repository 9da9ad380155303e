#include "penstock/device/sim/pending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(Horizon, CoversTheWorkOfAStreamUpToANumber) {
  Horizon horizon;
  EXPECT_FALSE(horizon.covers(0, 1));
  horizon.reach(2, 5);
  horizon.reach(2, 3);
  EXPECT_TRUE(horizon.covers(2, 5));
  EXPECT_FALSE(horizon.covers(2, 6));
  EXPECT_FALSE(horizon.covers(1, 1));
  EXPECT_FALSE(horizon.covers(9, 1));
}

TEST(Horizon, TakesTheFurtherOfTwoWhenMerged) {
  Horizon left, right;
  left.reach(0, 4);
  right.reach(0, 2);
  right.reach(3, 7);
  left.merge(right);
  EXPECT_TRUE(left.covers(0, 4));
  EXPECT_TRUE(left.covers(3, 7));
}

TEST(Extent, OverlapsWhenTheyShareAByte) {
  std::byte bytes[8];
  Extent middle{bytes + 2, 4};
  EXPECT_TRUE(middle.overlaps({bytes, 3}));
  EXPECT_TRUE(middle.overlaps({bytes + 3, 1}));
  EXPECT_FALSE(middle.overlaps({bytes, 2}));
  EXPECT_FALSE(middle.overlaps({bytes + 6, 2}));
}

// Operations that write down their number, each on a byte of its own.
class PendingTest : public testing::Test {
 protected:
  void add(std::size_t stream, std::uint64_t number, std::size_t target) {
    before_[stream].reach(stream, number);
    pending_.add({.stream = stream,
                  .number = number,
                  .after = previous_[stream],
                  .written = {{bytes_ + target, 1}},
                  .effect = [this, number] { done_.push_back(number); }});
    previous_[stream] = before_[stream];
  }
  Pending pending_;
  Horizon before_[2], previous_[2];
  std::byte bytes_[8]{};
  std::vector<std::uint64_t> done_;
};

TEST_F(PendingTest, FinishesWhatComesBeforeInTheOrderOfTheCalls) {
  add(0, 1, 0);
  add(1, 2, 1);
  add(0, 3, 2);
  add(0, 4, 3);
  Horizon horizon;
  horizon.reach(0, 3);
  pending_.finish(horizon);
  EXPECT_THAT(done_, ElementsAre(1, 3));
  EXPECT_EQ(pending_.oldest().number, 2u);
  horizon.reach(1, 2);
  horizon.reach(0, 4);
  pending_.finish(horizon);
  EXPECT_THAT(done_, ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(pending_.size(), 0u);
}

TEST_F(PendingTest, PoisonsATargetOnceTheWorkBeforeItIsDone) {
  add(0, 1, 0);
  EXPECT_EQ(bytes_[0], kPoison);
  bytes_[0] = std::byte{1};
  add(0, 2, 0);
  EXPECT_EQ(bytes_[0], std::byte{1});
  pending_.finish(before_[1]);
  EXPECT_EQ(bytes_[0], std::byte{1});
  Horizon first;
  first.reach(0, 1);
  pending_.finish(first);
  EXPECT_EQ(bytes_[0], kPoison);
}

TEST_F(PendingTest, ForgetsTheWorkThatTouchesFreedMemory) {
  add(0, 1, 0);
  add(0, 2, 5);
  EXPECT_EQ(pending_.forget({bytes_ + 4, 4}), 1u);
  EXPECT_EQ(pending_.forget({bytes_ + 4, 4}), 0u);
  pending_.finish(before_[0]);
  EXPECT_THAT(done_, ElementsAre(1));
}

}  // namespace
}  // namespace penstock
