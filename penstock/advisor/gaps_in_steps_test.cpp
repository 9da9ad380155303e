#include "penstock/advisor/gaps_in_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// 100 steps of 10 ms on a GPU that works for `busy` of the time.
Snapshot loop_on_gpu(double busy, std::int64_t drained = 100) {
  Snapshot snapshot;
  snapshot.parts = {.steps = 100,
                    .samples = 6400,
                    .wall = 1s,
                    .compute = 995ms,
                    .wait_data = 5ms,
                    .drained = drained};
  snapshot.gpu_busy = busy;
  snapshot.batch_size = 64;
  return snapshot;
}

TEST(GapsInSteps, AreTheLoopsWhereTheGpuIsDoneWheneverItComesBack) {
  Verdict verdict = diagnose(loop_on_gpu(0.06));
  EXPECT_EQ(verdict.limit, Limit::host);
  EXPECT_THAT(verdict.cause, HasSubstr("busy for only 6 % of the time"));
  EXPECT_THAT(verdict.because,
              HasSubstr("99.5 % of the steps' time is computing"))
      << "as events have it";
  EXPECT_THAT(verdict.because,
              HasSubstr("after 100 % of the steps the accelerator was idle"));
}

TEST(GapsInSteps, AreNoneWhereTheGpuWorks) {
  for (double busy : {0.8, 1.0})
    EXPECT_EQ(diagnose(loop_on_gpu(busy)).limit, Limit::compute) << busy;
}

TEST(GapsInSteps, AreNoneWhereTheLoopRunsAhead) {
  EXPECT_EQ(diagnose(loop_on_gpu(0.5, 10)).limit, Limit::compute)
      << "another reason, such as a driver that counts coarsely";
}

TEST(GapsInSteps, AreNotKnownWithoutADriver) {
  Snapshot unknown = loop_on_gpu(0.5);
  unknown.gpu_busy.reset();
  EXPECT_EQ(diagnose(unknown).limit, Limit::compute);
}

TEST(GapsInSteps, AreFilledByALargerBatchWhichIsOffered) {
  Verdict verdict = diagnose(loop_on_gpu(0.2));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.batch_size");
  EXPECT_EQ(verdict.actions[0].to, Json(256));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 3, 1e-9);
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("a change to the training"));
  EXPECT_TRUE(diagnose(loop_on_gpu(0.7)).actions.empty());
  EXPECT_THAT(diagnose(loop_on_gpu(0.7)).no_action, HasSubstr("CUDA graph"));
}

TEST(GapsInSteps, AreNotFilledFasterThanTheInputCan) {
  Snapshot slow = loop_on_gpu(0.2);
  slow.stages = {
      {.name = "read", .workers = 1, .items = 6400, .busy_wall = 500ms}};
  EXPECT_NEAR(diagnose(slow).actions.at(0).predicted_gain, 1, 1e-9);
  slow.stages[0].busy_wall = 1s;
  EXPECT_TRUE(diagnose(slow).actions.empty());
}

TEST(GapsInSteps, OfAWatchedLoopAreTheLoopsToo) {
  FetchWindow window;
  window.batches = window.gpu_steps = window.gpu_drained = 100;
  window.items = 6400;
  window.wait_s = 0.02;
  window.loop_s = 0.98;
  EXPECT_EQ(diagnose(window).limit, Limit::compute) << "no driver was asked";
  window.gpu_busy = 0.3;
  Verdict verdict = diagnose(window);
  EXPECT_EQ(verdict.limit, Limit::host);
  EXPECT_THAT(verdict.cause, HasSubstr("busy for only 30 % of the time"));
  EXPECT_THAT(verdict.because, HasSubstr("the loop waited 2% of its time"));
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.no_action, HasSubstr("CUDA graph"));
}

}  // namespace
}  // namespace penstock
