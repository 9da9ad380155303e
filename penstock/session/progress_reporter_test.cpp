#include "penstock/session/progress_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/monitor/fake/one_gpu.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::Pair;
using namespace std::chrono_literals;

// A GPU that takes a watt more each time it is asked.
int asked = 0;
const NvmlCalls& library() {
  static const NvmlCalls calls = [] {
    NvmlCalls made = one_gpu();
    made.power = [](NvmlCalls::Device, unsigned* milliwatts) {
      *milliwatts = static_cast<unsigned>(++asked) * 1000;
      return 0;
    };
    return made;
  }();
  return calls;
}

class TellerTest : public testing::Test {
 protected:
  TellerTest() {
    asked = 0;
    listener_.progress = [this](const Progress& progress) {
      told_.push_back(progress);
    };
    listener_.note = [this](const std::string& line) {
      notes_.push_back(line);
    };
    time_.sleep_until(1s);
  }
  ProgressReporter reporter(std::unique_ptr<GpuSensor> sensor = nullptr) {
    return ProgressReporter(
        listener_, clock_, *device_,
        {.epochs = 2, .steps_per_epoch = 500, .steps_left = 1000}, time_,
        std::move(sensor));
  }
  static std::unique_ptr<GpuSensor> a_gpu() {
    return std::make_unique<GpuSensor>("0000:41:00.0", library());
  }
  /// A step every 10 ms.
  void take_steps(ProgressReporter& reporter, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      time_.sleep_until(time_.now() + 10ms);
      reporter.step({.epoch = 0, .step = i}, std::nullopt);
    }
  }

  VirtualClock time_;
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  StepClock clock_{time_};
  TrainListener listener_;
  std::vector<Progress> told_;
  std::vector<std::string> notes_;
};

TEST_F(TellerTest, TellsTheFirstStepAndThenTenTimesASecond) {
  ProgressReporter reporter = this->reporter();
  take_steps(reporter, 201);
  ASSERT_EQ(told_.size(), 21u);
  EXPECT_EQ(told_.front().step, 1);
  EXPECT_EQ(told_.back().step, 201);
  EXPECT_EQ(told_.back().steps, 500);
  EXPECT_EQ(told_.back().epochs, 2);
  EXPECT_EQ(told_.back().steps_taken, 201);
  EXPECT_EQ(told_.back().steps_left, 799);
  EXPECT_NEAR(told_.back().elapsed_s, 2.01, 1e-9);
}

TEST_F(TellerTest, AsksAGpuOncePerWindowAndShowsItUntilTheNext) {
  ProgressReporter reporter = this->reporter(a_gpu());
  take_steps(reporter, 700);
  std::vector<std::pair<int, int>> lines;  // by watts; -1: not known
  for (const Progress& progress : told_) {
    ASSERT_TRUE(progress.gpu);
    int watts = static_cast<int>(progress.gpu->power_w.value_or(-1));
    if (lines.empty() || lines.back().first != watts)
      lines.emplace_back(watts, 0);
    ++lines.back().second;
  }
  // A window is the first ten or more lines that take over two seconds.
  EXPECT_THAT(lines,
              ElementsAre(Pair(-1, 20), Pair(1, 21), Pair(2, 21), Pair(3, 8)));
  EXPECT_EQ(asked, 3);
}

TEST_F(TellerTest, ShowsNoGpuWhereTheDeviceIsNone) {
  ProgressReporter reporter = this->reporter();
  take_steps(reporter, 300);
  for (const Progress& progress : told_) EXPECT_FALSE(progress.gpu);
}

TEST_F(TellerTest, AsksNobodyWhenNobodyListens) {
  listener_ = {};
  ProgressReporter reporter = this->reporter(a_gpu());
  take_steps(reporter, 300);
  reporter.epoch({.epochs = 2});
  EXPECT_EQ(asked, 0);
}

TEST_F(TellerTest, TellsWhereItRestsHoweverSoonThatIs) {
  ProgressReporter reporter = this->reporter();
  reporter.pause();
  EXPECT_TRUE(told_.empty());
  take_steps(reporter, 1000);
  reporter.pause();
  EXPECT_EQ(told_.back().steps_taken, 1000);
  EXPECT_EQ(told_.back().steps_left, 0);
}

TEST_F(TellerTest, StepsWithoutEndLeaveAnUnknownNumber) {
  ProgressReporter reporter(listener_, clock_, *device_,
                            {.steps_per_epoch = 500, .steps_left = -1}, time_,
                            nullptr);
  take_steps(reporter, 1);
  EXPECT_EQ(told_.back().steps_left, -1);
}

TEST_F(TellerTest, TellsOfNoStepFromBeforeItsTime) {
  clock_.add({.steps = 7, .wall = 7s, .wait_data = 7s}, 0);
  ProgressReporter reporter = this->reporter();
  clock_.add({.steps = 1, .wall = 1s, .compute = 1s}, 0);
  take_steps(reporter, 1);
  EXPECT_EQ(told_.back().parts.steps, 1);
  EXPECT_EQ(told_.back().parts.wall, 1s);
}

TEST_F(TellerTest, AnEpochIsANote) {
  reporter().epoch({.epoch = 1, .epochs = 2});
  EXPECT_THAT(notes_, ElementsAre("epoch 2/2: n/a s, n/a samples/s, AU n/a"));
  EXPECT_THAT(told_, testing::IsEmpty());
}

}  // namespace
}  // namespace penstock
