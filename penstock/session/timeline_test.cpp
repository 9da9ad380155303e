#include "penstock/session/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/monitor/fake/one_gpu.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

// A GPU that is a degree warmer each time it is asked.
int asked = 0;
const NvmlCalls& library() {
  static const NvmlCalls calls = [] {
    NvmlCalls made = one_gpu();
    made.temperature = [](NvmlCalls::Device, int, unsigned* celsius) {
      *celsius = static_cast<unsigned>(40 + ++asked);
      return 0;
    };
    made.utilisation = [](NvmlCalls::Device, NvmlCalls::Utilisation* use) {
      *use = {.gpu = 97, .memory = 1};
      return 0;
    };
    return made;
  }();
  return calls;
}

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() { asked = 0; }

  std::unique_ptr<Timeline> timeline(bool gpu = false) {
    return std::make_unique<Timeline>(
        *device_, time_, time_,
        gpu ? std::make_unique<GpuSensor>("0000:41:00.0", library()) : nullptr);
  }
  /// Steps of `each`, one half of which waits for data.
  void take(Timeline& timeline, std::int64_t count, Nanoseconds each,
            std::int64_t epoch = 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      time_.sleep_until(time_.now() + each);
      if (taken_++ > 0)
        clock_.add({.steps = 1,
                    .samples = 8,
                    .wall = each,
                    .compute = each / 2,
                    .wait_data = each / 2},
                   epoch);
      timeline.step(epoch, clock_);
    }
  }
  static double sum(const Json& column) {
    double sum = 0;
    for (const Json& value : column.array()) sum += value.number();
    return sum;
  }

  VirtualClock time_;
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  StepClock clock_{time_};
  std::int64_t taken_ = 0;
};

TEST_F(TimelineTest, HasAPointASecond) {
  auto timeline = this->timeline();
  take(*timeline, 31, 100ms);
  const Json json = timeline->numbers(clock_).json();
  EXPECT_EQ(json.find("seconds")->dump(), "[1.0, 2.0, 3.0, 3.0]");
  EXPECT_EQ(json.find("steps")->dump(), "[10, 10, 10, 0]");
  EXPECT_EQ(json.find("samples")->dump(), "[80, 80, 80, 0]");
  EXPECT_EQ(json.find("compute")->dump(), "[0.5, 0.5, 0.5, 0.0]");
  EXPECT_EQ(json.find("wait_data")->dump(), "[0.5, 0.5, 0.5, 0.0]");
}

TEST_F(TimelineTest, KeepsAtMost512PointsAndLosesNothingHoweverLongItGets) {
  auto timeline = this->timeline();
  for (std::int64_t all : {400, 700, 5'000}) {
    take(*timeline, all - taken_, 1s);
    const Json json = timeline->numbers(clock_).json();
    const std::size_t points = json.find("seconds")->array().size();
    EXPECT_LE(points, Timeline::kMost) << all;
    EXPECT_GE(points, std::min<std::size_t>(Timeline::kMost / 2,
                                            static_cast<std::size_t>(all) - 1));
    EXPECT_EQ(sum(*json.find("steps")), static_cast<double>(all - 1));
    EXPECT_NEAR(sum(*json.find("compute")), static_cast<double>(all - 1) / 2,
                1e-6);
    EXPECT_EQ(json.find("seconds")->array().back().number(),
              static_cast<double>(all - 1));
  }
}

TEST_F(TimelineTest, ColumnsHaveOneLengthAndTimesRise) {
  auto timeline = this->timeline(true);
  take(*timeline, 2'000, 900ms);
  const Json json = timeline->numbers(clock_).json();
  const std::size_t points = json.find("seconds")->array().size();
  for (const auto& [name, column] : json.object())
    EXPECT_EQ(column.array().size(), points) << name;
  for (std::size_t i = 1; i < points; ++i)
    EXPECT_GE(json.find("seconds")->array()[i].number(),
              json.find("seconds")->array()[i - 1].number());
}

TEST_F(TimelineTest, GivesTheMeanOfTheLossesThatBecameKnown) {
  auto timeline = this->timeline();
  take(*timeline, 1, 500ms);
  for (double loss : {4.0, 2.0}) {
    take(*timeline, 1, 400ms);
    timeline->loss(loss);
  }
  take(*timeline, 3, 400ms);
  EXPECT_EQ(timeline->numbers(clock_).json().find("loss")->dump(),
            "[3.0, null]");
}

TEST_F(TimelineTest, KeepsValidationAndCheckpointsApart) {
  auto timeline = this->timeline();
  take(*timeline, 2, 600ms);
  time_.sleep_until(time_.now() + 3s);
  timeline->step(1, clock_, 3s);
  const Json json = timeline->numbers(clock_, 4s).json();
  EXPECT_EQ(json.find("seconds")->dump(), "[3.6, 3.6]");
  EXPECT_EQ(json.find("outside")->dump(), "[3.0, 1.0]");
  EXPECT_EQ(json.find("compute")->dump(), "[0.3, 0.0]");
}

TEST_F(TimelineTest, WhatWasNotMeasuredIsAbsent) {
  auto timeline = this->timeline();
  take(*timeline, 40, 100ms);
  const TimelineNumbers numbers = timeline->numbers(clock_);
  const Json json = numbers.json(), use = numbers.epochs.at(0).json();
  for (const char* name : {"loss", "device_bytes", "gpu_utilisation",
                           "temperature_c", "power_w"}) {
    EXPECT_EQ(json.find(name), nullptr) << name;
    EXPECT_EQ(use.find(name), nullptr) << name;
  }
  EXPECT_GT(json.find("resident_bytes")->array()[0].number(), 0);
  EXPECT_EQ(UseOverTime().json().dump(), "{}");
}

TEST_F(TimelineTest, AsksTheGpuOnceASecondAtMost) {
  auto timeline = this->timeline(true);
  take(*timeline, 301, 10ms);
  EXPECT_EQ(asked, 4);  // at the first step too
  take(*timeline, 10, 3s);
  EXPECT_EQ(asked, 14);
}

TEST_F(TimelineTest, KnowsHowMuchTheGpuWorkedAfterThreeReadings) {
  auto timeline = this->timeline(true);
  take(*timeline, 3, 1s);
  EXPECT_EQ(timeline->gpu_busy(), std::nullopt) << "two, and one before";
  take(*timeline, 1, 1s);
  EXPECT_NEAR(timeline->gpu_busy().value(), 0.97, 1e-9);
}

TEST_F(TimelineTest, ReadsAsOftenWhenPointsGetLong) {
  auto timeline = this->timeline(true);
  take(*timeline, 2'001, 1s);
  EXPECT_EQ(asked, 2'001);
}

TEST_F(TimelineTest, AnEpochHasTheMeanAndTheHighestOfItsReadings) {
  auto timeline = this->timeline(true);
  take(*timeline, 4, 1s, 0);  // 41 to 44 degrees
  take(*timeline, 3, 1s, 1);  // the seam is of the epoch before: 45
  const TimelineNumbers numbers = timeline->numbers(clock_);  // 48
  EXPECT_EQ(numbers.epochs.at(0).json().find("temperature_c")->dump(),
            R"({"mean": 43.0, "max": 45.0})");
  EXPECT_EQ(numbers.epochs.at(1).json().find("temperature_c")->dump(),
            R"({"mean": 47.0, "max": 48.0})");
}

TEST_F(TimelineTest, WhatIsToldDoesNotChangeWhatFollows) {
  auto once = timeline(), often = timeline();
  StepClock other(time_);
  for (int i = 0; i < 50; ++i) {
    time_.sleep_until(time_.now() + 300ms);
    other.add({.steps = 1, .wall = 300ms, .host = 300ms}, 0);
    once->step(0, other);
    often->step(0, other);
    often->numbers(other);
  }
  auto parts = [&](Timeline& timeline) {
    return timeline.numbers(other).json().find("host")->dump();
  };
  EXPECT_EQ(parts(*once), parts(*often));
}

TEST_F(TimelineTest, IsEmptyBeforeTheFirstStep) {
  const TimelineNumbers numbers = timeline()->numbers(clock_);
  EXPECT_TRUE(numbers.points.empty());
  EXPECT_EQ(numbers.json().find("seconds")->dump(), "[]");
}

TEST_F(TimelineTest, ForgetsAnEpoch) {
  auto timeline = this->timeline();
  take(*timeline, 3, 1s, 0);
  take(*timeline, 3, 1s, 1);
  timeline->forget(0);
  EXPECT_FALSE(timeline->numbers(clock_).epochs.contains(0));
}

}  // namespace
}  // namespace penstock
