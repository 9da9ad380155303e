#include "penstock/trainer/pending_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LateLossesTest : public testing::Test {
 protected:
  /// A step of 10 ms that ends with this loss.
  void step(PendingLosses& losses, float loss) {
    pinned_.push_back(device_->allocate_pinned(sizeof(loss)));
    there_.push_back(device_->allocate(sizeof(loss)));
    std::memcpy(pinned_.back().data(), &loss, sizeof(loss));
    stream_->copy(there_.back().data(), pinned_.back().data(), sizeof(loss));
    stream_->step(0);
    losses.add(there_.back().data(), *stream_);
  }
  void sleep_ms(int ms) {
    device_->clock().sleep_until(device_->clock().now() +
                                 std::chrono::milliseconds(ms));
  }

  std::unique_ptr<Device> device_ =
      open_device({.kind = "sim", .step_ms = 10, .virtual_time = true});
  std::unique_ptr<Stream> stream_ = device_->make_stream();
  std::vector<Buffer> pinned_, there_;
};

TEST_F(LateLossesTest, TellsThoseOfTheStepsThatHaveEnded) {
  PendingLosses losses(*device_);
  for (float loss : {1.5f, 2.5f, 3.5f}) step(losses, loss);
  Nanoseconds before = device_->clock().now();
  EXPECT_THAT(losses.take(false), IsEmpty());
  EXPECT_EQ(device_->clock().now(), before);
  sleep_ms(25);
  EXPECT_THAT(losses.take(false), ElementsAre(1.5, 2.5));
  EXPECT_THAT(losses.take(false), IsEmpty());
  sleep_ms(10);
  EXPECT_THAT(losses.take(false), ElementsAre(3.5));
}

TEST_F(LateLossesTest, WhoWaitsGetsAllInTheirOrder) {
  PendingLosses losses(*device_);
  for (float loss : {1.5f, 2.5f, 3.5f}) step(losses, loss);
  EXPECT_THAT(losses.take(true), ElementsAre(1.5, 2.5, 3.5));
  EXPECT_THAT(losses.take(true), IsEmpty());
}

TEST_F(LateLossesTest, NoneIsLostWhenNobodyAsksForLong) {
  PendingLosses losses(*device_);
  std::vector<double> expected;
  for (int i = 0; i < 200; ++i) {
    step(losses, static_cast<float>(i));
    expected.push_back(i);
  }
  EXPECT_EQ(losses.take(true), expected);
}

TEST_F(LateLossesTest, OnTheCpuALossIsKnownAtOnce) {
  std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
  std::unique_ptr<Stream> stream = cpu->make_stream();
  PendingLosses losses(*cpu);
  float loss = 0.1f;
  losses.add(reinterpret_cast<const std::byte*>(&loss), *stream);
  EXPECT_THAT(losses.take(false), ElementsAre(0.1f));
}

}  // namespace
}  // namespace penstock
