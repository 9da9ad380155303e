#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// 100 batches of 10 items; the workers had never a result when the loop asked.
FetchWindow window(double wait_s, double loop_s, double worker_s, int workers,
                   int cpus = 4) {
  FetchWindow window{.batches = 100, .items = 1000};
  window.first_batch_s = 0.1;
  window.wait_s = wait_s;
  window.blocked_s = wait_s;
  window.loop_s = loop_s;
  window.workers = workers;
  if (workers > 0) window.worker_items = 1000;
  window.worker_s = worker_s;
  window.cpus = cpus;
  window.transfer = FetchWindow::Transfer{};
  return window;
}

/// "1 to 4, 3.00": what is offered, "none" where nothing is.
std::string offered(const FetchWindow& window) {
  Verdict verdict = diagnose(window);
  if (verdict.actions.empty()) return "none";
  const Action& action = verdict.actions.front();
  EXPECT_EQ(action.knob, "num_workers");
  char gain[32];
  std::snprintf(gain, sizeof(gain), ", %.2f", action.predicted_gain);
  return action.from.dump() + " to " + action.to.dump() + gain;
}

TEST(FetchingTest, SaysNothingOfAFewBatches) {
  FetchWindow few = window(9, 1, 10, 1);
  few.batches = 7;
  EXPECT_EQ(limit_of(few), Limit::unknown);
  EXPECT_THAT(diagnose(few).because, HasSubstr("there were 7 batches, and 8"));
  EXPECT_EQ(diagnose(window(0, 0, 0, 0)).limit, Limit::unknown);
}

TEST(FetchingTest, ALoopThatWaitsForATenthOfItsTimeIsLimitedByData) {
  EXPECT_EQ(limit_of(window(1.1, 8.9, 10, 1)), Limit::data);
  Verdict verdict = diagnose(window(0.9, 9.1, 9, 1));
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_THAT(verdict.cause, HasSubstr("the input keeps up"));
  EXPECT_THAT(verdict.no_action, HasSubstr("would be 9.9% faster"));
  EXPECT_TRUE(waits_for_batches(1.1, 8.9));
  EXPECT_FALSE(waits_for_batches(0.9, 9.1));
}

TEST(FetchingTest, ALoopWithoutWorkersIsNotToldToSetThem) {
  FetchWindow generator = window(6, 4, 0, 0);
  generator.has_workers = false;
  generator.transfer.reset();
  Verdict verdict = diagnose(generator);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.no_action, HasSubstr("up to 150 % faster"));
  EXPECT_THAT(verdict.no_action, HasSubstr("penstock.DataLoader"));
  FetchWindow busy = window(0.1, 4, 0, 0);
  busy.has_workers = false;
  EXPECT_EQ(diagnose(busy).cause, "the input keeps up");
}

TEST(FetchingTest, PinnedMemoryIsOfferedWithWhatItSparesOfAStep) {
  FetchWindow copied = window(0, 5.94, 1, 1);  // 60 ms a step
  copied.copies = {.pageable_s = 0.012, .pinned_s = 0.002};
  Verdict verdict = diagnose(copied);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "pin_memory");
  EXPECT_EQ(verdict.actions[0].to, Json(true));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.2, 1e-9);
  EXPECT_EQ(verdict.no_action, "");
}

TEST(FetchingTest,
     PinnedMemoryIsNotOfferedWhereItSparesLittleOrBatchesAreLate) {
  using Copies = FetchWindow::Copies;
  for (Copies cost : {Copies{0.0012, 0.0002}, Copies{0.002, 0.003}}) {
    FetchWindow copied = window(0, 5.94, 1, 1);
    copied.copies = cost;
    EXPECT_TRUE(diagnose(copied).actions.empty());
  }
  FetchWindow late = window(4, 6, 10, 4);
  const Verdict before = diagnose(late);
  late.copies = Copies{0.020, 0.002};
  EXPECT_EQ(diagnose(late).json().dump(), before.json().dump());
}

TEST(FetchingTest, WhatACrowdedMachineTakesIsNotTheInputsFault) {
  FetchWindow crowded = window(1.5, 8.5, 2, 1);
  EXPECT_EQ(limit_of(crowded), Limit::data) << "nobody else has processors";
  crowded.cpu_share = 0.5;
  Verdict verdict = diagnose(crowded);
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.cause, HasSubstr("made 4.2 times as fast"));
  EXPECT_THAT(verdict.cause, HasSubstr("other programs use the processors"));
  crowded.worker_s = 8;
  EXPECT_EQ(limit_of(crowded), Limit::data) << "the workers are no faster";
  crowded = window(5, 5, 2, 1);
  crowded.cpu_share = 0.5;
  EXPECT_EQ(limit_of(crowded), Limit::data) << "that is no small matter";
}

TEST(FetchingTest, TheGainIsBoundedByTheLoopAndTheWorkers) {
  EXPECT_EQ(offered(window(1, 9, 10, 1)), "1 to 2, 0.11");
  EXPECT_EQ(offered(window(9, 1, 10, 1)), "1 to 4, 3.00");
  EXPECT_EQ(offered(window(9, 1, 10, 1, 2)), "1 to 2, 1.00");
}

TEST(FetchingTest, WorkersTakeTheItemsOffTheLoop) {
  EXPECT_EQ(offered(window(5, 5, 0, 0)), "0 to 1, 1.00");
  EXPECT_EQ(offered(window(9, 3, 0, 0)), "0 to 3, 3.00");
}

TEST(FetchingTest, MovingBatchesEatsTheGain) {
  FetchWindow moved = window(5, 5, 0, 0);
  moved.transfer = FetchWindow::Transfer{0.05, 0.07, ""};
  Verdict verdict = diagnose(moved);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.no_action, HasSubstr("-17 %"));
  EXPECT_THAT(verdict.because,
              HasSubstr("50.00 ms of a worker and 70.00 ms of the loop"));
}

TEST(FetchingTest, WhatWasNotOrCannotBeMovedIsNotAdvised) {
  FetchWindow unknown = window(5, 5, 0, 0);
  unknown.transfer.reset();
  EXPECT_THAT(diagnose(unknown).no_action, HasSubstr("not been measured yet"));
  unknown.transfer = FetchWindow::Transfer{0, 0, "a lock"};
  EXPECT_THAT(diagnose(unknown).no_action, HasSubstr("(a lock)"));
}

TEST(FetchingTest, WhatTheLoopSpendsOnReceivingNoWorkerTakesOff) {
  FetchWindow receives = window(5, 5, 9, 1);
  receives.blocked_s = 1;
  EXPECT_EQ(offered(receives), "none");
  EXPECT_THAT(diagnose(receives).no_action, HasSubstr("4.00 s on receiving"));
}

// A DataLoader of torch that is watched does not tell whether a batch was
// there.
TEST(FetchingTest, WithoutKnowingWhatBlockedTheMovingIsAsMeasured) {
  FetchWindow watched = window(9, 1, 10, 1);
  watched.blocked_s.reset();
  EXPECT_EQ(offered(watched), "1 to 4, 3.00");
  watched.transfer = FetchWindow::Transfer{.worker_s = 0, .loop_s = 0.04};
  EXPECT_EQ(offered(watched), "1 to 2, 1.00") << "5 of 10 s are receiving";
  watched.transfer.reset();
  EXPECT_EQ(offered(watched), "1 to 4, 3.00");
}

TEST(FetchingTest, ItemsThatWaitCanHaveMoreWorkersThanThereAreProcessors) {
  FetchWindow waits = window(9, 1, 10, 1, 2);
  EXPECT_EQ(offered(waits), "1 to 2, 1.00");
  waits.making = FetchWindow::Making{.item_s = 10, .item_cpu_s = 0.5};
  EXPECT_EQ(offered(waits), "1 to 10, 8.98");
  EXPECT_THAT(diagnose(waits).actions[0].cost,
              HasSubstr("9 more workers, which mostly wait"));
  waits.making->item_cpu_s = 6;
  EXPECT_EQ(offered(waits), "1 to 2, 1.00") << "they compute";
  waits.making->item_cpu_s = 0.5;
  waits.making->seen = {.in_lock = 90, .looks = 100};
  EXPECT_EQ(offered(waits), "1 to 2, 1.00") << "they wait for one lock";
}

TEST(FetchingTest, WorkersThatWereSeenWaitingCanBeMoreThanProcessors) {
  using Looked = FetchWindow::Looked;
  FetchWindow waits = window(9.9, 0.1, 10, 1, 2);
  EXPECT_EQ(offered(waits), "1 to 2, 1.00") << "nobody looked";
  waits.looked = Looked{.seconds = 5, .ran_s = 0.1};
  EXPECT_EQ(offered(waits), "1 to 32, 30.94");
  EXPECT_THAT(diagnose(waits).because,
              HasSubstr("needed a processor for 2% of the time"));
  EXPECT_THAT(diagnose(waits).actions[0].cost,
              HasSubstr("what they wait for cannot serve as many at once"));
  waits.cpu_share = 0.6;
  EXPECT_THAT(diagnose(waits).because, Not(HasSubstr("other work")))
      << "who computes nothing shows how soon it is woken";
  waits.cpu_share = 1;
  waits.looked->queued_s = 3;
  EXPECT_EQ(offered(waits), "1 to 2, 1.00") << "they wait for a processor";
  waits.looked->queued_s = 0;
  waits.worker_cpu_s = 9;
  EXPECT_EQ(offered(waits), "1 to 2, 1.00") << "their other threads compute";

  FetchWindow inline_items = window(9.9, 0.1, 0, 0, 2);
  inline_items.looked = Looked{.seconds = 5, .ran_s = 0.1};
  EXPECT_EQ(offered(inline_items), "0 to 32, 31.26");
}

TEST(FetchingTest, TheyShareTheProcessorsThatTheyNeed) {
  FetchWindow waits = window(9.9, 0.1, 10, 1, 2);
  waits.worker_cpu_s = 2;
  waits.looked = FetchWindow::Looked{.seconds = 10, .ran_s = 2};
  const Verdict verdict = diagnose(waits);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].to, Json(10)) << "of 0.2 processors each";
  EXPECT_GT(verdict.actions[0].predicted_gain, 6);
  EXPECT_LT(verdict.actions[0].predicted_gain, 8);
}

TEST(FetchingTest, ThreadsThatComputeMayDoSoOneAtATime) {
  FetchWindow waits = window(9.9, 0.1, 10, 1, 2);
  waits.looked = FetchWindow::Looked{.seconds = 10, .ran_s = 2};
  EXPECT_EQ(diagnose(waits).actions.at(0).to, Json(10));
  waits.threads = true;
  EXPECT_EQ(diagnose(waits).actions.at(0).to, Json(5));
  EXPECT_LT(diagnose(waits).actions.at(0).predicted_gain, 3.1);
}

TEST(FetchingTest, WorkersThatWaitForOneLockGetNoMoreOfThem) {
  FetchWindow locked = window(9, 1, 10, 2, 4);
  locked.looked = FetchWindow::Looked{.seconds = 5, .looks = 9, .in_lock = 9};
  EXPECT_EQ(offered(locked), "2 to 10, 4.00") << "nine looks say little";
  locked.looked->looks = 20;
  Verdict verdict = diagnose(locked);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.cause, HasSubstr("wait for a lock that another worker"));
  EXPECT_THAT(verdict.no_action, HasSubstr("wait for the same lock"));
  locked.workers = 1;
  EXPECT_NE(offered(locked), "none") << "no other worker can hold it";
}

TEST(FetchingTest, WorkersOfAnIterableDataSetMustShareIt) {
  FetchWindow stream = window(9, 1, 10, 1);
  stream.iterable = true;
  stream.making = FetchWindow::Making{.item_s = 10, .item_cpu_s = 10};
  const Verdict verdict = diagnose(stream);
  EXPECT_EQ(verdict.stage, "__iter__");
  EXPECT_THAT(verdict.cause, HasSubstr("__iter__ takes 10.00 ms"));
  EXPECT_THAT(verdict.actions.at(0).cost, HasSubstr("get_worker_info()"));
}

TEST(FetchingTest, ProcessorsThatAreBusyGiveNothing) {
  FetchWindow busy = window(5, 5, 0, 0, 2);
  busy.cpu_s = 10;
  busy.cpu_share = 0.5;
  Verdict verdict = diagnose(busy);
  EXPECT_THAT(verdict.no_action, HasSubstr("processors are fully used"));
  EXPECT_THAT(verdict.because, HasSubstr("a processor for 50% of"));
  EXPECT_THAT(diagnose(window(9, 1, 10, 4)).no_action,
              HasSubstr("there are no processors for more workers"));
}

TEST(FetchingTest, MoreBatchesAheadAreOfferedAgainstBursts) {
  FetchWindow bursts = window(2, 5, 5, 1);
  bursts.prefetch = 2;
  Verdict verdict = diagnose(bursts);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "prefetch_factor");
  EXPECT_EQ(verdict.actions[0].from, Json(2));
  EXPECT_EQ(verdict.actions[0].to, Json(4));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.4, 1e-9);
}

// Its worker makes a batch in a twentieth of a step.
TEST(FetchingTest, BatchesThatAreMadeInTimeAreNotMadeEarlier) {
  FetchWindow device = window(0.6, 9.4, 0.5, 1);
  device.prefetch = 2;
  Verdict verdict = diagnose(device);
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.no_action, HasSubstr("the loop would be 6.4% faster"));

  FetchWindow quick = window(2, 8, 0.5, 1);
  quick.prefetch = 2;
  verdict = diagnose(quick);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.actions, IsEmpty());
  quick.making = FetchWindow::Making{.item_s = 0.1, .collate_s = 0.4};
  verdict = diagnose(quick);
  EXPECT_EQ(verdict.stage, "");
  EXPECT_THAT(verdict.cause,
              HasSubstr("16 times as fast as the loop takes them, "
                        "and the loop waits for their transfer"));
  EXPECT_THAT(verdict.no_action, HasSubstr("make items smaller"));
}

/// Two workers of items of `quick_s` that sleep, and that many epochs of
/// `batches` batches of `size`; in each of these that `slow` names one item
/// takes `slow_s`. The loop works for `loop_s` on each batch.
struct SlowItems {
  int epochs;
  int batches;
  int size;
  double quick_s;
  double slow_s;
  std::vector<int> slow;  ///< batches of all epochs
  double loop_s;

  FetchWindow window() const {
    FetchWindow::Making making;
    making.seconds.assign(std::size_t(epochs * batches * size), quick_s);
    making.batch_seconds.assign(std::size_t(epochs * batches), size * quick_s);
    for (int batch : slow) {
      making.seconds[std::size_t(batch * size)] = slow_s;
      making.batch_seconds[std::size_t(batch)] += slow_s - quick_s;
    }
    making.slowest = "dataset[50]";
    making.slowest_s = slow_s;
    for (double one : making.seconds) making.item_s += one;
    making.item_cpu_s = 0.01 * making.item_s;
    FetchWindow window{.batches = epochs * batches,
                       .items = epochs * batches * size};
    window.loop_s = loop_s * double(window.batches);
    window.wait_s = making.item_s * 0.8;
    window.workers = 2;
    window.prefetch = 2;
    window.epoch_batches = batches;
    window.worker_items = window.items;
    window.worker_s = making.item_s;
    window.cpus = 2;
    window.making = making;
    return window;
  }
};

TEST(FetchingTest, NobodyMakesAnEpochFasterThanItsSlowestItem) {
  FetchWindow one = SlowItems{.epochs = 3,
                              .batches = 12,
                              .size = 8,
                              .quick_s = 0.0021,
                              .slow_s = 2,
                              .slow = {5, 12, 31},
                              .loop_s = 0.002}
                        .window();
  const Verdict verdict = diagnose(one);
  for (const Action& action : verdict.actions)
    EXPECT_LT(action.predicted_gain, 0.06) << action.knob;
  EXPECT_EQ(verdict.limit, Limit::order);
  EXPECT_THAT(verdict.cause + verdict.no_action,
              HasSubstr("examine that item; a larger prefetch_factor"));
  one.making->batch_seconds.clear();
  EXPECT_GT(diagnose(one).actions.at(0).predicted_gain, 1)
      << "by means it would be";
}

/// What `knob` is predicted to gain; 0 where it is not offered.
double gain_of(const Verdict& verdict, std::string_view knob) {
  for (const Action& action : verdict.actions)
    if (action.knob == knob) return action.predicted_gain;
  return 0;
}

TEST(FetchingTest, SlowItemsFarApartAreWaitedForOneByOne) {
  FetchWindow some = SlowItems{.epochs = 2,
                               .batches = 100,
                               .size = 4,
                               .quick_s = 0.001,
                               .slow_s = 0.3,
                               .slow = {9, 34, 59, 84, 109, 134, 159, 184},
                               .loop_s = 0.001}
                         .window();
  some.making->item_cpu_s = 0.25 * some.making->item_s;  // most: 8 workers
  Verdict verdict = diagnose(some);
  EXPECT_LT(gain_of(verdict, "num_workers"), 0.2);
  EXPECT_GT(gain_of(verdict, "prefetch_factor"), 0.6)
      << "two of them are then made at once";
  EXPECT_EQ(verdict.actions.at(0).knob, "prefetch_factor");
  EXPECT_EQ(verdict.actions[0].to, Json(16));
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("for 28 more batches"));
  EXPECT_EQ(verdict.no_action, "");
  EXPECT_THAT(verdict.cause, HasSubstr("examine that item"));

  some.making->item_cpu_s = 0.6 * some.making->item_s;
  verdict = diagnose(some);
  EXPECT_EQ(gain_of(verdict, "num_workers"), 0) << "they have no processors";
  EXPECT_GT(gain_of(verdict, "prefetch_factor"), 0.3);
  some.making->seen = {.in_lock = 90, .looks = 100};
  EXPECT_EQ(diagnose(some).actions.size(), 0u) << "one after the other";
}

TEST(FetchingTest, AGainOfLessThanTwoPercentIsNoAdvice) {
  Verdict verdict = diagnose(window(2, 5, 5, 1));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.no_action, HasSubstr("batches come in bursts"));
}

}  // namespace
}  // namespace penstock
