#include "penstock/device/cuda/decode_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::cuda {
namespace {

constexpr std::int32_t kSide = 1024;  // 3 MiB
static_assert(kDecodedBytes / (std::size_t{kSide} * kSide * 3) == 10);
static_assert(kHostDecodedBytes / (std::size_t{kSide} * kSide * 3) == 2);

class DecodePlan : public testing::Test {
 protected:
  void add(int count, std::int32_t side, bool host_decodes = false) {
    for (int i = 0; i < count; ++i)
      windows_.push_back({.file = std::span(&byte_, 1),
                          .host_decodes = host_decodes,
                          .height = side,
                          .width = side});
  }
  void add_images(int count) {
    for (int i = 0; i < count; ++i)
      windows_.push_back({.image = &byte_, .height = kSide, .width = kSide});
  }
  /// How many windows come at once.
  std::vector<std::size_t> parts(std::int32_t channels = 3) const {
    const Resize resize{.channels = channels, .windows = windows_};
    std::vector<std::size_t> counts;
    for (std::size_t first = 0; first < windows_.size();
         first += counts.back()) {
      const DecodedPart part = next_decoded(resize, first);
      EXPECT_TRUE(
          (part.there <= kDecodedBytes && part.on_host <= kHostDecodedBytes) ||
          part.windows.size() == 1);
      counts.push_back(part.windows.size());
    }
    return counts;
  }

  const std::byte byte_{};
  std::vector<ResizeWindow> windows_;
};

using Counts = std::vector<std::size_t>;

TEST_F(DecodePlan, TakesAsManyAsThereIsRoomFor) {
  add(25, kSide);
  EXPECT_EQ(parts(), (Counts{10, 10, 5}));
}

TEST_F(DecodePlan, TakesAsManyAsADecoderBestTakesAtOnce) {
  add(70, 8);
  EXPECT_EQ(parts(), (Counts{32, 32, 6}));
}

TEST_F(DecodePlan, TakesOneThatIsLargerByItself) {
  add(1, 8);
  add(1, 4 * kSide);
  add(1, 8);
  EXPECT_EQ(parts(), (Counts{1, 1, 1}));
}

TEST_F(DecodePlan, WhatTheHostDecodesHasRoomOfItsOwn) {
  add(3, kSide, true);
  add(12, kSide);
  EXPECT_EQ(parts(), (Counts{2, 11, 2}));
}

TEST_F(DecodePlan, ImagesOfOneChannelAreTheHosts) {
  add(13, kSide);
  EXPECT_EQ(parts(1), (Counts{8, 5}));
}

TEST_F(DecodePlan, WhatIsInNoFileTakesNoRoom) {
  add(5, kSide);
  add_images(20);
  add(6, kSide);
  EXPECT_EQ(parts(), (Counts{30, 1}));
  const Resize resize{.channels = 3, .windows = windows_};
  EXPECT_EQ(decoded_bytes(resize, windows_[5]), 0U);
  EXPECT_EQ(decoded_bytes(resize, windows_[4]), std::size_t{3} << 20);
}

}  // namespace
}  // namespace penstock::cuda
