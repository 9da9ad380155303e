#include "penstock/report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::size_t kGiB = std::size_t{1} << 30;

/// A point of ten steps, of so many milliseconds, with so many bytes in use.
TimelineNumbers::Point point(double step_ms, double gib) {
  TimelineNumbers::Point made;
  made.parts = {.steps = 10,
                .wall = from_seconds(0.01 * step_ms),
                .compute = from_seconds(0.01 * step_ms)};
  made.use.device_bytes.add(std::optional(gib * double(kGiB)));
  return made;
}

TimelineNumbers timeline(const std::vector<std::pair<double, double>>& points) {
  TimelineNumbers numbers;
  for (auto [step_ms, gib] : points)
    numbers.points.push_back(point(step_ms, gib));
  return numbers;
}

TEST(MemorySpilled, AFullDeviceWhoseStepsJump) {
  const auto run = timeline({{15, 6},
                             {16, 6.5},
                             {15, 7},
                             {14, 7.2},
                             {90, 7.99},
                             {70, 7.99},
                             {95, 7.98}});
  const auto spilled = spilled_memory(run, 8 * kGiB);
  const auto found = memory_spilled(spilled, true);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("the driver is moving memory"));
  EXPECT_THAT(memory_spilled(spilled, false)->what,
              HasSubstr("samples may be longer, or the driver may be moving"));
  EXPECT_THAT(found->because, HasSubstr("8.0 of 8.0 GiB"));
  EXPECT_THAT(found->because, HasSubstr("90.0 ms, after 15.0 ms"));
}

TEST(MemorySpilled, IsCertainOnlyWhereTheDriverIsThatOfWindows) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / "of_windows";
  EXPECT_FALSE(driver_moves_memory(root));
  std::filesystem::create_directories(root / "dev");
  std::ofstream(root / "dev/dxg");
  EXPECT_TRUE(driver_moves_memory(root));
  std::filesystem::remove_all(root);
}

TEST(MemorySpilled, NeitherAloneIsOne) {
  EXPECT_FALSE(spilled_memory(
      timeline({{15, 6}, {15, 6}, {15, 6}, {90, 6}, {90, 6}, {90, 6}}),
      8 * kGiB))
      << "slower, but there is memory";
  EXPECT_FALSE(spilled_memory(
      timeline({{15, 6}, {15, 6}, {15, 6}, {16, 8}, {15, 8}, {15, 8}}),
      8 * kGiB))
      << "full, as caches make it, and as fast";
  EXPECT_FALSE(spilled_memory(timeline({{15, 6}, {90, 8}}), 8 * kGiB))
      << "too little was seen";
  EXPECT_FALSE(spilled_memory(
      timeline({{15, 8}, {15, 8}, {15, 8}, {90, 8}, {90, 8}, {90, 8}}), {}))
      << "the memory is not known";
  EXPECT_FALSE(spilled_memory({}, 8 * kGiB));
}

TEST(BoundByLaunches, ShortStepsThatTheHostQueuesLate) {
  StepParts parts{.steps = 1000,
                  .wall = 2s,
                  .compute = 1s,
                  .wait_data = 100ms,
                  .host = 900ms};
  const auto found = bound_by_launches(parts);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->because, HasSubstr("computes for 1.00 ms"));
  EXPECT_THAT(found->because, HasSubstr("waits 0.90 ms"));
  // 2 ms for one batch, 3 ms for one of twice the rows.
  EXPECT_THAT(found->next, HasSubstr("33 %"));
  EXPECT_THAT(found->next, HasSubstr("changes the training"));
}

TEST(BoundByLaunches, LongStepsAndThoseThatWaitForDataAreNot) {
  StepParts longer{.steps = 100, .wall = 2s, .compute = 1s, .host = 1s};
  EXPECT_FALSE(bound_by_launches(longer));
  StepParts data{.steps = 1000,
                 .wall = 2s,
                 .compute = 800ms,
                 .wait_data = 700ms,
                 .host = 500ms};
  EXPECT_FALSE(bound_by_launches(data));
  StepParts no_time{.steps = 1000, .wall = 2s, .host = 2s};
  EXPECT_FALSE(bound_by_launches(no_time));
  EXPECT_FALSE(bound_by_launches({}));
}

}  // namespace
}  // namespace penstock
