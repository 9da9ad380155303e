#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "penstock/base/half.h"
#include "penstock/models/models.h"

// Against bitsandbytes: session/nf4_weights_test.cpp.
namespace penstock {
namespace {

using testing::Each;
using testing::ElementsAre;

template <class Number>
TensorView view_of(std::vector<Number>& numbers, Dtype dtype) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()),
          .dtype = dtype,
          .shape = {std::ssize(numbers)}};
}

struct Quantized {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
};

template <class Number>
Quantized quantized(std::vector<Number> numbers, Dtype dtype) {
  const auto count = std::ssize(numbers);
  Quantized to{
      .codes =
          std::vector<std::uint8_t>(static_cast<std::size_t>(nf4_bytes(count))),
      .scales =
          std::vector<float>(static_cast<std::size_t>(nf4_blocks(count)))};
  quantize_nf4(view_of(numbers, dtype), to.codes, to.scales);
  return to;
}

std::vector<float> dequantized(const Quantized& from, std::size_t count) {
  std::vector<float> numbers(count);
  dequantize_nf4(from.codes, from.scales, view_of(numbers, Dtype::float32));
  return numbers;
}

TEST(Nf4, KeepsItsOwnValuesWithTheFirstCodeInTheHighHalf) {
  std::vector<float> values(nf4_values().begin(), nf4_values().end());
  for (float& value : values) value *= 0.5F;
  const Quantized found = quantized(values, Dtype::float32);
  EXPECT_THAT(found.codes,
              ElementsAre(0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF));
  EXPECT_THAT(found.scales, ElementsAre(0.5F));
  EXPECT_EQ(dequantized(found, 16), values);
}

TEST(Nf4, TakesTheLowerOfTwoValuesThatAreAsNear) {
  const float halfway = (nf4_values()[7] + nf4_values()[8]) / 2;
  const Quantized found = quantized<float>(
      {1, halfway, std::nextafter(halfway, 1.0F), 0}, Dtype::float32);
  EXPECT_THAT(found.codes, ElementsAre(0xF7, 0x87));
}

TEST(Nf4, EndsWithAPartialBlockOfItsOwnScale) {
  std::vector<float> numbers(64 + 3, 0.25F);
  numbers[65] = -8;
  const Quantized found = quantized(numbers, Dtype::float32);
  EXPECT_THAT(found.scales, ElementsAre(0.25F, 8.0F));
  ASSERT_EQ(found.codes.size(), 34U);
  EXPECT_EQ(found.codes[32], 0x70);  // 0.25 / 8 is nearest to 0
  EXPECT_EQ(found.codes[33], 0x77);  // the last half byte belongs to nothing
  EXPECT_EQ(dequantized(found, 67)[65], -8);
}

TEST(Nf4, KeepsABlockOfZeros) {
  const Quantized found = quantized(std::vector<float>(64, 0), Dtype::float32);
  EXPECT_THAT(found.scales, ElementsAre(0));
  EXPECT_THAT(found.codes, Each(0x77));
  EXPECT_THAT(dequantized(found, 64), Each(0));
}

TEST(Nf4, TakesNumbersOfEachFloatingType) {
  const std::vector<float> numbers = {1, -0.5F, 0.125F, 0.75F};
  const Quantized expected = quantized(numbers, Dtype::float32);
  EXPECT_EQ(quantized(std::vector<double>(numbers.begin(), numbers.end()),
                      Dtype::float64)
                .codes,
            expected.codes);
  for (Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    std::vector<std::uint16_t> halves;
    for (float number : numbers) halves.push_back(to_half(dtype, number));
    EXPECT_EQ(quantized(halves, dtype).codes, expected.codes);
    dequantize_nf4(expected.codes, expected.scales, view_of(halves, dtype));
    for (std::size_t i = 0; i < halves.size(); ++i)
      EXPECT_EQ(halves[i],
                to_half(dtype, dequantized(expected, numbers.size())[i]));
  }
}

TEST(NestedScales, AreTheNearestOfTheirValues) {
  std::vector<float> scales;
  for (int i = 0; i < 300; ++i)
    scales.push_back(0.02F + 0.01F * std::sin(static_cast<float>(i)));
  const NestedScales nested = nested_scales(scales);
  ASSERT_EQ(nested.codes.size(), 300U);
  ASSERT_EQ(nested.scales.size(), 2U);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float scale = nested.scales[i / 256];
    const double rest = double{scales[i] - nested.mean} / double{scale};
    double least = 2;
    for (float value : scale_values())
      least = std::min(least, std::abs(double{value} - rest));
    EXPECT_NEAR(std::abs(double{scale_values()[nested.codes[i]]} - rest), least,
                1e-7);
  }
  const std::vector<float> back =
      scales_of(nested.codes, nested.scales, nested.mean, scale_values());
  for (std::size_t i = 0; i < scales.size(); ++i)
    EXPECT_NEAR(back[i], scales[i], 0.01 / 64);
}

TEST(NestedScales, ThatAreAllTheSameStayExact) {
  const NestedScales nested = nested_scales(std::vector<float>(5, 0.375F));
  EXPECT_THAT(nested.scales, ElementsAre(0));
  EXPECT_THAT(
      scales_of(nested.codes, nested.scales, nested.mean, scale_values()),
      Each(0.375F));
  EXPECT_TRUE(nested_scales({}).codes.empty());
}

TEST(ScaleValues, Ascend) {
  EXPECT_EQ(std::ranges::adjacent_find(scale_values(), std::greater_equal<>()),
            scale_values().end());
  EXPECT_EQ(scale_values()[127], 0);
  EXPECT_EQ(scale_values()[255], 1);
}

}  // namespace
}  // namespace penstock
