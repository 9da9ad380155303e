#include "penstock/monitor/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr std::size_t kGiB = std::size_t{1} << 30;

/// 100 s of steps of which 29.4 were lost.
StepParts some_parts(std::int64_t samples = 0) {
  return {.steps = 216,
          .samples = samples,
          .wall = 100s,
          .compute = 70'600ms,
          .wait_data = 22'700ms,
          .wait_copy = 4'700ms,
          .host = 2s};
}

/// Of the second of ten epochs, 980 steps each.
Progress at_step(std::int64_t step) {
  return {.epoch = 1,
          .epochs = 10,
          .step = step,
          .steps = 980,
          .elapsed_s = 190,
          .steps_taken = 190,
          .steps_left = 262,
          .loss = 2.31,
          .parts = some_parts()};
}

/// The same on a device whose steps are no work: 0.1 us each.
StepParts idle_parts(std::int64_t samples = 0) {
  return {.steps = 10'000'000,
          .samples = samples,
          .wall = 4s,
          .compute = 1s,
          .wait_data = 2s,
          .host = 1s};
}

TEST(ProgressLine, ShowsTheRateOfTokensAndTheShareOfThePeakWhereTheyAreKnown) {
  Progress progress{.epochs = 1, .steps = 980, .parts = some_parts(1600)};
  EXPECT_THAT(progress_line(progress), Not(HasSubstr("tok/s")));
  progress.row.tokens = 2048;
  EXPECT_THAT(progress_line(progress),
              testing::AllOf(HasSubstr(" 2.16 it/s tok/s 32768"),
                             Not(HasSubstr("MFU"))));
  progress.row.flops = 1e12;
  progress.row.peak_flops = 40e12;
  EXPECT_THAT(progress_line(progress), HasSubstr("tok/s 32768 MFU 40.0 %"));
}

TEST(ProgressLine, ShowsWhereTheMissingTimeGoes) {
  Progress progress = at_step(412);
  progress.use.resident_bytes = kGiB + kGiB / 2;
  progress.limits.memory = 8 * kGiB;
  progress.limits.cpus = 2.5;
  progress.cpus_used = 1.44;
  EXPECT_EQ(progress_line(progress),
            "ep 2/10 412/980 [03:10<04:22] 2.16 it/s loss 2.31 | AU 70 % <- "
            "data 23 % copy 5 % host 2 % | VRAM n/a RAM 1.5/8.0 GiB CPU "
            "1.4/2.5");
}

TEST(ProgressLine, NamesTheRankThatTheOthersWaitFor) {
  Progress progress = at_step(412);
  EXPECT_THAT(progress_line(progress), Not(HasSubstr("waits for")));
  progress.waits_for = "rank 2 on gpu03 (input)";
  EXPECT_THAT(progress_line(progress),
              HasSubstr("loss 2.31 | waits for rank 2 on gpu03 (input) | AU"));
}

TEST(ProgressLine, FitsATerminalAndLeavesOutItsLastParts) {
  Progress progress = at_step(490);
  EXPECT_EQ(progress_line(progress, 79),
            "ep 2/10 490/980 ███░░░ [03:10<04:22] 2.16 it/s loss 2.31 | AU 70 "
            "% <- data 23 %");
  EXPECT_EQ(progress_line(progress, 40), "ep 2/10 490/980 ██░░░ [03:10<04:22]");
  const std::string all = progress_line(progress, 200);
  EXPECT_THAT(all, testing::StartsWith(
                       "ep 2/10 490/980 ██████████░░░░░░░░░░ [03:10<04:22]"));
  EXPECT_THAT(all, testing::EndsWith("host 2 % | VRAM n/a RAM n/a CPU n/a"));
  progress.steps = 0;  // nobody knows
  EXPECT_THAT(progress_line(progress, 79),
              testing::StartsWith("ep 2/10 490 [03:10"));
}

TEST(ProgressLine, SaysWhatIsUnknown) {
  std::string line = progress_line({.epochs = 1, .steps = 5});
  EXPECT_THAT(line, HasSubstr("AU n/a"));
  EXPECT_THAT(line, HasSubstr("VRAM n/a RAM n/a CPU n/a"));
  EXPECT_THAT(line, HasSubstr("<--:--"));
}

TEST(ProgressLine, UtilisationOfStepsThatTakeNoTimeIsUnknown) {
  Progress progress{.epochs = 1, .steps = 5, .parts = idle_parts()};
  EXPECT_THAT(progress_line(progress),
              HasSubstr("| AU n/a <- data 50 % host 50 % |"));
  progress.parts.host += std::exchange(progress.parts.compute, 0s);
  EXPECT_THAT(progress_line(progress),
              HasSubstr("| AU n/a <- data 50 % host 50 % |"));
}

// 1000 steps were taken by the run that this one resumes, in no time of ours.
TEST(ProgressLine, TheTimeLeftIsFromThisRunsOwnPace) {
  EXPECT_THAT(progress_line({.epochs = 1,
                             .step = 1010,
                             .steps = 1110,
                             .elapsed_s = 20,
                             .steps_taken = 10,
                             .steps_left = 100}),
              HasSubstr("[00:20<03:20]"));
}

TEST(ProgressLine, CountsEpochsThatHaveNoEnd) {
  std::string line = progress_line(
      {.epoch = 4, .step = 3, .steps = 5, .steps_taken = 3, .steps_left = -1});
  EXPECT_THAT(line, testing::StartsWith("ep 5 3/5 [00:00<--:--]"));
}

TEST(ProgressLine, LeavesOutHowManyStepsThereAreWhereNobodyKnows) {
  EXPECT_THAT(progress_line({.step = 3}), testing::StartsWith("ep 1 3 ["));
}

TEST(ShownShares, AreWhatTheLineShows) {
  EXPECT_EQ(shown_shares(some_parts()),
            "AU 70 % <- data 23 % copy 5 % host 2 %");
  EXPECT_EQ(shown_shares({}), "AU n/a");
}

TEST(ProgressLine, ShowsDeviceMemory) {
  Progress progress{.epochs = 1, .steps = 5};
  progress.device = {.used = kGiB, .total = 24 * kGiB};
  EXPECT_THAT(progress_line(progress), HasSubstr("VRAM 1.0/24.0 GiB"));
}

TEST(ProgressLine, ShowsWhatTheGpusDriverTells) {
  Progress progress{.epochs = 1, .steps = 5};
  progress.device = {.used = kGiB, .total = 24 * kGiB};
  progress.gpu = {.temperature_c = 64, .power_w = 511.6, .utilisation = 0.97};
  EXPECT_THAT(progress_line(progress),
              HasSubstr("| GPU 97 % 64 C 512 W VRAM 1.0/24.0 GiB RAM"));
}

TEST(ProgressLine, ShowsAGpuOfWhichNothingIsKnown) {
  Progress progress{.epochs = 1, .steps = 5};
  progress.gpu.emplace();
  EXPECT_THAT(progress_line(progress), HasSubstr("| GPU n/a n/a n/a VRAM"));
}

TEST(ProgressLine, LeavesOutAGpuWhereTheDeviceIsNone) {
  EXPECT_THAT(progress_line({.epochs = 1, .steps = 5}), Not(HasSubstr("GPU")));
}

TEST(EpochSummary, SaysWhatAnEpochCameTo) {
  EXPECT_EQ(epoch_summary({.epoch = 1,
                           .epochs = 10,
                           .parts = some_parts(327'600),
                           .train_loss = 2.31,
                           .val_loss = 2.4}),
            "epoch 2/10: 100.0 s, 3276 samples/s, AU 70 % <- data 23 % copy 5 "
            "% host 2 %, loss 2.31, val loss 2.4");
}

TEST(EpochSummary, ShowsNoLossWhereThereIsNone) {
  EXPECT_EQ(epoch_summary({.epochs = 2, .parts = idle_parts(40)}),
            "epoch 1/2: 4.00 s, 10 samples/s, AU n/a <- data 50 % host 50 %");
}

TEST(EpochSummary, AnEpochWithoutATimedStepIsUnknown) {
  EXPECT_EQ(epoch_summary({.epochs = 2}),
            "epoch 1/2: n/a s, n/a samples/s, AU n/a");
}

TEST(ShownTime, GrowsWithTheTime) {
  EXPECT_EQ(shown_time(62), "01:02");
  EXPECT_EQ(shown_time(3723), "1:02:03");
  EXPECT_EQ(shown_time(-1), "--:--");
}

}  // namespace
}  // namespace penstock
