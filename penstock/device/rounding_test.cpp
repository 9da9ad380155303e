#include "penstock/device/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace penstock {
namespace {

/// A format of 16 bits: sign, exponent, digits.
struct Format {
  int digits;
  int bias;
  std::uint16_t (*round)(float);
  std::uint16_t infinity;
};
const Format kHalf{10, 15, float16_bits, 0x7c00};
const Format kBrain{7, 127, bfloat16_bits, 0x7f80};

/// What finite bits stand for, by the definition of the format.
double value_of(const Format& format, std::uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> format.digits;
  const int digits = bits & ((1 << format.digits) - 1);
  const double one = exponent == 0 ? 0 : std::ldexp(1.0, format.digits);
  const double size = std::ldexp(one + digits, (exponent == 0 ? 1 : exponent) -
                                                   format.bias - format.digits);
  return (bits & 0x8000) != 0 ? -size : size;
}

class Rounding : public testing::TestWithParam<Format> {};

TEST_P(Rounding, KeepsEveryNumberOfItsOwn) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto own = static_cast<std::uint16_t>(bits);
    if ((own & GetParam().infinity) == GetParam().infinity) continue;
    auto value = static_cast<float>(value_of(GetParam(), own));
    ASSERT_EQ(GetParam().round(value), own) << bits;
  }
}

// Between each number and the next: their middle is exact in 32 bits.
TEST_P(Rounding, TakesTheNearestAndOfTwoTheEvenOne) {
  for (std::uint16_t low = 0; low + 1 < GetParam().infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle =
        (value_of(GetParam(), low) + value_of(GetParam(), high)) / 2;
    const auto value = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(value), middle);
    const std::uint16_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(GetParam().round(value), even) << low;
    ASSERT_EQ(GetParam().round(-value), even | 0x8000) << low;
    ASSERT_EQ(GetParam().round(std::nextafter(value, 0.0F)), low);
    ASSERT_EQ(GetParam().round(std::nextafter(value, HUGE_VALF)), high);
  }
}

TEST_P(Rounding, WhatIsTooLargeIsInfiniteAndNoNumberStaysNone) {
  const std::uint16_t infinity = GetParam().infinity;
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const double step =
      value_of(GetParam(), largest) -
      value_of(GetParam(), static_cast<std::uint16_t>(largest - 1));
  const double middle = value_of(GetParam(), largest) + step / 2;
  const auto value = static_cast<float>(middle);
  EXPECT_EQ(GetParam().round(value), infinity) << "the even one";
  EXPECT_EQ(GetParam().round(std::nextafter(value, 0.0F)), largest);
  EXPECT_EQ(GetParam().round(HUGE_VALF), infinity);
  EXPECT_EQ(GetParam().round(-HUGE_VALF), infinity | 0x8000);
  const std::uint16_t none =
      GetParam().round(std::numeric_limits<float>::quiet_NaN());
  EXPECT_GT(none & 0x7fff, infinity);
}

INSTANTIATE_TEST_SUITE_P(Formats, Rounding, testing::Values(kHalf, kBrain),
                         [](const auto& info) {
                           return info.index == 0 ? "float16" : "bfloat16";
                         });

}  // namespace
}  // namespace penstock
