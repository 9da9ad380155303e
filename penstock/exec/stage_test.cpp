#include "penstock/exec/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>

#include "penstock/base/error.h"
#include "penstock/exec/meter.h"

namespace penstock {
namespace {

class StageWorkers : public testing::TestWithParam<int> {};

TEST_P(StageWorkers, RunsItsBodyOncePerWorkerAndEndsOnce) {
  std::atomic<int> ran{0}, ended{0};
  Stage stage({.name = "work",
               .workers = GetParam(),
               .body = [&](int) { ++ran; },
               .last = [&] { ++ended; }});
  if (GetParam() == 0) stage.run_inline();
  stage.join();
  EXPECT_EQ(ran, std::max(1, GetParam()));
  EXPECT_EQ(ended, 1);
}

TEST_P(StageWorkers, TellsOfAFailureUnderItsName) {
  std::atomic<int> heard{0};
  Stage stage({.name = "decode",
               .workers = GetParam(),
               .body = [](int) { throw std::runtime_error("odd"); },
               .failed =
                   [&](std::exception_ptr error) {
                     try {
                       std::rethrow_exception(error);
                     } catch (const Error& known) {
                       EXPECT_EQ(known.kind(), ErrorKind::internal);
                       EXPECT_NE(known.parts().what.find("decode: odd"),
                                 std::string::npos);
                       ++heard;
                     }
                   }});
  if (GetParam() == 0) stage.run_inline();
  stage.join();
  EXPECT_EQ(heard, std::max(1, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Workers, StageWorkers, testing::Values(0, 1, 2, 8));

TEST(Stage, KnowsThatAFailedAllocationIsOutOfMemory) {
  std::exception_ptr named =
      named_error(std::make_exception_ptr(std::bad_alloc()), "prepare");
  try {
    std::rethrow_exception(named);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  }
}

TEST(StageMeter, AddsUpWhatItsWorkersSay) {
  StageMeter meter("read", 2);
  meter.add_items(3, 100);
  meter.add_items(4, 50);
  meter.add_blocked_get(Nanoseconds(5));
  StageNumbers numbers = meter.numbers();
  EXPECT_EQ(numbers.items, 7);
  EXPECT_EQ(numbers.bytes, 150);
  EXPECT_EQ(numbers.blocked_get, Nanoseconds(5));
  EXPECT_EQ(numbers.workers, 2);
}

}  // namespace
}  // namespace penstock
