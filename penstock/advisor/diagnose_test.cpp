#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

StageNumbers stage(std::string name, int workers, std::int64_t items,
                   Nanoseconds busy, double cpu = 1) {
  return {.name = std::move(name),
          .workers = workers,
          .items = items,
          .busy_wall = busy,
          .busy_cpu = Nanoseconds(static_cast<std::int64_t>(
              cpu * static_cast<double>(busy.count())))};
}

/// 100 steps of 10 samples; the accelerator needs 10 ms per step.
Snapshot window(Nanoseconds wall, std::vector<StageNumbers> stages) {
  Snapshot snapshot;
  snapshot.parts = {.steps = 100, .wall = wall, .compute = 1s};
  snapshot.parts.wait_data = wall - 1s;
  snapshot.samples = 1000;
  snapshot.stages = std::move(stages);
  snapshot.limits.cpus = 8;
  return snapshot;
}

TEST(Diagnose, SaysComputeWhenTheInputKeepsUp) {
  Verdict verdict = diagnose(window(1010ms, {stage("read", 1, 1000, 100ms)}));
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_TRUE(verdict.actions.empty());
}

TEST(Diagnose, NamesTheStageWithTheLowestRate) {
  Verdict verdict = diagnose(
      window(4s, {stage("read", 1, 1000, 1s), stage("prepare", 2, 1000, 8s)}));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.stage, "prepare");
  EXPECT_THAT(verdict.cause, HasSubstr("processor"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 3.0, 1e-9);
  EXPECT_EQ(verdict.actions[1].knob, "loader.workers");
  EXPECT_NEAR(verdict.actions[1].predicted_gain, 0.5, 1e-9);
}

TEST(Diagnose, SeesAQueryPerSample) {
  StageNumbers read = stage("read per sample", 1, 1000, 5s, 0.1);
  read.calls = 1000;
  Verdict verdict = diagnose(window(5s, {read}));
  EXPECT_THAT(verdict.cause, HasSubstr("once per sample, 5.00 ms"));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.read");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 4.0, 1e-9);
}

TEST(Diagnose, SeesRoundTrips) {
  StageNumbers read = stage("read", 1, 1000, 5s, 0.1);
  read.calls = 100;
  EXPECT_THAT(diagnose(window(5s, {read})).cause,
              HasSubstr("10 rows per statement, 50.00 ms"));
}

TEST(Diagnose, DoesNotAdviseMoreWorkersThanProcessors) {
  Snapshot snapshot = window(4s, {stage("gather", 2, 1000, 8s)});
  snapshot.limits.cpus = 2;
  EXPECT_TRUE(diagnose(snapshot).actions.empty());
}

TEST(Diagnose, SeesTheCopy) {
  Snapshot snapshot = window(2s, {stage("gather", 1, 1000, 100ms)});
  snapshot.parts.wait_copy = 1s;
  snapshot.parts.wait_data = 0s;
  Verdict verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.limit, Limit::copy);
  EXPECT_NEAR(verdict.actions.at(0).predicted_gain, 1.0, 1e-9);
}

TEST(Diagnose, SeesTheHostLoop) {
  Snapshot snapshot = window(2s, {});
  snapshot.parts.host = 1s;
  snapshot.parts.wait_data = 0s;
  EXPECT_EQ(diagnose(snapshot).limit, Limit::host);
}

TEST(Diagnose, SeesThatOrderIsTheTrouble) {
  Snapshot snapshot = window(2s, {stage("read", 4, 1000, 3900ms)});
  snapshot.wait_order = 900ms;
  EXPECT_EQ(diagnose(snapshot).limit, Limit::order);
}

TEST(Diagnose, SeesBursts) {
  Verdict verdict = diagnose(window(2s, {stage("read", 1, 1000, 100ms)}));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.cause, HasSubstr("bursts"));
}

TEST(Diagnose, DoesNotGuess) {
  EXPECT_EQ(diagnose(Snapshot()).limit, Limit::unknown);
  Snapshot no_steps = window(1s, {});
  no_steps.parts.compute = 0s;
  EXPECT_EQ(diagnose(no_steps).limit, Limit::unknown);
  EXPECT_THAT(diagnose(window(2s, {})).cause, HasSubstr("no stage"));
}

// The slowest of four random stages is named whatever the others do.
TEST(Diagnose, NamesTheSlowestOfRandomPipelines) {
  const char* names[] = {"plan", "read", "prepare", "gather"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 0, 0, 0);
    std::size_t slowest = random.below(4);
    std::vector<StageNumbers> stages;
    for (std::size_t i = 0; i < 4; ++i) {
      int workers = 1 + static_cast<int>(random.below(8));
      double rate = i == slowest ? 500 : 500 * (1.15 + 3 * random.uniform());
      stages.push_back(
          stage(names[i], workers, 1000, from_seconds(workers * 1000 / rate)));
    }
    EXPECT_EQ(diagnose(window(2s, stages)).stage, names[slowest]) << seed;
  }
}

TEST(Verdict, EveryLimitHasItsName) {
  EXPECT_EQ(name_of(Limit::compute), "compute");
  EXPECT_EQ(name_of(Limit::copy), "copy");
  EXPECT_EQ(name_of(Limit::host), "host");
  Verdict verdict = diagnose(window(4s, {stage("read", 1, 1000, 4s)}));
  EXPECT_EQ(verdict.json().find("limit")->string(), "data");
  EXPECT_EQ(verdict.json().find("actions")->array().size(),
            verdict.actions.size());
}

}  // namespace
}  // namespace penstock
