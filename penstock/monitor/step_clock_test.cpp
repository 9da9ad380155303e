#include "penstock/monitor/step_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;

/// A loop over a simulated accelerator in virtual time: 10 ms per step.
class StepClockTest : public testing::Test {
 protected:
  StepClockTest() {
    DeviceSpec spec;
    spec.kind = "sim";
    spec.step_ms = 10;
    spec.copy_gb_s = 1;
    spec.virtual_time = true;
    device_ = open_device(spec);
    stream_ = device_->make_stream();
    copies_ = device_->make_stream();
    clock_ = std::make_unique<StepClock>(device_->clock());
  }

  void pass(Nanoseconds time) {
    device_->clock().sleep_until(device_->clock().now() + time);
  }

  /// One step: `data` until the batch is there, `host` before it is queued.
  void step(Nanoseconds data, Nanoseconds host, std::size_t copied = 0) {
    clock_->ask();
    pass(data);
    clock_->got(*stream_);
    Event ready;
    if (copied != 0) {
      target_ = device_->allocate(copied);
      source_ = device_->allocate_pinned(copied);
      copies_->copy(target_.data(), source_.data(), copied);
      ready = copies_->record();
    }
    pass(host);
    clock_->before_wait(*stream_);
    stream_->wait(ready);
    clock_->after_wait(*stream_);
    stream_->step(number_++);
    clock_->after_step(*stream_);
    stream_->synchronize();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_, copies_;
  std::unique_ptr<StepClock> clock_;
  Buffer target_, source_;
  std::uint64_t number_ = 0;
};

TEST_F(StepClockTest, CountsTheStepsAfterWhichNothingWasLeftToDo) {
  for (int i = 0; i < 6; ++i) {
    clock_->ask();
    clock_->got(*stream_);
    clock_->after_wait(*stream_);
    stream_->step(number_++);
    if (i % 2 == 1) pass(30ms);  // the host works on while the device is done
    clock_->after_step(*stream_);
    stream_->synchronize();
  }
  EXPECT_EQ(clock_->total().steps, 5);
  EXPECT_EQ(clock_->total().drained, 3);
}

TEST_F(StepClockTest, AddsStepsThatSomebodyElseHasTimed) {
  step(0ms, 0ms);
  step(10ms, 0ms);
  clock_->add({.steps = 1, .wall = 5ms, .compute = 4ms, .host = 1ms}, 3);
  EXPECT_EQ(clock_->total().steps, 2);
  EXPECT_EQ(clock_->total().wall, 25ms);
  EXPECT_EQ(clock_->total().compute, 14ms);
  EXPECT_EQ(clock_->by_group().at(3).host, 1ms);
}

TEST_F(StepClockTest, SplitsWallTimeIntoPartsThatSumToIt) {
  for (int i = 0; i < 5; ++i) step(4ms, 1ms, 5'000'000);
  clock_->finish();
  const StepParts& parts = clock_->total();
  EXPECT_EQ(parts.steps, 4) << "the first step only starts the clock";
  EXPECT_EQ(parts.wall, parts.compute + parts.wait_data + parts.wait_copy +
                            parts.host + parts.sync);
  EXPECT_EQ(parts.compute, 40ms);
  EXPECT_EQ(parts.wait_data, 16ms);
  EXPECT_EQ(parts.host, 4ms);
  EXPECT_NEAR(seconds(parts.wait_copy), 0.016, 1e-4)
      << "5 ms per copy, of which the host's 1 ms hides some";
}

TEST_F(StepClockTest, UtilisationIsComputeOverWall) {
  for (int i = 0; i < 11; ++i) step(30ms, 0ms);
  EXPECT_NEAR(clock_->total().utilisation(), 0.25, 1e-9);
}

TEST_F(StepClockTest, WithoutTimeThereIsNoUtilisation) {
  EXPECT_TRUE(std::isnan(clock_->total().utilisation()));
}

TEST_F(StepClockTest, StepsTakeTimeFromFiveMicrosecondsOn) {
  EXPECT_FALSE(StepParts().steps_take_time());
  StepParts parts{.steps = 1000, .wall = 1s, .compute = 4999us};
  EXPECT_FALSE(parts.steps_take_time());
  parts.compute = 5000us;
  EXPECT_TRUE(parts.steps_take_time());
}

TEST_F(StepClockTest, APauseBelongsToNobody) {
  step(0ms, 0ms);
  step(0ms, 0ms);
  clock_->pause();
  pass(500ms);
  step(0ms, 0ms);
  step(0ms, 0ms);
  clock_->finish();
  EXPECT_EQ(clock_->total().steps, 3);
  EXPECT_EQ(clock_->total().wall, 30ms);
}

TEST_F(StepClockTest, AsksAtTheEndOfAStepWithoutLookingAtTheClockAgain) {
  step(0ms, 0ms);
  for (int i = 0; i < 3; ++i) {
    clock_->ask_at_once();
    pass(15ms);  // the step itself takes 10 ms of it, and is then waited for
    clock_->got(*stream_);
    clock_->after_wait(*stream_);
    stream_->step(number_++);
    clock_->after_step(*stream_);
  }
  clock_->finish();
  EXPECT_EQ(clock_->total().steps, 3);
  EXPECT_EQ(clock_->total().wait_data, 15ms + 2 * 5ms);
  EXPECT_EQ(clock_->total().compute, 30ms);
}

TEST_F(StepClockTest, AsksAtOnceOnlyBehindAStep) {
  EXPECT_THROW(clock_->ask_at_once(), Error);
  step(0ms, 0ms);
  clock_->ask_at_once();
  EXPECT_THROW(clock_->ask_at_once(), Error);
  clock_->got(*stream_);
}

TEST_F(StepClockTest, LabelsInAnyOrderAddUpToTheTotalUntilTheyAreForgotten) {
  step(0ms, 0ms);  // starts the clock
  for (std::int64_t i = 0; i < 12; ++i) {
    clock_->group(i % 3 == 2 ? 7 : i / 6, 2);
    step(0ms, Nanoseconds(1ms) * i);
    if (i == 4) {
      EXPECT_EQ(clock_->by_group().at(7).steps, 1);
    }
  }
  EXPECT_EQ(clock_->by_group().size(), 3u);
  EXPECT_EQ(clock_->by_group().at(7).host, (2 + 5 + 8 + 11) * 1ms);
  StepParts sum;
  for (const auto& [label, parts] : clock_->by_group()) sum += parts;
  EXPECT_EQ(sum.wall, clock_->total().wall);
  EXPECT_EQ(sum.samples, 24);
  clock_->forget(7);
  clock_->group(7, 2);
  step(0ms, 3ms);
  EXPECT_EQ(clock_->by_group().at(7).host, 3ms);
  EXPECT_EQ(clock_->total().steps, 13);
}

TEST_F(StepClockTest, ADeviceThatIsNeverBehindWaitsForNoCopy) {
  const std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
  const std::unique_ptr<Stream> stream = cpu->make_stream();
  StepClock clock(cpu->clock());
  for (int i = 0; i < 5; ++i) {
    clock.ask();
    clock.got(*stream);
    clock.after_wait(*stream);
    clock.after_step(*stream);
  }
  const StepParts& parts = clock.total();
  EXPECT_EQ(parts.steps, 4);
  EXPECT_EQ(parts.wait_copy, 0ns);
  EXPECT_EQ(parts.wall, parts.compute + parts.wait_data + parts.host);
}

TEST_F(StepClockTest, KeepsGroupsApart) {
  step(0ms, 0ms);
  step(5ms, 0ms);
  clock_->group(1);
  step(0ms, 2ms);
  clock_->finish();
  EXPECT_EQ(clock_->by_group().at(0).wall, 15ms);
  EXPECT_EQ(clock_->by_group().at(1).host, 2ms);
}

TEST_F(StepClockTest, CountsTheSamplesOfStepsThatHaveEnded) {
  clock_->group(0, 24);
  step(0ms, 0ms);  // only starts the clock
  step(0ms, 0ms);
  clock_->group(0, 7);
  step(0ms, 0ms);
  clock_->finish();
  EXPECT_EQ(clock_->total().samples, 24 + 7);
  EXPECT_EQ((clock_->total() - clock_->total()).samples, 0);
}

TEST_F(StepClockTest, KeepsTheStepsThatTookLongest) {
  step(0ms, 0ms);  // only starts the clock
  for (int i = 0; i < 30; ++i) {
    clock_->group(i / 10, 1, i % 10);
    step(std::chrono::milliseconds(i % 7), 0ms);
  }
  clock_->finish();
  const std::vector<SlowStep>& slowest = clock_->slowest();
  ASSERT_EQ(slowest.size(), StepClock::kSlowest);
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    EXPECT_EQ(slowest[i].parts.wait_data, i < 4 ? 6ms : i < 8 ? 5ms : 4ms);
    EXPECT_EQ((10 * slowest[i].group + slowest[i].number) % 7, i < 4   ? 6
                                                               : i < 8 ? 5
                                                                       : 4);
  }
}

TEST_F(StepClockTest, AStepThatWasTimedElsewhereHasNoNumber) {
  clock_->group(2, 1, 7);
  clock_->add({.steps = 1, .wall = 5ms, .compute = 5ms}, 2);
  ASSERT_EQ(clock_->slowest().size(), 1u);
  EXPECT_EQ(clock_->slowest().front().group, 2);
  EXPECT_EQ(clock_->slowest().front().number, -1);
}

}  // namespace
}  // namespace penstock
