#include "penstock/trainer/staging.h"

#include <gtest/gtest.h>

#include <cstring>

namespace penstock {
namespace {

/// On the simulated accelerator: a copy reads its source when it is done, so
/// that memory that was written again too early gives other numbers.
class StagingTest : public testing::Test {
 protected:
  void send(Staging& staging, int number, const Buffer& to) {
    std::memcpy(staging.room(sizeof(number)), &number, sizeof(number));
    staging.send(to.data(), *stream_);
  }
  int number_in(const Buffer& there) {
    Buffer here = device_->allocate_pinned(sizeof(int));
    stream_->copy(here.data(), there.data(), sizeof(int));
    stream_->synchronize();
    int number = 0;
    std::memcpy(&number, here.data(), sizeof(number));
    return number;
  }

  std::unique_ptr<Device> device_ =
      open_device({.kind = "sim", .step_ms = 10, .virtual_time = true});
  std::unique_ptr<Stream> stream_ = device_->make_stream();
};

TEST_F(StagingTest, EveryNumberArrivesHoweverManyAreOnTheirWay) {
  Staging staging(*device_, 3);
  std::vector<Buffer> there;
  for (int i = 0; i < 20; ++i) {
    there.push_back(device_->allocate(sizeof(int)));
    send(staging, i, there.back());
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(number_in(there[static_cast<std::size_t>(i)]), i);
}

TEST_F(StagingTest, WaitsForNothingBeforeItComesRound) {
  Staging staging(*device_, 3);
  std::vector<Buffer> there;
  Nanoseconds start = device_->clock().now();
  for (int i = 0; i < 4; ++i) {
    there.push_back(device_->allocate(sizeof(int)));
    stream_->step(static_cast<std::uint64_t>(i));
    send(staging, i, there.back());
    EXPECT_EQ(device_->clock().now() > start, i == 3) << i;
  }
  stream_->synchronize();
}

TEST_F(StagingTest, APieceGrowsWithWhatIsWanted) {
  Staging staging(*device_, 1);
  Buffer small = device_->allocate(sizeof(int));
  send(staging, 5, small);
  constexpr std::size_t kMore = 100'000;
  Buffer large = device_->allocate(kMore);
  std::memset(staging.room(kMore), 1, kMore);
  staging.send(large.data(), *stream_);
  EXPECT_EQ(number_in(small), 5);
  EXPECT_EQ(number_in(large), 0x01010101);
}

}  // namespace
}  // namespace penstock
