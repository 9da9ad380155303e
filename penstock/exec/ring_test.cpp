#include "penstock/exec/ring.h"

#include <gtest/gtest.h>

#include <memory>

namespace penstock {
namespace {

TEST(Ring, GivesBackInTheOrderOfPushingWhileItGrows) {
  Ring<int> ring;
  int pushed = 0, popped = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < round % 7; ++i) ring.push(pushed++);
    while (ring.size() > 3) EXPECT_EQ(ring.pop(), popped++);
  }
  while (!ring.empty()) EXPECT_EQ(ring.pop(), popped++);
  EXPECT_EQ(popped, pushed);
}

TEST(Ring, KeepsNothingOfWhatWasPopped) {
  Ring<std::shared_ptr<int>> ring;
  auto thing = std::make_shared<int>(1);
  ring.push(thing);
  ring.pop();
  EXPECT_EQ(thing.use_count(), 1);
}

}  // namespace
}  // namespace penstock
