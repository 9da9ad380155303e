#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"
#include "penstock/advisor/fake/stages.h"
#include "penstock/base/random.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

/// The same threads do all of them, as in the loader; then they are delivered.
std::vector<StageNumbers> pool(std::vector<StageNumbers> stages) {
  for (StageNumbers& stage : stages) stage.pool = "loader";
  stages.push_back({.name = "deliver", .workers = 1, .items = 1000});
  stages.back().blocked_get = 1s;
  return stages;
}

/// The rows are read from the source, and `faster` would have room or not.
std::vector<TierCapacity> reading(bool ram_fits, bool device_fits = false) {
  return {{.name = "device",
           .fits = device_fits,
           .why = device_fits ? "fits" : "needs 9.0 GiB on the device"},
          {.name = "ram",
           .fits = ram_fits,
           .why = ram_fits ? "fits" : "needs 8.0 GiB on the host"},
          {.name = "none", .fits = true, .in_use = true, .why = "fits"}};
}

/// The rows are in RAM, and the device would have room or not.
std::vector<TierCapacity> in_ram(bool device_fits) {
  std::vector<TierCapacity> tiers = reading(true, device_fits);
  tiers[1].in_use = true;
  tiers[2].in_use = false;
  return tiers;
}

/// 100 steps of 10 samples; the accelerator needs 10 ms per step.
Snapshot window(Nanoseconds wall, std::vector<StageNumbers> stages) {
  Snapshot snapshot;
  snapshot.parts = {.steps = 100, .samples = 1000, .wall = wall, .compute = 1s};
  snapshot.parts.wait_data = wall - 1s;
  snapshot.stages = std::move(stages);
  snapshot.tiers = reading(true);
  snapshot.limits.cpus = 8;
  return snapshot;
}

TEST(Diagnose, SaysComputeWhenTheInputKeepsUp) {
  Verdict verdict = diagnose(window(1010ms, {stage("read", 1, 1000, 100ms)}));
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_TRUE(verdict.actions.empty());
}

TEST(Diagnose, SaysComputeWhenTheAcceleratorWorksMoreThan90Percent) {
  std::vector<StageNumbers> stages = {stage("read", 1, 1000, 1090ms)};
  Verdict verdict = diagnose(window(1090ms, stages));
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_EQ(verdict.stage, "");
  ASSERT_FALSE(verdict.actions.empty()) << "9 % can be had all the same";
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.09, 1e-9);
  EXPECT_EQ(diagnose(window(1120ms, stages)).limit, Limit::data);
}

TEST(Diagnose, HasAnActionOrSaysWhyThereIsNone) {
  Snapshot late = window(4s, pool({stage("gather", 2, 1000, 8s)}));
  EXPECT_EQ(diagnose(late).no_action, "");
  EXPECT_TRUE(diagnose(late).json().find("no_action")->is_null());
  late.limits.cpus = 2;
  EXPECT_EQ(diagnose(late).no_action,
            "neither another tier nor more workers would gain 2 %: to keep the "
            "accelerator busy takes 8 processors, and there are 2; make the "
            "stage 'gather' cheaper");
  EXPECT_THAT(
      diagnose(late).because,
      HasSubstr("one processor makes 125 samples/s, and the accelerator "
                "would take 1000"));
  late.cheaper = "field 'x': \"dtype\": \"uint8\"";
  EXPECT_THAT(diagnose(late).no_action,
              HasSubstr("make the stage 'gather' cheaper: field 'x': "));
  Snapshot host = window(2s, {});
  host.parts.host = 1s;
  host.parts.wait_data = 0s;
  Snapshot copies = host;
  copies.parts.host = 0s;
  copies.parts.wait_copy = 1s;
  copies.tiers = in_ram(false);
  Snapshot by_virtual_clock = window(2s, {});
  by_virtual_clock.virtual_time = true;
  Snapshot no_time = window(2s, {});
  no_time.parts.compute = 0s;
  for (const Snapshot& snapshot :
       {Snapshot(), window(1010ms, {}), window(2s, {}), host, copies,
        by_virtual_clock, no_time,
        window(2s, pool({stage("read", 1, 1000, 100ms)}))}) {
    Verdict verdict = diagnose(snapshot);
    EXPECT_TRUE(verdict.actions.empty()) << verdict.cause;
    EXPECT_NE(verdict.no_action, "") << verdict.cause;
    EXPECT_EQ(verdict.json().find("no_action")->string(), verdict.no_action);
  }
}

TEST(Diagnose, AGainLeavesWhatTheLoopDoesAndTheProcessorsThatAreThere) {
  // 4 s of 1,000 samples, of which the steps compute for one; nothing but the
  // reading is slow.
  Snapshot late = window(4s, pool({stage("read", 2, 1000, 8s, 0.1)}));
  EXPECT_NEAR(diagnose(late).actions[0].predicted_gain, 3, 1e-9);
  late.parts.host = 600ms;
  late.parts.wait_data -= 600ms;
  EXPECT_NEAR(diagnose(late).actions[0].predicted_gain, 4 / 1.6 - 1, 1e-9)
      << "the loop still takes its 0.6 ms for each sample";
  late = window(4s, pool({stage("read", 2, 1000, 8s, 0.1),
                          stage("gather", 2, 1000, 0s)}));
  late.stages[1].busy_wall = late.stages[1].busy_cpu = 3s;
  late.limits.cpus = 1;
  ASSERT_FALSE(diagnose(late).actions.empty());
  EXPECT_NEAR(diagnose(late).actions[0].predicted_gain, 4.0 / 3 - 1, 1e-9)
      << "one processor gathers a sample in 3 ms";
}

// A session's earlier loaders made batches, too, of which not all were steps
// that were timed; their processor time is that of their own samples.
TEST(Diagnose, ASampleTakesTheProcessorsOfItselfAlone) {
  Snapshot late = window(4s, pool({stage("read", 2, 1000, 8s, 0.1),
                                   stage("gather", 2, 1000, 3s)}));
  late.limits.cpus = 2;
  ASSERT_FALSE(diagnose(late).actions.empty());
  const double gain = diagnose(late).actions[0].predicted_gain;
  EXPECT_NEAR(gain, 4.0 / 1.5 - 1, 1e-9);
  for (StageNumbers& stage : late.stages) {
    stage.items *= 3;
    stage.busy_wall *= 3;
    stage.busy_cpu *= 3;
  }
  late.samples = 3000;
  EXPECT_NEAR(diagnose(late).actions[0].predicted_gain, gain, 1e-9);
  EXPECT_THAT(diagnose(late).because,
              HasSubstr("one processor makes 263 samples/s"));
}

TEST(Diagnose, NamesTheQuotaThatStopsTheProcess) {
  Snapshot late = window(4s, pool({stage("parse", 2, 1000, 7600ms, 0.9)}));
  late.limits.cpus = 2;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("quota")));
  late.use.throttled_us = 1'200'000;
  EXPECT_THAT(diagnose(late).cause,
              AllOf(HasSubstr("than the quota of 2 processors"),
                    HasSubstr("stopped for 0.3 s of every second")));
  late.use.throttled_us = 100'000;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("quota")));
}

TEST(Diagnose, NamesProcessorsThatThreadsShare) {
  // Four threads on one processor: each works for a quarter of its busy time.
  Snapshot late = window(4s, pool({stage("parse", 4, 1000, 9s, 0.4)}));
  late.limits.cpus = 1;
  EXPECT_THAT(diagnose(late).cause,
              HasSubstr("all 1 processors are in use, and 4 threads share"));
  late.limits.cpus = 8;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("in use")));
}

TEST(Diagnose, NamesOtherProgramsThatHaveTheProcessors) {
  // Two threads of four processors, which others share: each works for 40 %
  // of its busy time, and waits for a processor in the rest.
  Snapshot late = window(4s, pool({stage("parse", 2, 1000, 7600ms, 0.4)}));
  late.limits.cpus = 4;
  late.use.cpu_seconds = 3.04;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("other programs")))
      << "how long they waited is unknown";
  late.use.queued_seconds = 4.56;
  EXPECT_THAT(diagnose(late).cause,
              AllOf(HasSubstr("other programs use this machine"),
                    HasSubstr("got a processor for 40 % of the time")));
  late.use.queued_seconds = 0.2;
  EXPECT_THAT(diagnose(late).cause, HasSubstr("as if they waited for one lock"))
      << "they wait for something else";
}

TEST(Diagnose, AStageThatWaitsForAnswersDoesSoOnACrowdedMachineToo) {
  Snapshot late = window(4s, pool({stage("read", 1, 1000, 3800ms, 0.05)}));
  late.stages[0].calls = 10;
  late.use.cpu_seconds = 0.2;
  late.use.queued_seconds = 0.4;
  EXPECT_THAT(diagnose(late).cause, HasSubstr("waits for the database"));
}

TEST(Diagnose, NamesStorageWhereBytesCameFromDrives) {
  Snapshot late = window(4s, pool({stage("read", 1, 1000, 3900ms, 0.1)}));
  late.stages[0].bytes = 40'000'000;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("storage")));
  late.use.read_bytes = 1'000'000;
  EXPECT_THAT(diagnose(late).cause, Not(HasSubstr("storage")))
      << "most of it was in the page cache";
  late.use.read_bytes = 36'000'000;
  EXPECT_THAT(diagnose(late).cause,
              HasSubstr("'read' waits for storage: 9.0 MB/s"));
}

TEST(Diagnose, SaysWhatWentOverTheLink) {
  Snapshot copies = window(2s, pool({stage("gather", 1, 1000, 100ms)}));
  copies.parts.wait_data = 0s;
  copies.parts.wait_copy = 1s;
  copies.stages[0].bytes = 8'000'000;
  EXPECT_THAT(diagnose(copies).because, HasSubstr("4 MB/s were copied"));
}

TEST(Diagnose, NamesTheStageWithTheLowestRate) {
  Verdict verdict = diagnose(
      window(4s, {stage("read", 1, 1000, 1s), stage("parse", 2, 1000, 8s)}));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.stage, "parse");
  EXPECT_THAT(verdict.cause, HasSubstr("processor"));
  ASSERT_FALSE(verdict.actions.empty());
  EXPECT_EQ(verdict.actions[0].knob, "loader.cache");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 3.0, 1e-9);
  EXPECT_EQ(verdict.actions[1].knob, "loader.workers");
  EXPECT_NEAR(verdict.actions[1].predicted_gain, 0.5, 1e-9);
}

// Two threads do reading and preparing: 2 s + 2 s per 1000 rows are 500 rows
// per second. Taken alone, each would look twice as fast.
TEST(Diagnose, AddsUpTheStagesOfOnePool) {
  Verdict verdict =
      diagnose(window(2s, pool({stage("plan", 2, 1000, 10ms),
                                stage("read", 2, 1000, 1500ms, 0.5),
                                stage("parse", 2, 1000, 2490ms)})));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.stage, "parse");
  EXPECT_THAT(verdict.because,
              HasSubstr("'parse' is 62 % of the work of threads that give "
                        "500 samples/s with 2 workers"));
  ASSERT_EQ(verdict.actions.size(), 2u);
  EXPECT_EQ(verdict.actions[1].knob, "loader.workers");
  EXPECT_EQ(verdict.actions[1].from.dump(), "2");
  EXPECT_EQ(verdict.actions[1].to.dump(), "3");
  EXPECT_NEAR(verdict.actions[1].predicted_gain, 0.5, 1e-9);
}

TEST(Diagnose, TheFirstWorkerTakesTheLoadOffTheTrainingThread) {
  Verdict verdict = diagnose(window(
      3s,
      pool({stage("plan", 0, 1000, 1ms), stage("gather", 0, 1000, 1999ms)})));
  EXPECT_EQ(verdict.stage, "gather");
  EXPECT_THAT(verdict.because, HasSubstr("on the training thread"));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.workers");
  EXPECT_EQ(verdict.actions[0].from.dump(), "0");
  EXPECT_EQ(verdict.actions[0].to.dump(), "1");
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("'loader.prefetch' above 0"));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.5, 1e-9);
}

TEST(Diagnose, SeesStepsThatWaitForAFastTrainingThread) {
  Verdict verdict =
      diagnose(window(1500ms, pool({stage("gather", 0, 1000, 500ms)})));
  EXPECT_THAT(verdict.cause, HasSubstr("on the training thread, between"));
  EXPECT_NEAR(verdict.actions.at(0).predicted_gain, 0.5, 1e-9);
}

// The training thread filled batches while the accelerator was busy, so one
// worker in its place would be no faster.
TEST(Diagnose, OffersTwoWorkersWhereOneGainsNothing) {
  Verdict verdict = diagnose(window(2s, pool({stage("gather", 0, 1000, 2s)})));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].from.dump(), "0");
  EXPECT_EQ(verdict.actions[0].to.dump(), "2");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 1.0, 1e-9);
}

TEST(Diagnose, SeesAQueryPerSample) {
  StageNumbers read = stage("read per sample", 0, 1000, 5s, 0.1);
  read.calls = 1000;
  Verdict verdict = diagnose(window(5s, pool({read})));
  EXPECT_THAT(verdict.cause, HasSubstr("once per sample, which takes 5.00 ms"));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.read");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 4.0, 1e-9);
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("then keeps"));
}

// 0.5 s of work stay, the 9 s of waiting are paid once per 10 rows: 1.4 s.
TEST(Diagnose, ReadingByTheBatchHelpsWhereNothingCanBeKept) {
  StageNumbers read = stage("read per sample", 0, 1000, 9500ms, 0.5 / 9.5);
  read.calls = 1000;
  Snapshot snapshot = window(9500ms, pool({read}));
  snapshot.tiers = reading(false);
  Verdict verdict = diagnose(snapshot);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.read");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 9.5 / 1.4 - 1, 1e-6);
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("one statement"));
  EXPECT_THAT(verdict.because, HasSubstr("no faster tier has room"));
}

TEST(Diagnose, SeesRoundTrips) {
  StageNumbers read = stage("read", 1, 1000, 5s, 0.1);
  read.calls = 100;
  EXPECT_THAT(diagnose(window(5s, pool({read}))).cause,
              HasSubstr("10 rows per statement, 50.00 ms"));
}

TEST(Diagnose, AdvisesToKeepTheRowsOnlyWhereTheyFit) {
  Snapshot snapshot = window(4s, pool({stage("read", 8, 1000, 32s)}));
  Action keep = diagnose(snapshot).actions.at(0);
  EXPECT_EQ(keep.knob, "loader.cache");
  EXPECT_EQ(keep.from.string(), "none");
  EXPECT_EQ(keep.to.string(), "auto");

  snapshot.tiers = reading(false);
  Verdict verdict = diagnose(snapshot);
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.because,
              HasSubstr("no faster tier has room: 'device' needs 9.0 GiB on "
                        "the device; 'ram' needs 8.0 GiB on the host"));

  snapshot.tiers.clear();
  EXPECT_TRUE(diagnose(snapshot).actions.empty()) << "nothing was measured";
}

TEST(Diagnose, AdvisesMoreReadersWhereTheyWaitForTheSource) {
  std::vector<StageNumbers> stages = pool({stage("parse", 2, 1000, 100ms)});
  stages.push_back(stage("read", 4, 1000, 16s, 0.1));
  stages.back().pool = "readers";
  Snapshot snapshot = window(4s, stages);
  snapshot.tiers = reading(false);
  snapshot.limits.cpus = 2;
  Verdict verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.stage, "read");
  EXPECT_THAT(verdict.because, HasSubstr("250 samples/s with 4 readers"));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.readers");
  EXPECT_EQ(verdict.actions[0].from, Json(4));
  EXPECT_EQ(verdict.actions[0].to, Json(5));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 0.25, 1e-9);

  snapshot.prefetch = 2;  // of two requests each: no work for a fifth reader
  snapshot.stages.back().calls = 2 * snapshot.parts.steps;
  EXPECT_THAT(diagnose(snapshot).actions[0].cost, HasSubstr("prefetch' at 3"));
  snapshot.stages.back().busy_cpu = snapshot.stages.back().busy_wall;
  EXPECT_TRUE(diagnose(snapshot).actions.empty()) << "no processor is left";
  snapshot.stages.back().busy_cpu = 0s;
  snapshot.stages.back().pool = "all readers";
  verdict = diagnose(snapshot);
  EXPECT_TRUE(verdict.actions.empty()) << "another one would gain nothing";
  EXPECT_THAT(verdict.no_action, HasSubstr("more readers"));
}

TEST(Diagnose, OffersNoWorkersWhereADevicesDecodersAreTheLimit) {
  Snapshot snapshot =
      window(4s, pool({stage("gather", 8, 1000, 3s),
                       stage("finish on device", 8, 1000, 29s, 0.2)}));
  snapshot.limits.cpus = 16;
  Verdict verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.stage, "finish on device");
  EXPECT_THAT(verdict.because, HasSubstr("250 samples/s"));
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.no_action, HasSubstr("\"decode\": \"host\""));

  snapshot.stages[1].busy_cpu = snapshot.stages[1].busy_wall;
  verdict = diagnose(snapshot);
  ASSERT_EQ(verdict.actions.size(), 1U) << "the host decodes there";
  EXPECT_EQ(verdict.actions[0].knob, "loader.workers");
}

TEST(Diagnose, DoesNotAdviseMoreWorkersThanProcessors) {
  Snapshot snapshot = window(4s, pool({stage("gather", 2, 1000, 8s)}));
  snapshot.limits.cpus = 2;
  EXPECT_TRUE(diagnose(snapshot).actions.empty());
}

TEST(Diagnose, AdvisesTheDeviceAgainstCopiesOnlyWhereItHasRoom) {
  Snapshot snapshot = window(2s, pool({stage("gather", 1, 1000, 100ms)}));
  snapshot.parts.wait_copy = 1s;
  snapshot.parts.wait_data = 0s;
  snapshot.tiers = in_ram(true);
  Verdict verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.limit, Limit::copy);
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].from.string(), "ram");
  EXPECT_EQ(verdict.actions[0].to.string(), "device");
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 1.0, 1e-9);

  snapshot.tiers = reading(true, true);
  EXPECT_EQ(diagnose(snapshot).actions.at(0).from.string(), "none");

  snapshot.tiers = in_ram(false);
  EXPECT_TRUE(diagnose(snapshot).actions.empty());
  EXPECT_THAT(diagnose(snapshot).because,
              HasSubstr("'device' needs 9.0 GiB on the device"));
}

TEST(Diagnose, SeesTheHostLoop) {
  Snapshot snapshot = window(2s, {});
  snapshot.parts.host = 1s;
  snapshot.parts.wait_data = 0s;
  EXPECT_EQ(diagnose(snapshot).limit, Limit::host);
}

TEST(Diagnose, SeesThatOrderIsTheTrouble) {
  Snapshot snapshot = window(2s, pool({stage("read", 4, 1000, 8s)}));
  snapshot.wait_order = 900ms;
  EXPECT_EQ(diagnose(snapshot).limit, Limit::order);
  EXPECT_THAT(diagnose(snapshot).cause, HasSubstr("an earlier one is missing"));
}

TEST(Diagnose, SeesBursts) {
  Verdict verdict = diagnose(window(2s, pool({stage("read", 1, 1000, 100ms)})));
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_THAT(verdict.cause, HasSubstr("bursts"));
  EXPECT_TRUE(verdict.actions.empty());
}

TEST(Diagnose, OffersMoreBatchesAheadAgainstBursts) {
  Snapshot late = window(2s, pool({stage("read", 1, 1000, 500ms)}));
  late.prefetch = 2;
  Verdict verdict = diagnose(late);
  EXPECT_THAT(verdict.cause, HasSubstr("bursts"));
  ASSERT_EQ(verdict.actions.size(), 1u);
  EXPECT_EQ(verdict.actions[0].knob, "loader.prefetch");
  EXPECT_EQ(verdict.actions[0].to, Json(4));
  EXPECT_NEAR(verdict.actions[0].predicted_gain, 1.0, 1e-9)
      << "up to what the accelerator takes";
  EXPECT_THAT(verdict.actions[0].cost, HasSubstr("the gain may be less"));

  late.stages[0] = stage("read", 1, 1000, 900ms);
  late.stages[0].pool = "loader";
  EXPECT_NEAR(diagnose(late).actions.at(0).predicted_gain, 1.0, 1e-9);
  late.prefetch = 0;
  EXPECT_TRUE(diagnose(late).actions.empty()) << "it is not known";
}

TEST(Diagnose, NamesSingleSlowPiecesAndNotBursts) {
  Snapshot late = window(2s, pool({stage("map", 1, 1000, 500ms)}));
  for (int piece = 0; piece < 200; ++piece)
    late.stages[0].times.add(piece % 40 == 7 ? 60ms : 1ms);
  EXPECT_THAT(diagnose(late).cause, HasSubstr("one in 40 pieces"));
}

TEST(Diagnose, OffersNoMoreThreadsToWaitForOneLock) {
  Snapshot late = window(4s, pool({stage("map", 2, 1000, 8s, 0.5)}));
  Verdict verdict = diagnose(late);
  EXPECT_THAT(verdict.cause, HasSubstr("waited for one lock"));
  EXPECT_TRUE(verdict.actions.empty());
  EXPECT_THAT(verdict.no_action, HasSubstr("the same lock"));
}

TEST(Diagnose, SeesStagesThatAreFastEnoughButNotAllAtOnce) {
  // Each could make 1,100 samples/s; together they need 1.8 of 2 processors.
  Snapshot late = window(1200ms, {stage("read", 1, 1000, 900ms),
                                  stage("collate", 1, 1000, 900ms)});
  late.limits.cpus = 2;
  Verdict verdict = diagnose(late);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.cause,
            "all stages together need more processor time: 1.5 of 2 "
            "processors are in use");
  EXPECT_THAT(
      verdict.because,
      HasSubstr("one processor makes 556 samples/s, and the accelerator "
                "would take 1000"));
  EXPECT_THAT(verdict.no_action,
              AllOf(HasSubstr("takes 1.8 processors, and there are 2"),
                    HasSubstr("make the stage 'read' cheaper")));
  late.limits.cpus = 4;
  EXPECT_THAT(diagnose(late).cause, HasSubstr("bursts"));
}

TEST(Diagnose, DoesNotGuess) {
  EXPECT_EQ(diagnose(Snapshot()).limit, Limit::unknown);
  EXPECT_THAT(diagnose(window(2s, {})).cause, HasSubstr("no stage"));
  EXPECT_THAT(diagnose(window(2s, pool({}))).cause, HasSubstr("no stage"));
}

TEST(Diagnose, NothingWaitsForStepsThatTakeNoTime) {
  Snapshot snapshot = window(1s, pool({stage("plan", 1, 1000, 900ms)}));
  for (Nanoseconds per_step : {0us, 1us, 4us}) {
    snapshot.parts.compute = 100 * per_step;
    snapshot.parts.wait_data = 1s - 100 * per_step;
    Verdict verdict = diagnose(snapshot);
    EXPECT_EQ(verdict.limit, Limit::unknown);
    EXPECT_THAT(verdict.cause, HasSubstr("only the input was measured"));
    EXPECT_TRUE(verdict.actions.empty());
  }
  snapshot.parts.compute = 100 * 10us;
  snapshot.parts.wait_data = 999ms;
  EXPECT_EQ(diagnose(snapshot).limit, Limit::data);
}

TEST(Diagnose, DoesNotCompareStagesWithAVirtualClock) {
  Snapshot snapshot = window(4s, pool({stage("read", 1, 1000, 4s)}));
  snapshot.virtual_time = true;
  Verdict verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.limit, Limit::data);
  EXPECT_EQ(verdict.stage, "");
  EXPECT_THAT(verdict.because, HasSubstr("cannot be compared"));
  EXPECT_THAT(verdict.because, Not(HasSubstr("samples/s")));
  EXPECT_TRUE(verdict.actions.empty());

  snapshot.parts.wall = 1s;
  snapshot.parts.wait_data = 0s;
  verdict = diagnose(snapshot);
  EXPECT_EQ(verdict.limit, Limit::compute);
  EXPECT_THAT(verdict.cause, HasSubstr("virtual clock cannot show"));
}

// The loader: one pool of 1 to 8 threads does all stages, then delivers. The
// rate that its stages give together decides whether the pool is the trouble,
// and the longest of them is named.
TEST(Diagnose, NamesTheLongestStageOfRandomPools) {
  const char* names[] = {"plan", "read", "parse", "collate"};
  int slow = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 0, 0, 0);
    int workers = 1 + static_cast<int>(random.below(8));
    std::size_t longest = random.below(4);
    double share[4], sum = 0;
    for (std::size_t i = 0; i < 4; ++i)
      sum += share[i] = i == longest ? 1.1 : random.uniform();
    // The accelerator takes 1000 rows per second.
    double rate = 250 * (1 + 7 * random.uniform());
    std::vector<StageNumbers> stages;
    for (std::size_t i = 0; i < 4; ++i)
      stages.push_back(
          stage(names[i], workers, 1000,
                from_seconds(workers * 1000 / rate * share[i] / sum)));
    Verdict verdict = diagnose(window(5s, pool(stages)));
    EXPECT_EQ(verdict.stage, names[longest]) << seed;
    bool bursts = verdict.cause.find("bursts") != std::string::npos;
    EXPECT_EQ(bursts, rate > 1050) << seed;
    slow += !bursts;
  }
  EXPECT_GT(slow, 30);
}

TEST(Diagnose, NamesTheSlowestOfRandomPipelinesWithThreadsOfTheirOwn) {
  const char* names[] = {"plan", "read", "parse", "gather"};
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
  EXPECT_EQ(name_of(Limit::data), "data");
  EXPECT_EQ(name_of(Limit::copy), "copy");
  EXPECT_EQ(name_of(Limit::order), "order");
  EXPECT_EQ(name_of(Limit::host), "host");
  EXPECT_EQ(name_of(Limit::unknown), "unknown");
  Verdict verdict = diagnose(window(4s, {stage("read", 1, 1000, 4s)}));
  EXPECT_EQ(verdict.json().find("limit")->string(), "data");
  EXPECT_EQ(verdict.json().find("actions")->array().size(),
            verdict.actions.size());
}

TEST(TiersOf, TellWhatWouldFitWhateverWasAskedFor) {
  TierRequest request{.rows = 1024, .row_bytes = 1024, .tier = "none"};
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  std::vector<TierCapacity> tiers = tiers_of(
      plan_tiers(request, {.ram_free = 2 * kMiB, .device_free = kMiB}));
  ASSERT_EQ(tiers.size(), 3u);
  EXPECT_FALSE(tiers[0].fits);
  EXPECT_TRUE(tiers[1].fits);
  EXPECT_TRUE(tiers[2].in_use);
  EXPECT_EQ(tiers[1].name, "ram");
  EXPECT_THAT(tiers[0].why, HasSubstr("needs 1.0 MiB on the device"));
}

TEST(TiersOf, TheHostsOwnMemoryIsNoFasterTier) {
  std::vector<TierCapacity> tiers =
      tiers_of(plan_tiers({.rows = 1, .row_bytes = 1, .tier = "none"},
                          {.ram_free = 100'000, .device_is_host = true}));
  ASSERT_EQ(tiers.size(), 2u);
  EXPECT_EQ(tiers[0].name, "ram");
}

}  // namespace
}  // namespace penstock
