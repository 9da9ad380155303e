#include "penstock/monitor/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace penstock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(ProgressLine, ShowsWhereTheMissingTimeGoes) {
  Progress progress{.epoch = 1,
                    .epochs = 10,
                    .step = 412,
                    .steps = 980,
                    .elapsed_s = 190,
                    .left_s = 262,
                    .loss = 2.31};
  progress.parts = {.steps = 216,
                    .wall = 100s,
                    .compute = 70'600ms,
                    .wait_data = 22'700ms,
                    .wait_copy = 4'700ms,
                    .host = 2s};
  progress.use.resident_bytes = std::size_t{3} << 29;
  EXPECT_EQ(progress_line(progress),
            "ep 2/10 412/980 [03:10<04:22] 2.16 it/s loss 2.31 | AU 70 % <- "
            "data 23 % copy 5 % host 2 % | VRAM n/a RAM 1.50 GiB");
}

TEST(ProgressLine, SaysWhatIsUnknown) {
  std::string line = progress_line({.epochs = 1, .steps = 5, .left_s = NAN});
  EXPECT_THAT(line, HasSubstr("AU n/a"));
  EXPECT_THAT(line, HasSubstr("VRAM n/a RAM n/a"));
  EXPECT_THAT(line, HasSubstr("<--:--"));
}

TEST(ProgressLine, ShowsDeviceMemory) {
  Progress progress{.epochs = 1, .steps = 5};
  progress.vram_used = std::size_t{1} << 30;
  progress.vram_total = std::size_t{24} << 30;
  EXPECT_THAT(progress_line(progress), HasSubstr("VRAM 1.0/24.0 GiB"));
}

TEST(ShownTime, GrowsWithTheTime) {
  EXPECT_EQ(shown_time(62), "01:02");
  EXPECT_EQ(shown_time(3723), "1:02:03");
  EXPECT_EQ(shown_time(-1), "--:--");
}

}  // namespace
}  // namespace penstock
