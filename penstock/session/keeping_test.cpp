#include "penstock/session/keeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;

Job job_of(const std::string& metric, std::optional<std::int64_t> patience) {
  Job job;
  job.training.metric = metric;
  job.training.patience = patience;
  return job;
}

Json measured(const std::string& text) { return Json::parse(text, "test"); }

/// The validations of an epoch each, whose weights were the best so far.
std::vector<std::int64_t> best_epochs(const Job& job, SavedState& state,
                                      const std::string& name,
                                      const std::vector<Json>& values) {
  std::vector<std::int64_t> best;
  for (const Json& value : values) {
    const std::int64_t epoch = state.steps_taken / 10;
    state.steps_taken += 10;
    Json one;
    one[name] = value;
    if (is_best(job, one, epoch, state)) best.push_back(epoch);
  }
  return best;
}

TEST(KeepingTest, ALowerLossAndAHigherAccuracyAreBetter) {
  SavedState of_loss, of_accuracy;
  EXPECT_EQ(best_epochs(job_of("loss", {}), of_loss, "val_loss",
                        {3.0, 2.0, 2.5, 1.0, 1.0}),
            (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(of_loss.best->value, 1);
  EXPECT_EQ(of_loss.best->epoch, 3);
  EXPECT_EQ(of_loss.best->step, 40);
  EXPECT_EQ(of_loss.best->since, 1) << "an equal loss is not a better one";
  EXPECT_EQ(best_epochs(job_of("accuracy", {}), of_accuracy, "val_accuracy",
                        {0.5, 0.75, 0.5, 0.875}),
            (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(of_accuracy.best->metric, "accuracy");
}

TEST(KeepingTest, WhatCouldNotBeMeasuredIsNotBetter) {
  SavedState state;
  EXPECT_EQ(best_epochs(job_of("auc", {}), state, "val_auc",
                        {Json(), 0.5, Json(), 0.6}),
            (std::vector<std::int64_t>{1, 3}));
  EXPECT_FALSE(is_best(job_of("auc", {}), measured("{}"), 4, state))
      << "no row has a truth";
  EXPECT_EQ(state.best->since, 1);
}

TEST(KeepingTest, AMetricThatTheModelDidNotMeasureIsRefusedWithThoseItDid) {
  SavedState state;
  try {
    is_best(job_of("auc", {}),
            measured(R"({"val_loss": 1, "val_macro_f1": 0.5})"), 0, state);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "train.metric");
    EXPECT_THAT(error.parts().why, HasSubstr("loss, macro_f1"));
  }
}

TEST(KeepingTest, ARunIsOutOfPatienceAfterSoManyValidationsWithoutABetterOne) {
  const Job job = job_of("loss", 2);
  SavedState state;
  best_epochs(job, state, "val_loss", {3.0, 4.0});
  EXPECT_FALSE(out_of_patience(state, job));
  best_epochs(job, state, "val_loss", {5.0});
  EXPECT_TRUE(out_of_patience(state, job));
  EXPECT_FALSE(out_of_patience(state, job_of("loss", 3)));
  EXPECT_FALSE(out_of_patience(state, job_of("loss", {})));
  best_epochs(job, state, "val_loss", {1.0});
  EXPECT_FALSE(out_of_patience(state, job)) << "it counts again";
}

TEST(KeepingTest, TheBestIsForgottenWhereItCannotBeComparedOrHad) {
  SavedState state;
  state.best = Best{.metric = "loss", .value = 1, .sha256 = "0f"};
  EXPECT_EQ(forget_other_best(job_of("loss", {}), state), "");
  EXPECT_TRUE(state.best);
  EXPECT_THAT(forget_other_best(job_of("accuracy", {}), state),
              HasSubstr("compared by loss, and now by accuracy"));
  EXPECT_FALSE(state.best);
  state.best = Best{.metric = "loss", .value = 1};
  EXPECT_THAT(forget_other_best(job_of("loss", {}), state),
              HasSubstr("not kept"));
  state.best = Best{.metric = "loss", .value = 1};
  Job last = job_of("loss", {});
  last.training.keep = Keep::last;
  EXPECT_EQ(forget_other_best(last, state), "");
  EXPECT_TRUE(state.best);
}

TEST(KeepingTest, TheJobSaysWhichWeightsAreKept) {
  Job job;
  EXPECT_TRUE(keeps_best(job, true) && !keeps_last(job, true));
  EXPECT_TRUE(!keeps_best(job, false) && keeps_last(job, false));
  job.training.keep = Keep::both;
  EXPECT_TRUE(keeps_best(job, true) && keeps_last(job, true));
  job.training.keep = Keep::last;
  EXPECT_TRUE(!keeps_best(job, true) && keeps_last(job, true));
}

}  // namespace
}  // namespace penstock
