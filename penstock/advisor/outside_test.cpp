#include "penstock/advisor/outside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;

Verdict of_steps() {
  return {.limit = Limit::compute,
          .cause = "the accelerator is busy",
          .because = "99.0 % of the steps' time is computing",
          .no_action = "no setting would gain 5 %"};
}

/// 1,000 steps of 10 ms on a device, and nothing else yet.
OutsideTime run_of(double steps_s) {
  OutsideTime time{.wall_s = steps_s + 1};
  time.steps.steps = 1000;
  time.steps.wall = time.steps.compute = from_seconds(steps_s);
  return time;
}

/// A checkpoint every 10 steps: 100 of them, each written in 0.2 s, of which
/// the steps hide 0.1 s.
OutsideTime saving_run() {
  OutsideTime time = run_of(10);
  time.checkpoints = {.waited_s = 11,
                      .times = 100,
                      .copying_s = 1,
                      .writing_s = 20,
                      .every = 10};
  time.wall_s += 11;
  return time;
}

TEST(Outside, ARunThatWaitsForItsCheckpointsIsToldToHaveFewer) {
  const Verdict verdict = with_outside(of_steps(), saving_run());
  EXPECT_EQ(verdict.limit, Limit::outside);
  EXPECT_EQ(verdict.json().find("limit")->string(), "outside");
  EXPECT_THAT(verdict.cause, HasSubstr("checkpoints take 50 %"));
  EXPECT_THAT(verdict.because, HasSubstr("written in 0.2 s"));
  ASSERT_EQ(verdict.actions.size(), 1U);
  const Action& action = verdict.actions[0];
  EXPECT_EQ(action.knob, "train.checkpoint_every_steps");
  EXPECT_EQ(action.from, Json(10));
  // 0.2 s are hidden by 20 steps, and a copy of 0.01 s is 5 % of those.
  EXPECT_EQ(action.to, Json(20));
  // 50 copies are left, and the last is waited for.
  EXPECT_NEAR(action.predicted_gain, 22 / (22 - 11 + 0.5 + 0.2) - 1, 1e-9);
  EXPECT_EQ(verdict.no_action, "");
}

TEST(Outside, WithoutASettingACheckpointIsSavedOnceAnEpoch) {
  OutsideTime time = saving_run();
  time.checkpoints.every.reset();
  const Verdict verdict = with_outside(of_steps(), time);
  ASSERT_EQ(verdict.actions.size(), 1U);
  EXPECT_EQ(verdict.actions[0].from, Json());
  EXPECT_EQ(verdict.actions[0].to, Json(20));
}

TEST(Outside, ValidationThatTakesMostOfTheTimeIsNamed) {
  OutsideTime time = run_of(10);
  time.validations = {.seconds = 20, .times = 10, .every = 1};
  time.wall_s += 20;
  const Verdict verdict = with_outside(of_steps(), time);
  EXPECT_EQ(verdict.limit, Limit::outside);
  EXPECT_THAT(verdict.cause, HasSubstr("validation takes 65 %"));
  ASSERT_EQ(verdict.actions.size(), 1U);
  EXPECT_EQ(verdict.actions[0].knob, "train.validate_every_epochs");
  EXPECT_EQ(verdict.actions[0].to, Json(10));  // once is 2 s of 13
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 31.0 / 13 - 1, 1e-9);
}

TEST(Outside, WhatTheLoaderCouldGainIsAShareOfTheWholeTime) {
  OutsideTime time = saving_run();
  time.steps.compute = {};
  time.steps.wait_data = time.steps.wall;
  Verdict steps = of_steps();
  steps.limit = Limit::data;
  steps.actions = {{.knob = "loader.workers", .predicted_gain = 1.0},
                   {.knob = "loader.prefetch", .predicted_gain = 0.03}};
  const Verdict verdict = with_outside(steps, time);
  ASSERT_EQ(verdict.actions.size(), 2U);
  EXPECT_EQ(verdict.actions[1].knob, "loader.workers");
  // Half of 10 s of 22.
  EXPECT_NEAR(verdict.actions[1].predicted_gain, 22.0 / 17 - 1, 1e-9);
}

TEST(Outside, BesideAnotherLimitFewerCheckpointsAreOfferedToo) {
  OutsideTime time = saving_run();
  time.steps.wall = time.steps.compute = from_seconds(40);
  time.wall_s += 30;
  const Verdict verdict = with_outside(of_steps(), time);
  EXPECT_EQ(verdict.limit, Limit::compute);
  // 10 steps of 40 ms hide the writing, but 5 % of a checkpoint's time is not
  // the copy of 0.01 s: nothing is offered.
  EXPECT_TRUE(verdict.actions.empty());
  time.checkpoints.writing_s = 100;
  EXPECT_EQ(with_outside(of_steps(), time).actions.size(), 1U);
}

TEST(Outside, WhatIsShortOrHappensOnceIsNoLimit) {
  OutsideTime time = run_of(0.1);
  time.validations = {.seconds = 0.2, .times = 2, .every = 1};
  EXPECT_EQ(with_outside(of_steps(), time).limit, Limit::compute);

  time = run_of(1);
  time.wall_s = 60;  // opening the rows
  EXPECT_EQ(with_outside(of_steps(), time).limit, Limit::compute);
  EXPECT_DOUBLE_EQ(time.other_s(), 59);
}

TEST(Outside, WhenNothingCanBeRarerTheVerdictSaysWhatElseHelps) {
  OutsideTime time = run_of(1);
  time.validations = {.seconds = 20, .times = 1, .every = 1};
  time.wall_s += 20;
  const Verdict verdict = with_outside(of_steps(), time);
  EXPECT_EQ(verdict.limit, Limit::outside);
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.no_action, HasSubstr("split.val"));
}

TEST(Outside, TheWallTimeIsExplained) {
  OutsideTime time = saving_run();
  time.epoch_start_s = 0.5;
  const Json json = time.json();
  double sum = time.window_s();
  for (const auto& [name, part] : json.object()) sum += part.number();
  EXPECT_EQ(json.object().size(), 4U);
  EXPECT_NEAR(sum, time.wall_s, 1e-9);
}

}  // namespace
}  // namespace penstock
