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

TEST(Sequencer, WaitsForTheOneThatIsMissing) {
  Sequencer<int> sequencer;
  sequencer.put(1, 10);
  std::thread late([&] { sequencer.put(0, 5); });
  EXPECT_EQ(sequencer.take(), 5);
  late.join();
  EXPECT_EQ(sequencer.waiting(), 1u);
}

TEST(Sequencer, DeliversWhatCameBeforeAnErrorFirst) {
  Sequencer<int> sequencer;
  sequencer.put(0, 1);
  sequencer.fail(std::make_exception_ptr(
      Error(ErrorKind::source, {.what = "the disk is gone"})));
  EXPECT_EQ(sequencer.take(), 1);
  EXPECT_THROW(sequencer.take(), Error);
  EXPECT_FALSE(sequencer.put(1, 2));
}

TEST(Sequencer, CloseWakesTheTaker) {
  Sequencer<int> sequencer;
  std::thread taker([&] { EXPECT_EQ(sequencer.take(), std::nullopt); });
  sequencer.close();
  taker.join();
}

}  // namespace
}  // namespace penstock
