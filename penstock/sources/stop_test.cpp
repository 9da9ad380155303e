#include "penstock/sources/stop.h"

#include <gtest/gtest.h>

#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

TEST(Stop, WithoutAFlagAndBeforeItIsSetNothingEnds) {
  std::atomic<bool> stop{false};
  EXPECT_NO_THROW(end_if_stopped(nullptr));
  EXPECT_NO_THROW(end_if_stopped(&stop));
}

TEST(Stop, ItsErrorIsKnownFromAllOthersThroughAnyStage) {
  std::atomic<bool> stop{true};
  Error error = error_of([&] { end_if_stopped(&stop); });
  EXPECT_TRUE(is_stop(error));
  EXPECT_TRUE(is_stop(error.in_stage("read")));
  EXPECT_FALSE(is_stop(Error(ErrorKind::request, {.code = "other"})));
}

}  // namespace
}  // namespace penstock
