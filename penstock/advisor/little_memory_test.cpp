#include "penstock/advisor/little_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

TierCapacity tier(std::string name, bool fits, double holds = 0) {
  return {.name = std::move(name),
          .fits = fits,
          .in_use = holds > 0,
          .holds = holds,
          .why = fits ? "fits" : "needs 9.0 GiB"};
}

/// 100 steps of 10 samples, of which the accelerator worked for `compute`.
Snapshot window(Nanoseconds compute, std::vector<TierCapacity> tiers) {
  Snapshot window;
  window.parts = {.steps = 100, .samples = 1000, .wall = 10s};
  window.parts.compute = compute;
  window.parts.wait_data = 10s - compute;
  window.tiers = std::move(tiers);
  window.limits.cpus = 8;
  StageNumbers read{.name = "read",
                    .work = StageWork::reads,
                    .workers = 2,
                    .items = 1000,
                    .calls = 100};
  read.pool = "readers";
  read.busy_wall = 19s;
  read.busy_cpu = 1s;
  window.stages = {read};
  return window;
}

Snapshot spilled(Nanoseconds compute, std::vector<TierCapacity> tiers) {
  Snapshot full = window(compute, std::move(tiers));
  full.spilled = {
      .bytes = 8e9, .total = 8e9, .step_before_s = 0.015, .step_s = 0.09};
  return full;
}

TEST(LittleMemory, AFullDeviceIsTheCauseAndRowsThatLeaveItTheFirstAction) {
  for (Nanoseconds compute : {9900ms, 8000ms}) {
    const Verdict verdict =
        diagnose(spilled(compute, {tier("device", true, 1), tier("ram", true),
                                   tier("none", true)}));
    EXPECT_EQ(verdict.limit, Limit::compute);
    EXPECT_EQ(verdict.cause,
              "device memory is full, and the driver moves what does not "
              "fit to the host: steps take 6.0 times as long as before");
    EXPECT_THAT(verdict.because, HasSubstr("90.0 ms, after 15.0 ms"));
    ASSERT_FALSE(verdict.actions.empty());
    EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
    EXPECT_EQ(verdict.actions[0].to, Json("ram"));
    EXPECT_NEAR(verdict.actions[0].predicted_gain,
                compute == 9900ms ? 10 / 1.75 - 1 : 2.0, 0.01);
    EXPECT_EQ(verdict.no_action, "");
  }
}

TEST(LittleMemory, WhereTheRowsAreElsewhereTheModelHasToTakeLess) {
  const Verdict verdict =
      diagnose(spilled(9900ms, {tier("device", false), tier("ram", true, 1),
                                tier("none", true)}));
  EXPECT_THAT(verdict.cause, StartsWith("device memory is full"));
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.no_action, HasSubstr("a smaller batch"));
}

TEST(LittleMemory, RowsLeaveTheDeviceForTheFirstMemoryThatHasRoom) {
  auto told = [](std::vector<TierCapacity> tiers) {
    return diagnose(spilled(9900ms, std::move(tiers)));
  };
  const Verdict on_disk = told({tier("device", true, 1), tier("ram", false),
                                tier("disk", true), tier("none", true)});
  ASSERT_FALSE(on_disk.actions.empty());
  EXPECT_EQ(on_disk.actions[0].to, Json("disk"));
  EXPECT_THAT(on_disk.actions[0].cost, StartsWith("a file for the rows"));
  const Verdict nowhere =
      told({tier("device", true, 1), tier("ram", false), tier("none", true)});
  EXPECT_TRUE(nowhere.actions.empty());
  EXPECT_THAT(nowhere.no_action, HasSubstr("the host has no room"));
}

TEST(LittleMemory, AFullDeviceThatWaitsForItsInputIsNotWhatLimits) {
  EXPECT_EQ(diagnose(spilled(2s, {tier("device", true, 1)})).limit,
            Limit::data);
}

TEST(LittleMemory, BesideWhatLimitsAFullDeviceIsARemarkWithItsOwnAction) {
  Snapshot half = spilled(
      5200ms, {tier("device", true, 1), tier("ram", true), tier("none", true)});
  const Verdict verdict = diagnose(half);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.because, HasSubstr("device memory is full too"));
  EXPECT_THAT(verdict.because, HasSubstr("90.0 ms, after 15.0 ms"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.readers") << "as without it";
  half.stages[0].busy_wall = 10s;  // its readers could give twice the rows
  bool leaves = false;
  for (const Action& action : diagnose(half).actions) {
    if (action.to != Json("ram")) continue;
    leaves = true;
    EXPECT_NEAR(action.predicted_gain, 1, 0.01);
  }
  EXPECT_TRUE(leaves);
}

/// What the plan says of 1,000 rows of 1,000 bytes, in 10 MB of host memory.
Snapshot planned(TierBudgets budgets, std::size_t ram_free = 10'000'000) {
  return window(
      1s, tiers_of(plan_tiers({.rows = 1000,
                               .row_bytes = 1000,
                               .budgets = budgets,
                               .divisible = true,
                               .batch_rows = 10},
                              {.ram_free = ram_free, .device_is_host = true})));
}

TEST(LittleMemory, ABudgetThatHoldsAPartOfTheRowsIsNamedFirst) {
  const Verdict verdict = diagnose(planned({.ram = 250'000}));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.cause,
              StartsWith("75 % of the rows are read again in each epoch, 'ram' "
                         "holds 25 % of them, and 'loader.cache.ram_gib' "
                         "allows no more: 'read' waits for the database"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
  EXPECT_EQ(verdict.actions[0].to, Json("auto"));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 9, 1e-6);
  EXPECT_THAT(verdict.actions[0].cost,
              StartsWith("memory for the prepared rows beyond "
                         "'loader.cache.ram_gib', and"));
}

TEST(LittleMemory, EachTierThatHoldsAPartIsNamedAndTheSlowestBudget) {
  Snapshot parts =
      window(1s, {tier("device", false, 0.1), tier("ram", false, 0.2),
                  tier("none", true, 0.7)});
  parts.tiers[0].lacks_budget = "loader.cache.device_gib";
  parts.tiers[1].lacks_budget = "loader.cache.ram_gib";
  EXPECT_THAT(diagnose(parts).cause,
              HasSubstr("'device' holds 10 % of them, 'ram' 20 %, and "
                        "'loader.cache.ram_gib' allows no more: "));
}

TEST(LittleMemory, ABudgetOfNothingIsNotAMemoryWithoutRoom) {
  const Verdict verdict = diagnose(planned({.ram = 0}));
  EXPECT_THAT(verdict.cause,
              StartsWith("100 % of the rows are read again in each epoch, "
                         "'loader.cache.ram_gib' leaves no room for them: "));
  EXPECT_THAT(verdict.because,
              HasSubstr("'ram' left out: 'loader.cache.ram_gib' is 0"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
  EXPECT_EQ(verdict.actions[0].to, Json("auto"));
}

TEST(LittleMemory, MemoryThatHoldsAPartOfTheRowsIsNotABudget) {
  const Verdict verdict = diagnose(planned({}, 500'000));
  EXPECT_THAT(verdict.cause,
              AllOf(HasSubstr("of the rows are read again in each epoch, 'ram' "
                              "holds"),
                    Not(HasSubstr("loader.cache"))));
  for (const Action& action : verdict.actions)
    EXPECT_NE(action.knob, "loader.cache");
}

TEST(LittleMemory, RowsForWhichThereIsNoRoomAreNamedFirst) {
  const Verdict verdict = diagnose(window(
      1s, {tier("device", false), tier("ram", false), tier("none", true, 1)}));
  EXPECT_THAT(verdict.cause,
              StartsWith("100 % of the rows are read again in each epoch, no "
                         "memory has room for them: 'read'"));
  EXPECT_THAT(verdict.because, HasSubstr("'ram' needs 9.0 GiB"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.readers");
}

TEST(LittleMemory, RowsThatWereNotToBeKeptAreNotRowsThatLackMemory) {
  const Verdict verdict = diagnose(window(
      1s, {tier("device", false), tier("ram", true), tier("none", true, 1)}));
  EXPECT_THAT(verdict.cause, Not(HasSubstr("again")));
  EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
}

}  // namespace
}  // namespace penstock
