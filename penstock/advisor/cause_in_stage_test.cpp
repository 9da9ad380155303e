#include "penstock/advisor/cause_in_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

/// Of a machine with eight processors.
Snapshot window_of(const StageNumbers& stage) {
  Snapshot window;
  window.parts.wall = 2s;
  window.limits.cpus = 8;
  window.stages = {stage};
  return window;
}

/// Two threads that worked for two seconds each, on a processor for `cpu` of
/// that, at 1,000 rows.
StageNumbers stage(double cpu) {
  StageNumbers stage{.name = "map", .workers = 2, .items = 1000};
  stage.busy_wall = 4s;
  stage.busy_cpu = from_seconds(4 * cpu);
  return stage;
}

std::string cause_of(const StageNumbers& stage) {
  return cause_in_stage(window_of(stage), stage);
}

/// 200 pieces of 1 ms, of which some take longer.
StageNumbers with_slow(int slow, Nanoseconds took) {
  StageNumbers slowed = stage(1);
  slowed.times.add(1ms, 200 - slow);
  slowed.times.add(took, slow);
  return slowed;
}

TEST(CauseInStageTest, NamesAFewPiecesThatTakeLong) {
  const std::string cause = cause_of(with_slow(5, 60ms));
  EXPECT_THAT(cause, HasSubstr("one in 40 pieces of work of 'map' takes more "
                               "than ten times the median of 0.999 ms (one row "
                               "in 200; the longest takes 60 ms)"));
  EXPECT_THAT(cause, HasSubstr("longest steps names the samples"));
}

TEST(CauseInStageTest, PiecesThatAreNotLongOrNotFewOrTheFirstAreNotNamed) {
  EXPECT_THAT(cause_of(with_slow(5, 8ms)), Not(HasSubstr("pieces")));
  EXPECT_THAT(cause_of(with_slow(60, 60ms)), Not(HasSubstr("pieces")))
      << "more than one row in twenty";
  EXPECT_THAT(cause_of(with_slow(3, 200ms)), Not(HasSubstr("pieces")))
      << "as if each thread had opened something";
  EXPECT_THAT(cause_of(with_slow(4, 11ms)), Not(HasSubstr("pieces")))
      << "they add little";
}

// One reading of the clock stands for 8 pieces of 5 us.
TEST(CauseInStageTest, OneStallThatWasTimedAmongShortPiecesIsNotAShareOfThem) {
  auto stalled = [](int readings) {
    StageNumbers short_pieces = stage(1);
    short_pieces.times.add(5us, 10'000);
    short_pieces.times.add(40ms, 8 * readings);
    return single_pieces(short_pieces);
  };
  EXPECT_EQ(stalled(1), std::nullopt);
  EXPECT_EQ(stalled(3), std::nullopt) << "as if each thread opened something";
  EXPECT_THAT(stalled(6).value_or(""), HasSubstr("the longest takes 40 ms"));
  StageNumbers longer = stage(1);  // from 32 us on each is timed
  longer.times.add(40us, 1'000);
  longer.times.add(40ms, 5);
  EXPECT_THAT(single_pieces(longer).value_or(""), HasSubstr("pieces of work"));
}

TEST(CauseInStageTest, SeesThreadsOfWhichOneWorksAtATime) {
  EXPECT_THAT(cause_of(stage(0.5)),
              HasSubstr("one of its 2 threads on a processor at a time"));
  auto turns = [](const StageNumbers& of) {
    return takes_turns(window_of(of), of);
  };
  EXPECT_TRUE(turns(stage(0.5)));
  EXPECT_FALSE(turns(stage(0.7)));
  StageNumbers alone = stage(0.5), asking = stage(0.5);
  alone.workers = 1;
  asking.calls = 10;
  EXPECT_FALSE(turns(alone));
  EXPECT_FALSE(turns(asking));
  Snapshot crowded = window_of(stage(0.5));
  crowded.use.cpu_seconds = 1;
  crowded.use.queued_seconds = 1;
  EXPECT_FALSE(takes_turns(crowded, stage(0.5)));
}

/// Looks at the threads of a stage: at work, in a lock, asleep.
StageNumbers looked_at(double cpu, std::int64_t running, std::int64_t in_lock,
                       std::int64_t asleep) {
  StageNumbers seen = stage(cpu);
  seen.seen = {.running = running, .in_lock = in_lock, .asleep = asleep};
  seen.seen.looks = seen.seen.total();
  return seen;
}

TEST(CauseInStageTest,
     ALockUnderWhichOneComputesIsNamedBesideOtherProgramsToo) {
  const StageNumbers turns = looked_at(0.32, 155, 72, 0);
  Snapshot crowded = window_of(turns);
  crowded.limits.cpus = 2;
  crowded.use.cpu_seconds = 1.3;
  crowded.use.queued_seconds = 2;
  EXPECT_THAT(cause_in_stage(crowded, turns),
              AllOf(HasSubstr("the others waited for one lock"),
                    HasSubstr("other programs use this machine")));
  EXPECT_TRUE(takes_turns(crowded, turns));
  const StageNumbers free = looked_at(0.32, 220, 7, 0);
  EXPECT_THAT(cause_in_stage(crowded, free),
              AllOf(HasSubstr("needs more processor time: other programs"),
                    Not(HasSubstr("lock"))));
  EXPECT_FALSE(takes_turns(crowded, free));
}

TEST(CauseInStageTest, ThreadsThatWereNotSeenInALockDoNotTakeTurns) {
  EXPECT_THAT(cause_of(looked_at(0.5, 50, 50, 0)), HasSubstr("one lock"));
  EXPECT_THAT(cause_of(looked_at(0.5, 50, 5, 45)), Not(HasSubstr("lock")))
      << "half of their time they sleep";
  EXPECT_THAT(cause_of(looked_at(0.75, 50, 50, 0)), Not(HasSubstr("lock")))
      << "one lock lets them use one processor at most";
  EXPECT_THAT(cause_of(looked_at(0.5, 4, 4, 0)), HasSubstr("as if they"))
      << "too few looks";
}

TEST(CauseInStageTest, ALockUnderWhichOneSleepsIsNamedAlone) {
  const std::string cause = cause_of(looked_at(0.1, 31, 98, 101));
  EXPECT_THAT(cause,
              AllOf(HasSubstr("waits for a lock that its 2 threads share: it "
                              "waited so in 43 % of the samples"),
                    Not(HasSubstr("network")), Not(HasSubstr("sleeps"))));
  StageNumbers alone = looked_at(0.1, 10, 75, 15);
  alone.workers = 1;
  EXPECT_THAT(cause_of(alone), HasSubstr("another thread or program holds"));
}

TEST(CauseInStageTest, NamesWhatAStageWasSeenWaitingFor) {
  EXPECT_THAT(cause_of(looked_at(0.05, 5, 0, 95)), HasSubstr("it sleeps"));
  StageNumbers asks = stage(0.05);
  asks.seen = {.in_network = 95, .looks = 95};
  EXPECT_THAT(cause_of(asks), HasSubstr("it waits for the network"));
  asks.seen = {.in_file = 95, .looks = 95};
  EXPECT_THAT(cause_of(asks), HasSubstr("it waits for storage"));
  asks.seen = {.asleep = 50, .looks = 5};
  EXPECT_THAT(cause_of(asks), HasSubstr("the network, or sleep"))
      << "too few looks";
}

// In pool.submit(...).result(), say: one lock would leave one of them out.
TEST(CauseInStageTest, ThreadsThatAllWaitWaitForAnothersResult) {
  for (double cpu : {0.02, 0.1}) {
    const StageNumbers waits = looked_at(cpu, 4, 96, 0);
    EXPECT_THAT(
        cause_of(waits),
        AllOf(HasSubstr("waits for another thread's result, or for a "
                        "lock that another thread or program holds"),
              HasSubstr("96 % of the samples"), Not(HasSubstr("at a time"))));
    EXPECT_FALSE(takes_turns(window_of(waits), waits)) << "more would help";
  }
}

/// The verdict on a loop that waits for this stage for nine tenths of the time,
/// on two processors.
Verdict verdict_of(const StageNumbers& stage) {
  Snapshot late = window_of(stage);
  late.parts.steps = 100;
  late.parts.samples = 1000;
  late.parts.compute = 200ms;
  late.parts.wait_data = 1800ms;
  late.limits.cpus = 2;
  late.stages[0].pool = "loader";
  return diagnose(late);
}

TEST(CauseInStageTest, MoreThreadsAreOfferedUnlessTheyWaitForALockOfTheirs) {
  for (const StageNumbers& waits :
       {looked_at(0.02, 4, 96, 0), looked_at(0.02, 4, 0, 96)}) {
    const Verdict verdict = verdict_of(waits);
    ASSERT_FALSE(verdict.actions.empty());
    EXPECT_EQ(verdict.actions[0].knob, "loader.workers");
    EXPECT_EQ(verdict.actions[0].to, Json(3)) << "of two processors";
    EXPECT_THAT(verdict.actions[0].cost, HasSubstr("mostly waits"));
  }
  for (const StageNumbers& waits :
       {looked_at(0.1, 31, 98, 101), looked_at(0.5, 50, 50, 0)}) {
    const Verdict verdict = verdict_of(waits);
    EXPECT_TRUE(verdict.actions.empty());
    EXPECT_THAT(verdict.no_action, HasSubstr("wait for the same lock"));
  }
}

TEST(CauseInStageTest, ThreadsTakeTurnsWhereTheyUseTheProcessorTheyCouldHave) {
  const StageNumbers waits = looked_at(0.1, 50, 50, 0);
  EXPECT_FALSE(takes_turns(window_of(waits), waits)) << "a fifth of one";
  EXPECT_THAT(cause_of(waits), HasSubstr("a lock that its 2 threads share"));
  Snapshot crowded = window_of(waits);
  crowded.use.cpu_seconds = 1;
  crowded.use.queued_seconds = 3;  // others have three quarters of it
  EXPECT_TRUE(takes_turns(crowded, waits));
}

TEST(CauseInStageTest, ALockIsNotNamedWhereMostlySomethingElseIsWaitedFor) {
  StageNumbers asks = stage(0.05);
  asks.seen = {.running = 5, .in_lock = 22, .in_network = 73, .looks = 100};
  EXPECT_THAT(cause_of(asks), HasSubstr("it waits for the network"));
  asks.workers = 8;
  asks.seen = {.running = 4, .in_lock = 36, .asleep = 60, .looks = 100};
  EXPECT_THAT(cause_of(asks), HasSubstr("it sleeps"));
}

TEST(CauseInStageTest, AQuotaThatIsUsedUpIsNamedWhereOthersLeaveItNoMore) {
  Snapshot window = window_of(stage(0.25));  // of two threads: 0.5 processors
  window.limits = {.cpus = 0.5, .cpus_origin = "/sys/fs/cgroup/job/cpu.max"};
  window.use.throttled_us = 50'000;
  EXPECT_THAT(cause_in_stage(window, window.stages[0]),
              HasSubstr("than the quota of 0.5 processors allows"));
  window.limits.cpus_origin = "affinity";
  EXPECT_THAT(cause_in_stage(window, window.stages[0]),
              HasSubstr("all 0.5 processors are in use"));
}

TEST(CauseInStageTest, AReaderWhoseBytesComeFromADriveWaitsForStorage) {
  StageNumbers read = stage(0.05);
  read.name = "read";
  read.work = StageWork::reads;
  read.calls = 50;
  read.bytes = 80'000'000;
  EXPECT_THAT(cause_of(read), HasSubstr("waits for the database: 20 rows"));
  Snapshot window = window_of(read);
  window.use.read_bytes = 79'000'000;
  EXPECT_EQ(cause_in_stage(window, read),
            "'read' waits for storage: 39.5 MB/s came from drives");
  window.stages[0].times.add(1ms, 195);  // a drive reads ahead
  window.stages[0].times.add(400ms, 5);
  EXPECT_THAT(cause_in_stage(window, window.stages[0]), HasSubstr("storage"));
  window.use.read_bytes = 1'000'000;  // the others were in memory
  EXPECT_THAT(cause_in_stage(window, read),
              HasSubstr("waits for the database"));
}

TEST(CauseInStageTest, SaysWhatAStageMayWaitForWhereNothingIsMeasured) {
  EXPECT_THAT(cause_of(stage(0.05)),
              AllOf(HasSubstr("on a processor for only 5 % of its time"),
                    HasSubstr("a lock that its 2 threads share")));
  StageNumbers on_device = stage(0.05);
  on_device.work = StageWork::on_device;
  EXPECT_THAT(cause_of(on_device), HasSubstr("is the slowest stage"));
}

}  // namespace
}  // namespace penstock
