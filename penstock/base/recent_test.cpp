#include "penstock/base/recent.h"

#include <gtest/gtest.h>

#include <latch>
#include <new>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST(Recent, KeepsAnAnswerForAMomentAndEachQuestionApart) {
  Recent<int> recent;
  int asked = 0;
  auto answer = [&] { return ++asked; };
  const auto began = std::chrono::steady_clock::now();
  const int first = recent.get("cpu", answer);
  const int again = recent.get("cpu", answer);
  if (std::chrono::steady_clock::now() - began < 100ms) {
    EXPECT_EQ(again, first);
  }
  EXPECT_NE(recent.get("memory", answer), first);
  std::this_thread::sleep_for(101ms);
  EXPECT_NE(recent.get("cpu", answer), first);
}

TEST(Recent, AsksAgainWhereTheAnswerWasAnException) {
  Recent<int> recent;
  EXPECT_THROW(recent.get("cpu", []() -> int { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_EQ(recent.get("cpu", [] { return 3; }), 3);
}

// As in a process that was forked while it was held.
TEST(Recent, AThreadThatAsksWhileAnotherFindsWaitsForNobody) {
  Recent<int> recent;
  std::latch begun(1), answered(1);
  std::jthread first([&] {
    EXPECT_EQ(recent.get("cpu",
                         [&] {
                           begun.count_down();
                           answered.wait();
                           return 7;
                         }),
              7);
  });
  begun.wait();
  EXPECT_EQ(recent.get("cpu", [] { return 8; }), 8);
  answered.count_down();
}

}  // namespace
}  // namespace penstock
