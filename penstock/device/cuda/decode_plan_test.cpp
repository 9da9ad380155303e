#include "penstock/device/cuda/decode_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::cuda {
namespace {

class DecodePlan : public testing::Test {
 protected:
  /// Each in a file, of so many pixels; 0: in none.
  void windows_of(const std::vector<std::int32_t>& pixels) {
    for (std::int32_t count : pixels)
      windows_.push_back({.file = count == 0 ? std::span<const std::byte>()
                                             : std::span(&byte_, 1),
                          .height = 1,
                          .width = count});
  }
  /// How many windows come at once, where so many bytes are there.
  std::vector<std::size_t> parts(std::size_t most) {
    const Resize resize{.channels = 3, .windows = windows_};
    std::vector<std::size_t> counts;
    for (std::size_t first = 0; first < windows_.size();
         first += counts.back()) {
      const DecodedPart part = next_decoded(resize, first, most);
      EXPECT_TRUE(part.bytes <= most || part.windows.size() == 1);
      counts.push_back(part.windows.size());
    }
    return counts;
  }

  const std::byte byte_{};
  std::vector<ResizeWindow> windows_;
};

using Counts = std::vector<std::size_t>;

TEST_F(DecodePlan, TakesAsManyAsThereIsRoomFor) {
  windows_of({1, 85, 86, 1, 1});  // 256, 256, 512, 256, 256 bytes
  EXPECT_EQ(parts(1024), (Counts{3, 2}));
  EXPECT_EQ(parts(512), (Counts{2, 1, 2}));
}

TEST_F(DecodePlan, TakesOneThatIsLargerByItself) {
  windows_of({10, 2000, 10});
  EXPECT_EQ(parts(512), (Counts{1, 1, 1}));
}

TEST_F(DecodePlan, WhatIsInNoFileTakesNoRoom) {
  windows_of({85, 0, 0, 0, 85, 1});
  EXPECT_EQ(parts(512), (Counts{5, 1}));
  const Resize resize{.channels = 3, .windows = windows_};
  EXPECT_EQ(decoded_bytes(resize, windows_[1]), 0U);
}

}  // namespace
}  // namespace penstock::cuda
