#include "penstock/base/half.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

TEST(Half, IsTheNearestNumber) {
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80);
  EXPECT_EQ(to_bfloat16(1.00390625F), 0x3F80);  // half way: to the even one
  EXPECT_EQ(to_bfloat16(1.01171875F), 0x3F82);
  EXPECT_EQ(to_float16(1.0F), 0x3C00);
  EXPECT_EQ(to_float16(-2.0F), 0xC000);
  EXPECT_EQ(to_float16(65504.0F), 0x7BFF);
  EXPECT_EQ(to_float16(1e6F), 0x7C00);
  EXPECT_EQ(to_float16(0x1p-24F), 0x0001);
  EXPECT_EQ(to_float16(1.00048828125F), 0x3C00);
  EXPECT_EQ(to_float16(1.00146484375F), 0x3C02);
}

TEST(Half, IsTheNumberThatItWasMadeOf) {
  for (Dtype dtype : {Dtype::float16, Dtype::bfloat16})
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const float number = from_half(dtype, half);
      if (std::isnan(number)) continue;
      EXPECT_EQ(to_half(dtype, number), half) << number;
    }
  EXPECT_EQ(from_float16(0x3555), 0x555p-12F);
  EXPECT_EQ(from_float16(0x0001), 0x1p-24F);
  EXPECT_EQ(from_float16(0xFC00), -std::numeric_limits<float>::infinity());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Dtype dtype : {Dtype::float16, Dtype::bfloat16})
    EXPECT_TRUE(std::isnan(from_half(dtype, to_half(dtype, nan))));
  EXPECT_EQ(from_bfloat16(0xC0A0), -5.0F);
}

}  // namespace
}  // namespace penstock
