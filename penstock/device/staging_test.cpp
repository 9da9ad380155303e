#include <gtest/gtest.h>

#include <cstring>

#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

/// On the simulated accelerator: a copy reads its source when it is done, so
/// that memory that was written again too early gives other numbers.
class StagingTest : public testing::Test {
 protected:
  void send(Staging& staging, int number, const Buffer& to) {
    std::memcpy(staging.room(sizeof(number)), &number, sizeof(number));
    staging.send(to.data(), sizeof(number), *stream_);
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
  staging.send(large.data(), kMore, *stream_);
  EXPECT_EQ(number_in(small), 5);
  EXPECT_EQ(number_in(large), 0x01010101);
}

// A copy of a piece takes 4 ms, and so does the work on it.
class SlowStagingTest : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = Staging::kPieceBytes;
  static constexpr std::size_t kPieces = 8;

  void work() {
    clock_.sleep_until(clock_.now() + std::chrono::milliseconds(4));
  }
  VirtualClock clock_;
  std::unique_ptr<Device> device_ = open_sim(
      {.copy_gb_s = static_cast<double>(kPiece) / 4e6, .memory_gib = 1},
      clock_);
  std::unique_ptr<Stream> stream_ = device_->make_stream();
  Buffer there_ = device_->allocate(kPieces * kPiece);
};

TEST_F(SlowStagingTest, APieceIsWrittenWhileTheOneBeforeItIsCopied) {
  for (std::size_t pieces : {1u, 2u}) {
    Staging staging(*device_, pieces);
    Nanoseconds start = clock_.now();
    for (std::size_t p = 0; p < kPieces; ++p) {
      std::byte* room = staging.room(kPiece);
      work();
      std::memset(room, static_cast<int>(p), kPiece);
      staging.send(there_.data() + p * kPiece, kPiece, *stream_);
    }
    stream_->synchronize();
    EXPECT_EQ(clock_.now() - start,
              std::chrono::milliseconds(pieces == 1 ? 64 : 36));
  }
}

TEST_F(SlowStagingTest, WhatIsFetchedIsThereWhenTheCallReturns) {
  Staging staging(*device_, 2);
  const std::size_t bytes = 3 * kPiece + 1000;
  for (std::size_t p = 0; p < 4; ++p) {
    std::memset(staging.room(kPiece), static_cast<int>(p + 1), kPiece);
    staging.send(there_.data() + p * kPiece, kPiece, *stream_);
  }
  stream_->synchronize();
  std::vector<std::byte> pageable(bytes + 1, std::byte{77});
  staging.fetch(pageable.data(), there_.data(), bytes, *stream_);
  for (std::size_t at : {std::size_t{0}, kPiece - 1, kPiece, 2 * kPiece + 5,
                         3 * kPiece, bytes - 1})
    EXPECT_EQ(pageable[at], static_cast<std::byte>(at / kPiece + 1)) << at;
  EXPECT_EQ(pageable[bytes], std::byte{77});
  staging.fetch(pageable.data(), there_.data(), 0, *stream_);
}

}  // namespace
}  // namespace penstock
