#include "penstock/monitor/look_pace.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

/// Looks at that pace until it is another one.
int looks_at(int periods, LookPace& pace, int working, int waiting) {
  int looks = 0;
  for (; pace.periods() == periods && looks < 1000; ++looks)
    pace.add(working, waiting);
  return looks;
}

TEST(LookPace, IsTheSlowerTheMoreWasSeenWaiting) {
  LookPace pace;
  EXPECT_EQ(looks_at(1, pace, 2, 1), 40);
  EXPECT_EQ(looks_at(4, pace, 2, 2), 160);
  pace.add(1, 1);
  EXPECT_EQ(pace.periods(), 20);
}

TEST(LookPace, IsSlowSoonerWhereNobodyWaits) {
  LookPace pace;
  EXPECT_EQ(looks_at(1, pace, 2, 0), 10);
  EXPECT_EQ(looks_at(10, pace, 2, 0), 40);
  EXPECT_EQ(pace.periods(), 20);
  pace.add(2, 1);
  EXPECT_EQ(looks_at(1, pace, 2, 1), 39) << "often again, from the first on";
}

TEST(LookPace, OnceOneHasWaitedALookThatFindsNoneCountsAsAnyOther) {
  LookPace pace;
  pace.add(1, 1);
  EXPECT_EQ(looks_at(1, pace, 1, 0), 39);
  EXPECT_EQ(looks_at(4, pace, 1, 0), 160);
}

// As in a loop that its GPU limits, whose data set seldom has work.
TEST(LookPace, LooksAtNobodyCountForNothing) {
  LookPace pace;
  for (int look = 0; look < 1000; ++look) {
    pace.add(0, 0);
    EXPECT_EQ(pace.periods(), 1);
  }
  for (int waits = 0; waits < 40; ++waits) {
    EXPECT_EQ(pace.periods(), 1) << waits;
    pace.add(1, 1);
    const int periods = pace.periods();
    for (int look = 0; look < 20; ++look) pace.add(0, 0);
    EXPECT_EQ(pace.periods(), periods);
  }
  EXPECT_EQ(pace.periods(), 4);
}

}  // namespace
}  // namespace penstock
