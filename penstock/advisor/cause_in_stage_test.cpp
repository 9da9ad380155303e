#include "penstock/advisor/cause_in_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

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
                               "than ten times the median of 0.983 ms (one row "
                               "in 200), the longest about"));
  EXPECT_THAT(cause, HasSubstr("the longest steps name their samples"));
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

TEST(CauseInStageTest, AReaderWhoseBytesComeFromADriveWaitsForStorage) {
  StageNumbers read = stage(0.05);
  read.name = "read";
  read.calls = 50;
  read.bytes = 80'000'000;
  EXPECT_THAT(cause_of(read), HasSubstr("waits for answers: 20 rows"));
  Snapshot window = window_of(read);
  window.use.read_bytes = 79'000'000;
  EXPECT_EQ(cause_in_stage(window, read),
            "'read' waits for storage: 39.5 MB/s came from drives");
  window.stages[0].times.add(1ms, 195);  // a drive reads ahead
  window.stages[0].times.add(400ms, 5);
  EXPECT_THAT(cause_in_stage(window, window.stages[0]), HasSubstr("storage"));
  window.use.read_bytes = 1'000'000;  // the others were in memory
  EXPECT_THAT(cause_in_stage(window, read), HasSubstr("waits for answers"));
}

TEST(CauseInStageTest, SaysWhatAStageMayWaitForWhereNothingIsMeasured) {
  EXPECT_THAT(cause_of(stage(0.05)),
              HasSubstr("on a processor for 5 % of its time: it waits for a "
                        "lock that its 2 threads share, a network, or sleeps"));
  StageNumbers on_device = stage(0.05);
  on_device.name = kFinishOnDevice;
  EXPECT_THAT(cause_of(on_device), HasSubstr("is the slowest stage"));
}

}  // namespace
}  // namespace penstock
