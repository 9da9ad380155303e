#include "penstock/exec/headcount.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "penstock/exec/stage.h"

namespace penstock {
namespace {

TEST(HeadcountTest, SaysHowManyToStartAndHowManyEnd) {
  Headcount count(2);
  int started = 0;
  auto start = [&](int threads) { return started = threads; };
  EXPECT_FALSE(count.leaves());
  count.set(5, start);
  EXPECT_EQ(started, 3);
  EXPECT_FALSE(count.leaves());
  count.set(3, start);
  EXPECT_EQ(count.wanted(), 3);
  EXPECT_TRUE(count.leaves());
  EXPECT_TRUE(count.leaves());
  EXPECT_FALSE(count.leaves());
}

TEST(HeadcountTest, WhoWouldHaveEndedStaysWhereMoreAreWantedAgain) {
  Headcount count(4);
  int started = 0;
  auto start = [&](int threads) { return started = threads; };
  count.set(1, start);
  EXPECT_TRUE(count.leaves());  // one of three has ended
  count.set(4, start);
  EXPECT_EQ(started, 1);  // the other two stay
  EXPECT_FALSE(count.leaves());
}

TEST(HeadcountTest, CountsThoseThatCouldBeStarted) {
  Headcount count(2);
  count.set(6, [](int) { return 1; });
  EXPECT_EQ(count.wanted(), 3);
  count.set(2, [](int threads) { return threads; });
  EXPECT_TRUE(count.leaves());
  EXPECT_FALSE(count.leaves());
}

TEST(HeadcountTest, AStageHasAsManyThreadsAsWereSetLast) {
  using namespace std::chrono_literals;
  Headcount count(2);
  std::atomic<int> inside{0}, ended{0};
  std::atomic<bool> stop{false};
  Stage stage({.name = "work",
               .workers = 2,
               .body =
                   [&](int) {
                     ++inside;
                     while (!stop && !count.leaves())
                       std::this_thread::sleep_for(100us);
                     --inside;
                   },
               .last = [&] { ++ended; }});
  auto reaches = [&](int threads) {
    auto end = std::chrono::steady_clock::now() + 20s;
    while (inside != threads && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(100us);
    return inside == threads;
  };
  for (int threads : {2, 8, 1, 3, 1, 2}) {
    count.set(threads, [&](int more) { return stage.add(more); });
    EXPECT_TRUE(reaches(threads)) << threads << ", found " << inside;
  }
  EXPECT_EQ(ended, 0);
  stop = true;
  stage.join();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(stage.add(2), 0);  // its output is closed
  EXPECT_EQ(inside, 0);
}

}  // namespace
}  // namespace penstock
