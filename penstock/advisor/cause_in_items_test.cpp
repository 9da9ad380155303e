#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// 100 batches of 10 items of 20 ms that are made on a processor for
/// `computes` of that.
FetchWindow window(int workers, double computes) {
  FetchWindow window;
  window.batches = 100;
  window.items = 1000;
  window.wait_s = 20.0 / std::max(1, workers);
  window.loop_s = 1;
  window.cpu_s = 1;
  window.workers = workers;
  window.cpus = 8;
  window.transfer = FetchWindow::Transfer{};
  if (workers > 0) {
    window.worker_items = 1000;
    window.worker_s = 20;
    window.worker_cpu_s = 20 * computes;
  }
  FetchWindow::Making making;
  making.item_s = 20;
  making.item_cpu_s = 20 * computes;
  making.collate_s = 0.1;
  making.collate_cpu_s = 0.1;
  making.seconds.assign(1000, 0.02);
  making.seen.looks = 100;
  window.making = making;
  return window;
}

TEST(CauseInItems, IsUnknownWhereItemsWereNotTimed) {
  FetchWindow unknown = window(2, 1);
  unknown.making.reset();
  EXPECT_EQ(cause_in_items(unknown), std::nullopt);
  EXPECT_EQ(diagnose(unknown).stage, "");
  unknown.making = FetchWindow::Making{};
  EXPECT_EQ(cause_in_items(unknown), std::nullopt) << "nothing was made";
  EXPECT_EQ(cause_in_items(FetchWindow()), std::nullopt);
}

TEST(CauseInItems, NamesItemsThatCompute) {
  for (int workers : {0, 1, 2, 8}) {
    Verdict verdict = diagnose(window(workers, 0.95));
    EXPECT_EQ(verdict.limit, Limit::data);
    EXPECT_EQ(verdict.stage, "__getitem__");
    EXPECT_THAT(verdict.cause,
                HasSubstr("__getitem__ takes 20.00 ms, of which it computes "
                          "for 95 %"));
  }
}

TEST(CauseInItems, NamesOtherWorkThatHasTheProcessors) {
  FetchWindow crowded = window(0, 0.2);
  crowded.making->seen.running = 95;
  crowded.making->seen.other = 5;
  EXPECT_THAT(diagnose(crowded).cause,
              AllOf(HasSubstr("it computes for 20 %"),
                    HasSubstr("waits for a processor")));
  crowded.making->seen.running = 30;
  crowded.making->seen.asleep = 70;
  EXPECT_THAT(diagnose(crowded).cause, HasSubstr("mostly sleeps"));
}

TEST(CauseInItems, ItemsThatComputeAndAreStoppedNowAndThenCompute) {
  FetchWindow stopped = window(0, 0.65);
  stopped.making->seen.running = 100;
  EXPECT_THAT(diagnose(stopped).cause, HasSubstr("waits for something"));
  stopped.making->cpu_share = 0.7;
  EXPECT_THAT(diagnose(stopped).cause, HasSubstr("it computes for 65 %"));
}

TEST(CauseInItems, ItemsThatLackAProcessorAreNotSingleSlowOnes) {
  FetchWindow crowded = window(0, 0.12);
  crowded.making->seconds.assign(58, 0.025);
  crowded.making->seconds.resize(60, 0.6);
  crowded.making->seen.running = 100;
  EXPECT_THAT(diagnose(crowded).cause, HasSubstr("waits for a processor"));
  crowded.making->seen.running = 40;
  crowded.making->seen.asleep = 60;
  EXPECT_THAT(diagnose(crowded).cause, HasSubstr("one item in 30"));
}

TEST(CauseInItems, NamesWhatItemsWaitFor) {
  struct Case {
    std::int64_t ThreadSightings::*seen;
    const char* cause;
  };
  for (const Case& one : {Case{&ThreadSightings::in_lock, "a lock"},
                          Case{&ThreadSightings::in_own_lock,
                               "another thread of its own process"},
                          Case{&ThreadSightings::in_network, "the network"},
                          Case{&ThreadSightings::in_file, "storage"},
                          Case{&ThreadSightings::asleep, "mostly sleeps"}}) {
    FetchWindow waits = window(2, 0.05);
    waits.making->seen.running = 100;
    waits.making->seen.*one.seen = 80;
    waits.making->seen.other = 20;
    EXPECT_THAT(cause_in_items(waits)->cause, HasSubstr(one.cause));
  }
}

TEST(CauseInItems, ALockThatOneOfTwoWorkersHoldsIsALock) {
  FetchWindow waits = window(2, 0.02);
  waits.making->seen.in_lock = 50;
  waits.making->seen.asleep = 50;
  Verdict verdict = diagnose(waits);
  EXPECT_THAT(verdict.cause, HasSubstr("waits for a lock"));
}

TEST(CauseInItems, ALockOfOneProcessIsNoneThatWorkersShare) {
  FetchWindow waits = window(2, 0.02);
  waits.making->seen = {.in_own_lock = 90, .looks = 90};
  EXPECT_FALSE(waits_in_lock(waits));
  waits.making->seen = {.in_lock = 90, .looks = 90};
  EXPECT_TRUE(waits_in_lock(waits));
}

TEST(CauseInItems, DoesNotGuessFromAFewLooks) {
  FetchWindow waits = window(2, 0.05);
  waits.making->seen.in_lock = 90;
  waits.making->seen.looks = 9;
  EXPECT_THAT(cause_in_items(waits)->cause,
              HasSubstr("on a processor for 5 % of that"));
}

TEST(CauseInItems, NamesAFatCollate) {
  FetchWindow fat = window(2, 0.9);
  fat.making->collate_s = 21;
  fat.making->collate_cpu_s = 21;
  Verdict verdict = diagnose(fat);
  EXPECT_EQ(verdict.stage, "collate_fn");
  EXPECT_THAT(verdict.cause,
              HasSubstr("collate_fn takes 210.00 ms of the 410.00 ms"));
  fat.making->collate_s = 19;
  EXPECT_EQ(diagnose(fat).stage, "__getitem__");
}

TEST(CauseInItems, NamesSingleItemsThatHoldUpTheOthers) {
  FetchWindow slow = window(2, 0.05);
  slow.making->seconds.assign(995, 0.002);
  for (int i = 0; i < 5; ++i) slow.making->seconds.push_back(0.8);
  slow.making->slowest = "dataset[199]";
  slow.making->slowest_s = 0.8;
  Verdict verdict = diagnose(slow);
  EXPECT_EQ(verdict.limit, Limit::order);
  EXPECT_THAT(verdict.cause,
              AllOf(HasSubstr("one item in 200"), HasSubstr("dataset[199]"),
                    HasSubstr("800 ms")));
  // Beside items of microseconds, of which many take ten times as long.
  FetchWindow quick = slow;
  quick.making->seconds.assign(890, 5e-6);
  quick.making->seconds.resize(990, 1e-4);
  quick.making->seconds.resize(1000, 0.8);
  verdict = diagnose(quick);
  EXPECT_EQ(verdict.limit, Limit::order);
  EXPECT_THAT(verdict.cause, HasSubstr("one item in 100 takes more than ten "
                                       "times the median of 0.005 ms"));
  slow.workers = 0;
  EXPECT_EQ(cause_in_items(slow)->limit, Limit::data)
      << "one after the other no order is waited for";
  slow.making->seconds.assign(900, 0.002);
  slow.making->seconds.resize(1000, 0.8);
  EXPECT_EQ(cause_in_items(slow)->cause.find("one item in"), std::string::npos)
      << "a tenth of them are not single ones";
}

TEST(CauseInItems, IsNoneWhereTheLoopIsTheLimit) {
  FetchWindow fast = window(2, 0.9);
  fast.wait_s = 0.01;
  EXPECT_EQ(diagnose(fast).limit, Limit::compute);
  EXPECT_EQ(diagnose(fast).stage, "");
}

}  // namespace
}  // namespace penstock
