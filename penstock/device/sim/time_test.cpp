#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Each;

// When the work of the simulated device ends: a step takes 75 ms, a copy one
// microsecond per byte, and virtual time starts at 0.
class SimTime : public testing::Test {
 protected:
  Nanoseconds now() const { return clock_.now(); }

  VirtualClock clock_;
  std::unique_ptr<Device> sim_ = open_sim(
      {.step_ms = 75, .copy_gb_s = 0.001, .memory_gib = 0.001}, clock_);
  std::unique_ptr<Stream> stream_ = sim_->make_stream();
  std::unique_ptr<Stream> other_ = sim_->make_stream();
};

TEST_F(SimTime, StepsAddUpExactly) {
  for (std::uint64_t i = 0; i < 1000; ++i) stream_->step(i);
  Event event = stream_->record();
  EXPECT_EQ(now(), Nanoseconds(0));
  EXPECT_EQ(event.time(), std::chrono::seconds(75));
  EXPECT_EQ(now(), std::chrono::seconds(75));
}

TEST_F(SimTime, AnIdleStreamStartsItsNextWorkNow) {
  stream_->step(0);
  clock_.sleep_until(milliseconds(500));
  EXPECT_EQ(stream_->record().time(), milliseconds(500));
  stream_->step(1);
  EXPECT_EQ(stream_->record().time(), milliseconds(575));
}

TEST_F(SimTime, AnUntimedEventIsWaitedForButTellsNoTime) {
  stream_->step(0);
  Event event = stream_->record_untimed();
  EXPECT_FALSE(event.passed());
  event.wait();
  EXPECT_EQ(now(), milliseconds(75));
  try {
    event.time();
    FAIL() << "it told a time";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

TEST_F(SimTime, ACopyTakesItsBytesByTheBandwidth) {
  Buffer from = sim_->allocate_pinned(1000), there = sim_->allocate(1000);
  stream_->copy(there.data(), from.data(), 1000);
  EXPECT_EQ(stream_->record().time(), microseconds(1000));
}

TEST_F(SimTime, StreamsShareTheCopyEngineOfADirection) {
  Buffer from = sim_->allocate_pinned(100);
  Buffer first = sim_->allocate(100), second = sim_->allocate(100);
  stream_->copy(first.data(), from.data(), 100);
  other_->copy(second.data(), from.data(), 100);
  EXPECT_EQ(stream_->record().time(), microseconds(100));
  EXPECT_EQ(other_->record().time(), microseconds(200));
}

TEST_F(SimTime, CopiesInBothDirectionsGoOnAtOnce) {
  Buffer from = sim_->allocate_pinned(100), to = sim_->allocate_pinned(100);
  Buffer first = sim_->allocate(100), second = sim_->allocate(100);
  stream_->copy(first.data(), from.data(), 100);
  other_->copy(to.data(), second.data(), 100);
  EXPECT_EQ(other_->record().time(), microseconds(100));
  EXPECT_EQ(stream_->record().time(), microseconds(100));
}

TEST_F(SimTime, ACopyOnItsOwnStreamHidesBehindAStep) {
  Buffer from = sim_->allocate_pinned(1000), there = sim_->allocate(1000);
  stream_->step(0);
  other_->copy(there.data(), from.data(), 1000);
  stream_->wait(other_->record());
  stream_->step(1);
  EXPECT_EQ(stream_->record().time(), milliseconds(150));
}

TEST_F(SimTime, ACopyInTheStreamOfTheStepsDoesNot) {
  Buffer from = sim_->allocate_pinned(1000), there = sim_->allocate(1000);
  stream_->step(0);
  stream_->copy(there.data(), from.data(), 1000);
  stream_->step(1);
  EXPECT_EQ(stream_->record().time(), milliseconds(151));
}

TEST_F(SimTime, WorkWithinTheDeviceTakesTheTimeOfItsMemory) {
  Buffer table = sim_->allocate(100'000), out = sim_->allocate(100'000);
  std::vector<GatherField> fields{{table.data(), 1000, 1000, out.data()}};
  std::vector<std::int64_t> rows(100, 7);
  stream_->run(Gather{fields, rows});
  EXPECT_EQ(stream_->record().time(), Nanoseconds(200));
  stream_->copy(out.data(), table.data(), 100'000);
  EXPECT_EQ(stream_->record().time(), Nanoseconds(400));
}

TEST_F(SimTime, AnOperationTakesTheTimeOfWhatItReadsAndWrites) {
  Buffer images = sim_->allocate(60'000), out = sim_->allocate(240'000);
  const std::vector<Normalization> channels(3);
  stream_->run(CastNormalize{.in = images.data(),
                             .out = out.data(),
                             .rows = 2,
                             .pixels = 10'000,
                             .channels = channels});
  EXPECT_EQ(stream_->record().time(), Nanoseconds(300));
  const CropWindow window{.image = images.data(), .height = 200, .width = 100};
  stream_->run(CropFlip{.out = out.data(),
                        .height = 50,
                        .width = 100,
                        .channels = 3,
                        .windows = {&window, 1}});
  EXPECT_EQ(stream_->record().time(), Nanoseconds(330))
      << "of the window alone";
  const MaskBox box{.top = 10, .height = 10, .width = 100};
  stream_->run(Mask{.out = out.data(),
                    .rows = 1,
                    .height = 50,
                    .width = 100,
                    .boxes = {&box, 1}});
  EXPECT_EQ(stream_->record().time(), Nanoseconds(334)) << "of the box alone";
}

class DrawnSteps : public testing::Test {
 protected:
  // How long each of the steps takes, in milliseconds.
  static std::vector<double> times(const std::vector<std::uint64_t>& numbers,
                                   double mean, double deviation) {
    VirtualClock clock;
    std::unique_ptr<Device> sim =
        open_sim({.step_ms = mean, .step_deviation_ms = deviation}, clock);
    std::unique_ptr<Stream> stream = sim->make_stream();
    std::vector<double> times;
    for (std::uint64_t number : numbers) {
      Nanoseconds before = stream->record().time();
      stream->step(number);
      times.push_back(1e3 * seconds(stream->record().time() - before));
    }
    return times;
  }
};

TEST_F(DrawnSteps, DependOnTheirNumberAlone) {
  std::vector<double> forward = times({0, 1, 2, 3, 4}, 75, 5);
  std::vector<double> backward = times({4, 3, 2, 1, 0}, 75, 5);
  std::ranges::reverse(backward);
  EXPECT_THAT(forward, testing::Pointwise(testing::DoubleNear(1e-9), backward));
  EXPECT_NE(forward[0], forward[1]);
}

TEST_F(DrawnSteps, HaveTheMeanAndTheDeviation) {
  std::vector<std::uint64_t> numbers(4000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  double sum = 0, squares = 0;
  for (double time : times(numbers, 75, 5)) {
    sum += time;
    squares += (time - 75) * (time - 75);
  }
  EXPECT_NEAR(sum / 4000, 75, 0.4);
  EXPECT_NEAR(std::sqrt(squares / 4000), 5, 0.4);
}

TEST_F(DrawnSteps, TakeNoNegativeTime) {
  std::vector<double> drawn = times({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 100);
  EXPECT_THAT(drawn, Each(testing::Ge(0.0)));
  EXPECT_THAT(drawn, testing::Contains(0.0));
  EXPECT_THAT(drawn, testing::Contains(testing::Gt(1.0)));
}

TEST_F(DrawnSteps, NeverTakeBackTheTimeOfTheStepsBeforeThem) {
  std::vector<std::uint64_t> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  double sum = 0;
  for (double time : times(numbers, 1, 100)) sum += time;
  VirtualClock clock;
  std::unique_ptr<Device> sim =
      open_sim({.step_ms = 1, .step_deviation_ms = 100}, clock);
  std::unique_ptr<Stream> stream = sim->make_stream();
  for (std::uint64_t number : numbers) stream->step(number);
  EXPECT_NEAR(1e3 * seconds(stream->record().time()), sum, 1e-6);
}

TEST(SimTimeOnTheWallClock, AStepTakesAsLongAsItSays) {
  std::unique_ptr<Device> sim = open_sim({.kind = "sim", .step_ms = 30});
  std::unique_ptr<Stream> stream = sim->make_stream();
  Nanoseconds before = wall_clock().now();
  stream->step(0);
  Event event = stream->record();
  EXPECT_FALSE(event.passed());
  event.wait();
  EXPECT_GE(wall_clock().now() - before, milliseconds(30));
  EXPECT_TRUE(event.passed());
  EXPECT_GE(event.time() - before, milliseconds(30));
}

}  // namespace
}  // namespace penstock
