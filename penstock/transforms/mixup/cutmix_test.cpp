#include "penstock/transforms/mixup/cutmix.h"

#include <gmock/gmock.h>

#include <numeric>

namespace penstock {
namespace {

using testing::HasSubstr;

const std::vector<Output> kOutputs = {
    {.name = "x", .dtype = Dtype::uint8, .row_shape = {3, 8, 10}},
    {.name = "mask", .dtype = Dtype::int64, .row_shape = {8, 10}},
    {.name = "last", .dtype = Dtype::float32, .row_shape = {8, 10, 3}},
    {.name = "class", .dtype = Dtype::int64},
    {.name = "small", .dtype = Dtype::uint8, .row_shape = {3, 4, 4}}};

/// Every number of a row is the row's own.
template <class Number>
std::vector<Number> rows_of(std::int64_t rows, std::int64_t numbers) {
  std::vector<Number> all;
  for (std::int64_t row = 0; row < rows; ++row)
    all.insert(all.end(), static_cast<std::size_t>(numbers),
               static_cast<Number>(row));
  return all;
}

TEST(CutMix, EachPictureHasTheRectangleOfItsPartner) {
  constexpr std::int64_t kRows = 6;
  auto x = rows_of<std::uint8_t>(kRows, 240);
  auto mask = rows_of<std::int64_t>(kRows, 80);
  auto last = rows_of<float>(kRows, 240);
  auto label = rows_of<std::int64_t>(kRows, 1);
  auto mixed = label;
  std::vector<float> lambda(kRows);
  std::vector<std::int64_t> live(kRows);
  std::iota(live.begin(), live.end(), 0);
  auto at = [](auto& numbers) {
    return reinterpret_cast<std::byte*>(numbers.data());
  };
  std::vector<std::byte*> tensors = {at(x),     at(mask),  at(last),
                                     at(label), at(mixed), at(lambda)};
  OperationScratch scratch;
  const BatchKey key{.seed = 4};
  make_cutmix({.outputs = {"x", "mask", "last"}, .labels = {"class"}})
      ->bind(kOutputs)
      ->apply({.tensors = tensors, .rows = kRows, .live = live, .key = key},
              scratch);
  const auto [left, top, right, bottom] = cutmix_box(key, 1, 8, 10);
  ASSERT_GT((right - left) * (bottom - top), 0);
  EXPECT_FLOAT_EQ(
      lambda[0],
      1.0F - static_cast<float>((right - left) * (bottom - top)) / 80.0F);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t xx = 0; xx < 10; ++xx) {
        const bool inside = xx >= left && xx < right && y >= top && y < bottom;
        const auto r = static_cast<std::size_t>(row);
        const std::int64_t expected = inside ? mixed[r] : row;
        const auto pixel = static_cast<std::size_t>(y * 10 + xx);
        EXPECT_NE(mixed[r], row);
        EXPECT_EQ(mask[r * 80 + pixel], expected);
        for (std::size_t c = 0; c < 3; ++c) {
          EXPECT_EQ(x[r * 240 + c * 80 + pixel], expected);
          EXPECT_EQ(last[r * 240 + pixel * 3 + c],
                    static_cast<float>(expected));
        }
      }
}

// Of Beta(1, 1) the part that is cut has the mean 1/2 before its edges are cut
// off; what torchvision's CutMix leaves of a 224 x 224 picture, on 200,000
// draws, is 0.6822.
TEST(CutMix, RectanglesAreDrawnAsTorchvisionDoes) {
  double own = 0;
  constexpr int kDraws = 20'000;
  for (int step = 0; step < kDraws; ++step) {
    const auto [left, top, right, bottom] =
        cutmix_box({.seed = 1, .step = step}, 1, 224, 224);
    own += 1.0 - static_cast<double>((right - left) * (bottom - top)) / 50176.0;
  }
  EXPECT_NEAR(own / kDraws, 0.6822, 0.01);
}

std::string refused(CutMix cutmix) {
  try {
    make_cutmix(std::move(cutmix))->bind(kOutputs);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(CutMix, RefusesByNameWhatItCannotCut) {
  EXPECT_THAT(refused({.outputs = {"class"}}),
              HasSubstr("does not hold pictures"));
  EXPECT_THAT(refused({.outputs = {"x", "small"}}), HasSubstr("another size"));
  EXPECT_THAT(refused({.outputs = {"z"}}), HasSubstr("no tensor 'z'"));
  EXPECT_THAT(refused({.outputs = {"x"}, .alpha = 0}), HasSubstr("0.001"));
  EXPECT_THAT(refused({.outputs = {"x"}, .labels = {"x"}}),
              HasSubstr("named twice"));
}

}  // namespace
}  // namespace penstock
