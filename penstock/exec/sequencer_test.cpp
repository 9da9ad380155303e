#include "penstock/exec/sequencer.h"

#include <gtest/gtest.h>

#include <thread>

#include "penstock/base/error.h"

namespace penstock {
namespace {

TEST(Sequencer, RestoresTheOrder) {
  Sequencer<int> sequencer;
  sequencer.put(2, 20);
  sequencer.put(0, 0);
  sequencer.put(1, 10);
  EXPECT_EQ(sequencer.take(), 0);
  EXPECT_EQ(sequencer.take(), 10);
  EXPECT_EQ(sequencer.take(), 20);
}

TEST(Sequencer, RestoresTheOrderHoweverFarAheadNumbersRun) {
  Sequencer<int> sequencer;
  int taken = 0;
  for (int ahead : {1, 2, 7, 100, 3}) {
    for (int i = taken + ahead - 1; i >= taken; --i) sequencer.put(i, i);
    for (int i = 0; i < ahead; ++i) EXPECT_EQ(sequencer.take(), taken++);
  }
  EXPECT_FALSE(sequencer.put(3, 3)) << "its turn has passed";
}

TEST(Sequencer, WaitsForTheOneThatIsMissing) {
  Sequencer<int> sequencer;
  EXPECT_FALSE(sequencer.misses_next());
  sequencer.put(1, 10);
  EXPECT_TRUE(sequencer.misses_next());
  std::thread late([&] { sequencer.put(0, 5); });
  EXPECT_EQ(sequencer.take(), 5);
  late.join();
  EXPECT_FALSE(sequencer.misses_next());
}

TEST(Sequencer, AnErrorTakesTheTurnOfItsItem) {
  Sequencer<int> sequencer;
  sequencer.put_error(1, std::make_exception_ptr(Error(
                             ErrorKind::source, {.what = "the disk is gone"})));
  EXPECT_TRUE(sequencer.put(0, 1)) << "what comes before it is still wanted";
  EXPECT_EQ(sequencer.take(), 1);
  EXPECT_THROW(sequencer.take(), Error);
  sequencer.put(1, 2);
  sequencer.close();
  EXPECT_THROW(sequencer.take(), Error) << "and it stays";
}

TEST(Sequencer, AnErrorIsNotForgottenWhenItemsBeforeItNeverCome) {
  Sequencer<int> sequencer;
  sequencer.put(0, 1);
  sequencer.put_error(3, std::make_exception_ptr(
                             Error(ErrorKind::source, {.what = "no worker"})));
  EXPECT_EQ(sequencer.take(), 1);
  EXPECT_FALSE(sequencer.ready_within(Nanoseconds(0))) << "1 may still come";
  sequencer.close();
  EXPECT_TRUE(sequencer.ready_within(Nanoseconds(0)));
  EXPECT_THROW(sequencer.take(), Error);
  EXPECT_THROW(sequencer.take(), Error) << "and it stays";
}

TEST(Sequencer, AnErrorThatComesAfterItWasClosedIsHeardToo) {
  Sequencer<int> sequencer;
  sequencer.close();
  sequencer.put_error(
      0, std::make_exception_ptr(Error(ErrorKind::source, {.what = "late"})));
  EXPECT_THROW(sequencer.take(), Error);
}

// The consumer may fill the last batch itself, after the last worker has ended.
TEST(Sequencer, AnItemThatComesAfterItWasClosedIsTakenToo) {
  Sequencer<int> sequencer;
  sequencer.close();
  EXPECT_TRUE(sequencer.put(0, 7));
  EXPECT_EQ(sequencer.take(), 7);
  EXPECT_EQ(sequencer.take(), std::nullopt);
}

TEST(Sequencer, TheErrorOfTheLowestNumberCounts) {
  Sequencer<int> sequencer;
  for (int number : {5, 1, 1, 3})
    sequencer.put_error(number, std::make_exception_ptr(number));
  sequencer.put(0, 10);
  EXPECT_EQ(sequencer.take(), 10);
  EXPECT_THROW(
      try { sequencer.take(); } catch (int number) {
        EXPECT_EQ(number, 1);
        throw;
      },
      int);
}

TEST(Sequencer, SaysWithinATimeWhetherTakingWouldWait) {
  Sequencer<int> sequencer;
  sequencer.put(1, 10);
  EXPECT_FALSE(sequencer.ready_within(std::chrono::milliseconds(1)));
  std::thread late([&] { sequencer.put(0, 5); });
  EXPECT_TRUE(sequencer.ready_within(std::chrono::hours(1)));
  late.join();
  EXPECT_EQ(sequencer.take(), 5);
  EXPECT_EQ(sequencer.take(), 10);
  sequencer.put_error(2, std::make_exception_ptr(Error(
                             ErrorKind::source, {.what = "the disk is gone"})));
  EXPECT_TRUE(sequencer.ready_within(Nanoseconds(0))) << "an error is ready";
}

TEST(Sequencer, CloseEndsAWaitForATimeToo) {
  Sequencer<int> sequencer;
  std::thread taker(
      [&] { EXPECT_TRUE(sequencer.ready_within(std::chrono::hours(1))); });
  sequencer.close();
  taker.join();
}

TEST(Sequencer, CloseWakesTheTaker) {
  Sequencer<int> sequencer;
  std::thread taker([&] { EXPECT_EQ(sequencer.take(), std::nullopt); });
  sequencer.close();
  taker.join();
}

}  // namespace
}  // namespace penstock
