#include "penstock/advisor/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

/// 1000 samples in 10 batches; four readers that wait for a source, all the
/// time, for so many requests of each batch.
Snapshot far_source(int requests, int prefetch, int workers = 2) {
  Snapshot window;
  window.parts = {.steps = 10, .samples = 1000, .wall = 4s, .compute = 1s};
  window.parts.wait_data = 3s;
  window.limits.cpus = 2;
  window.prefetch = prefetch;
  StageNumbers parse{.name = "parse",
                     .work = StageWork::parses,
                     .workers = workers,
                     .pool = "loader"};
  parse.items = 1000;
  parse.busy_wall = parse.busy_cpu = 100ms;
  StageNumbers read{.name = "read",
                    .work = StageWork::reads,
                    .workers = 4,
                    .pool = "readers"};
  read.items = 1000;
  read.calls = 10 * requests;
  read.busy_wall = 16s;
  read.busy_cpu = 1s;
  window.stages = {parse, read};
  return window;
}

TEST(Offers, AReaderThatWouldOnlyMakeThePartsOfABatchSmallerIsNotPromised) {
  // With five readers a batch is read in five parts, each of which takes as
  // long to come. With larger ones no gain is promised either.
  const Verdict verdict = diagnose(far_source(4, 2));
  EXPECT_EQ(verdict.stage, "read");
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(verdict.no_action, HasSubstr("smaller parts of a batch"));
}

TEST(Offers, AsManyBatchesAheadAreTriedAsMakePartsLarger) {
  for (auto [prefetch, to] : {std::pair(1, 4), {2, 4}})
    EXPECT_THAT(diagnose(far_source(4, prefetch)).no_action,
                HasSubstr("try 'loader.prefetch' " + std::to_string(to)))
        << prefetch;
}

TEST(Offers, ReadersThatAreHardlyTheLimitAreToldNothingOfParts) {
  Snapshot window = far_source(4, 2);
  window.stages[1].busy_wall = 4s;  // as fast as the steps
  EXPECT_THAT(diagnose(window).no_action, Not(HasSubstr("'loader.readers'")));
}

TEST(Offers, WholeBatchesThatComeLateNeedMoreReadersAndMoreBatchesAhead) {
  Snapshot window = far_source(1, 6);
  window.stages[1].calls = 9;  // of 10 steps: one batch was read before it
  const Verdict verdict = diagnose(window);
  EXPECT_THAT(verdict.actions, IsEmpty());
  EXPECT_THAT(
      verdict.no_action,
      HasSubstr("'loader.readers' 8 and 'loader.prefetch' 12 together"));
}

TEST(Offers, AReaderIsPromisedWhatItReadsOfPartsThatThereAreAnyway) {
  // Eight workers share a batch: eight parts, however many readers there are.
  const Verdict verdict = diagnose(far_source(8, 2, 8));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.readers");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.25, 1e-9);
}

TEST(Offers, AReaderOfWholeBatchesIsPromisedWithTheBatchesAheadThatItNeeds) {
  for (int prefetch : {2, 5, 8}) {
    const Verdict verdict = diagnose(far_source(1, prefetch));
    ASSERT_EQ(verdict.actions.size(), 1u);
    EXPECT_EQ(verdict.actions[0].knob, "loader.readers");
    EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.25, 1e-9);
    EXPECT_EQ(verdict.actions[0].cost.find("'loader.prefetch' at 5") !=
                  std::string::npos,
              prefetch == 2);
  }
}

TEST(Offers, AnAcceleratorThatIsBusyIsOfferedNoSmallGain) {
  for (auto [waits, offered] : {std::pair(30ms, 0u), {70ms, 1u}}) {
    Snapshot window;
    window.parts = {
        .steps = 10, .samples = 1000, .wall = 1s + waits, .compute = 1s};
    window.parts.wait_data = waits;
    window.limits.cpus = 2;
    StageNumbers read{.name = "parse",
                      .work = StageWork::parses,
                      .workers = 1,
                      .pool = "loader"};
    read.items = 1000;
    read.busy_wall = read.busy_cpu = window.parts.wall;
    window.stages = {read};
    const Verdict verdict = diagnose(window);
    EXPECT_EQ(verdict.limit, Limit::compute);
    EXPECT_EQ(verdict.actions.size(), offered);
    EXPECT_EQ(verdict.no_action.empty(), offered > 0);
  }
}

TEST(Offers, OfRowsThatTheDeviceKeepsInPartAllTiersAreNamed) {
  Snapshot window;
  window.parts = {.steps = 10, .samples = 1000, .wall = 4s, .compute = 1s};
  window.parts.wait_copy = 3s;
  window.limits.cpus = 2;
  window.tiers = {{.name = "device",
                   .in_use = true,
                   .holds = 0.5,
                   .lacks_budget = "loader.cache.device_gib"},
                  {.name = "ram", .fits = true, .in_use = true, .holds = 0.5}};
  const Verdict verdict = diagnose(window);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].from, Json("device, ram"));
  EXPECT_EQ(verdict.actions[0].to, Json("device"));
}

TEST(Offers, AProcessorBeyondTheBudgetIsNamedWithTheBudget) {
  Snapshot window;
  window.parts = {.steps = 10, .samples = 1000, .wall = 4s, .compute = 1s};
  window.parts.wait_data = 3s;
  window.limits.cpus = 4;
  window.prefetch = 2;
  StageNumbers parse{.name = "parse",
                     .work = StageWork::parses,
                     .workers = 1,
                     .pool = "loader"};
  parse.items = 1000;
  parse.busy_wall = parse.busy_cpu = 4s;
  window.stages = {parse};
  for (int budget : {0, 1, 2}) {
    window.loader_cpus = budget;
    const Verdict verdict = diagnose(window);
    ASSERT_FALSE(verdict.actions.empty());
    EXPECT_EQ(verdict.actions[0].knob, "loader.workers");
    EXPECT_EQ(verdict.actions[0].cost,
              budget == 1
                  ? "one more processor, and 'loader.cpus' at 2, which is 1 now"
                  : "one more processor");
  }
}

}  // namespace
}  // namespace penstock
