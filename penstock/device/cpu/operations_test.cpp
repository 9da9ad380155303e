#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/device/device.h"
#include "penstock/device/rounding.h"

namespace penstock {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<std::byte> bytes(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// Two rows of three pixels of two channels.
class CastTest : public testing::Test {
 protected:
  template <class Number>
  std::vector<Number> cast(Dtype to, bool channels_first = false) {
    std::vector<Number> out(12);
    run_on_host(CastNormalize{.in = in_.data(),
                              .out = reinterpret_cast<std::byte*>(out.data()),
                              .to = to,
                              .rows = 2,
                              .pixels = 3,
                              .channels = channels_,
                              .channels_first = channels_first});
    return out;
  }
  std::vector<std::byte> in_ =
      bytes({0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 255});
  std::vector<Normalization> channels_{{.mean = 20, .deviation = 4},
                                       {.mean = 0, .deviation = 1}};
};

TEST_F(CastTest, SubtractsTheMeanAndDividesByTheDeviationOfTheChannel) {
  EXPECT_THAT(cast<float>(Dtype::float32),
              ElementsAre(-5, 10, 0, 30, 5, 50, 10, 70, 15, 90, 20, 255));
}

TEST_F(CastTest, PutsTheChannelsFirstWhereAsked) {
  EXPECT_THAT(cast<float>(Dtype::float32, true),
              ElementsAre(-5, 0, 5, 10, 30, 50, 10, 15, 20, 70, 90, 255));
}

TEST_F(CastTest, RoundsToSixteenBits) {
  channels_ = {{.mean = 123.675, .deviation = 58.395}, {116.28, 57.12}};
  const std::vector<float> wide = cast<float>(Dtype::float32);
  const auto half = cast<std::uint16_t>(Dtype::float16);
  const auto brain = cast<std::uint16_t>(Dtype::bfloat16);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(half[i], float16_bits(wide[i]));
    EXPECT_EQ(brain[i], bfloat16_bits(wide[i]));
  }
  EXPECT_NEAR(wide[0], -123.675 / 58.395, 1e-6);
  EXPECT_NEAR(wide[11], (255 - 116.28) / 57.12, 1e-6);
}

TEST_F(CastTest, RoundsOnceFromFloat32) {
  // 1/3 and -1/3 of a byte are not exact: the sum is rounded, not the product.
  channels_ = {{.mean = 1, .deviation = 3}, {.mean = 1, .deviation = 3}};
  const auto third = static_cast<float>(1.0 / 3);
  EXPECT_EQ(cast<float>(Dtype::float32)[1], std::fma(10.0F, third, -third));
}

/// An image of 3 lines of 4 pixels of 2 channels: pixel p holds p and 100 + p.
class CropTest : public testing::Test {
 protected:
  CropTest() {
    for (int p = 0; p < 12; ++p) {
      image_.push_back(static_cast<std::byte>(p));
      image_.push_back(static_cast<std::byte>(100 + p));
    }
  }
  std::vector<int> crop(std::vector<CropWindow> windows) {
    std::vector<std::byte> out(windows.size() * 2 * 2 * 2);
    for (CropWindow& window : windows)
      if (window.height != 0) window.image = image_.data();
    run_on_host(CropFlip{.out = out.data(),
                         .height = 2,
                         .width = 2,
                         .channels = 2,
                         .windows = windows});
    std::vector<int> values;
    for (std::byte byte : out) values.push_back(std::to_integer<int>(byte));
    return values;
  }
  std::vector<std::byte> image_;
};

TEST_F(CropTest, TakesAWindowOfLinesAndPixels) {
  EXPECT_THAT(crop({{.height = 3, .width = 4, .top = 1, .left = 2}}),
              ElementsAre(6, 106, 7, 107, 10, 110, 11, 111));
}

TEST_F(CropTest, AFlipTurnsPixelsAroundAndKeepsTheirChannels) {
  EXPECT_THAT(
      crop({{.height = 3, .width = 4, .top = 1, .left = 2, .flip = true}}),
      ElementsAre(7, 107, 6, 106, 11, 111, 10, 110));
}

TEST_F(CropTest, NoImageGivesZerosAndImagesMayDifferInSize) {
  EXPECT_THAT(crop({{}, {.height = 2, .width = 2}, {.height = 4, .width = 3}}),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0,          //
                          0, 100, 1, 101, 2, 102, 3, 103,  //
                          0, 100, 1, 101, 3, 103, 4, 104));
}

TEST(MaskTest, WritesItsValueIntoBoxesAndNothingElse) {
  std::vector<std::uint16_t> out(2 * 3 * 4, 7);
  const std::vector<MaskBox> boxes{
      {.row = 1, .top = 0, .left = 1, .height = 3, .width = 2},
      {.row = 1, .top = 2, .left = 0, .height = 1, .width = 4},
      {.row = 0, .top = 1, .left = 3, .height = 0, .width = 1}};
  run_on_host(Mask{.out = reinterpret_cast<std::byte*>(out.data()),
                   .rows = 2,
                   .height = 3,
                   .width = 4,
                   .element_bytes = 2,
                   .value = 0x3f80,
                   .boxes = boxes});
  const std::uint16_t m = 0x3f80;
  EXPECT_THAT(out, ElementsAre(7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,  //
                               7, m, m, 7, 7, m, m, 7, m, m, m, m));
}

TEST(MaskTest, OfElementsOfOtherSizesIsAnInternalError) {
  std::vector<std::uint64_t> out(4);
  EXPECT_THROW(run_on_host(Mask{.out = reinterpret_cast<std::byte*>(out.data()),
                                .rows = 1,
                                .height = 1,
                                .width = 1,
                                .element_bytes = 3}),
               Error);
}

/// Two lines of four numbers.
std::vector<float> moved(MovedRow row, bool wraps) {
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8};
  row.from = reinterpret_cast<const std::byte*>(in.data());
  std::vector<float> out(8);
  run_on_host(Move{.out = reinterpret_cast<std::byte*>(out.data()),
                   .rows = 1,
                   .height = 2,
                   .width = 4,
                   .wraps = wraps,
                   .moved = {&row, 1}});
  return out;
}

TEST(MoveTest, WhatMovesOutComesInAtTheOtherEndOrZerosDo) {
  EXPECT_THAT(moved({.by = 1}, true), ElementsAre(4, 1, 2, 3, 8, 5, 6, 7));
  EXPECT_THAT(moved({.by = -3}, true), ElementsAre(4, 1, 2, 3, 8, 5, 6, 7));
  EXPECT_THAT(moved({.by = 1}, false), ElementsAre(0, 1, 2, 3, 0, 5, 6, 7));
  EXPECT_THAT(moved({.by = -3}, false), ElementsAre(4, 0, 0, 0, 8, 0, 0, 0));
  EXPECT_THAT(moved({.by = 4}, true), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(moved({.by = -4}, false), Each(0));
}

TEST(MoveTest, MultipliesWhatItMoves) {
  EXPECT_THAT(moved({.by = 2, .factor = 0.5F}, false),
              ElementsAre(0, 0, 0.5F, 1, 0, 0, 2.5F, 3));
}

TEST(OperationsTest, RowsBeyondThirtyTwoBitsAreAnInternalError) {
  const std::vector<Normalization> channels(2);
  EXPECT_THROW(
      run_on_host(CastNormalize{
          .rows = 1, .pixels = std::int64_t{1} << 30, .channels = channels}),
      Error);
  EXPECT_THROW(
      run_on_host(CropFlip{.height = 1 << 16, .width = 1 << 15, .channels = 1}),
      Error);
  EXPECT_THROW(run_on_host(CropFlip{.height = -1, .width = 1, .channels = 1}),
               Error);
  EXPECT_THROW(
      run_on_host(CastNormalize{
          .to = Dtype::float64, .rows = 1, .pixels = 1, .channels = channels}),
      Error);
}

constexpr std::int32_t kOne = 1 << kResizeBits, kHalf = kOne / 2;

/// A row of three pixels of one channel: 10, 20 and 101.
class ResizeTest : public testing::Test {
 protected:
  std::vector<int> resize(std::int32_t width,
                          const std::vector<std::int32_t>& columns,
                          std::int32_t most, bool flip = false) {
    std::vector<std::int32_t> taps = columns;
    taps.insert(taps.end(), {0, 1, kOne});
    const ResizeWindow window{.image = in_.data(),
                              .height = 1,
                              .width = 3,
                              .columns = {.most = most},
                              .rows = {.at = columns.size(), .most = 1},
                              .flip = flip};
    std::vector<std::uint8_t> out(static_cast<std::size_t>(width));
    run_on_host(Resize{.out = reinterpret_cast<std::byte*>(out.data()),
                       .height = 1,
                       .width = width,
                       .channels = 1,
                       .numbers = numbers_,
                       .taps = taps,
                       .windows = {&window, 1}});
    return {out.begin(), out.end()};
  }
  static std::vector<std::byte> counted() {
    std::vector<std::byte> all;
    for (int byte = 0; byte < 256; ++byte)
      all.push_back(static_cast<std::byte>(byte));
    return all;
  }
  const std::vector<std::byte> in_ = bytes({10, 20, 101});
  std::vector<std::byte> numbers_ = counted();
};

TEST_F(ResizeTest, APixelIsTheSumOfItsNeighboursTimesTheirWeights) {
  // (10 + 20) / 2, and (20 + 101) / 2 = 60.5, which is rounded up.
  EXPECT_THAT(resize(2, {0, 1, 2, 2, kHalf, kHalf, kHalf, kHalf}, 2),
              ElementsAre(15, 61));
}

TEST_F(ResizeTest, MirrorsWhatItMade) {
  EXPECT_THAT(resize(2, {0, 2, 1, 1, kOne, kOne}, 1, true),
              ElementsAre(101, 10));
}

TEST_F(ResizeTest, WhatIsBeyondAByteBecomesItsEnd) {
  // 2 * 101 + 101, and 10 - 20.
  EXPECT_THAT(resize(2, {1, 0, 2, 2, kOne, 3 * kHalf, kOne, -kOne}, 2),
              ElementsAre(172, 0));
  EXPECT_THAT(resize(1, {2, 1, 3 * kOne}, 1), ElementsAre(255));
}

TEST_F(ResizeTest, WritesWhatTheTableHas) {
  for (std::byte& number : numbers_) number ^= std::byte{255};
  EXPECT_THAT(resize(1, {0, 1, kOne}, 1), ElementsAre(245));
}

// Of 0 and 1 above 2 and 1 the means are 1 and 2 along rows, whose mean is 2,
// and 1 and 1 along columns.
TEST_F(ResizeTest, RoundsAfterEachAxisInTheOrderThatIsAskedFor) {
  const std::vector<std::byte> image = bytes({0, 1, 2, 1});
  const std::vector<std::int32_t> taps{0, 2, kHalf, kHalf};
  std::vector<int> made;
  for (bool columns_first : {false, true}) {
    const ResizeWindow window{.image = image.data(),
                              .height = 2,
                              .width = 2,
                              .columns = {.most = 2},
                              .rows = {.most = 2},
                              .columns_first = columns_first};
    std::byte out{9};
    run_on_host(Resize{.out = &out,
                       .height = 1,
                       .width = 1,
                       .channels = 1,
                       .numbers = numbers_,
                       .taps = taps,
                       .windows = {&window, 1}});
    made.push_back(std::to_integer<int>(out));
  }
  EXPECT_THAT(made, ElementsAre(2, 1));
}

}  // namespace
}  // namespace penstock
