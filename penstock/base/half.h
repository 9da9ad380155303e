#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "penstock/base/tensor.h"

namespace penstock {

// Numbers of 16 bits, of which C++ has none: float16 is that of IEEE 754
// (binary16), bfloat16 the upper half of a float32.

inline bool is_half(Dtype dtype) {
  return dtype == Dtype::float16 || dtype == Dtype::bfloat16;
}

/// The number that these bits stand for.
inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U)  // an infinity, or NaN
    return std::bit_cast<float>(sign | 0x7F800000U |
                                (magnitude & 0x3FFU) << 13);
  // The exponent's bias is corrected by a multiplication, which is exact and
  // takes denormal numbers along.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}
/// The number that the bits of a float16 or bfloat16 stand for.
inline float from_half(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::bfloat16 ? from_bfloat16(bits) : from_float16(bits);
}

/// The nearest number of these formats, as bits; of two the even one.
inline std::uint16_t to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t to_even = 0x7FFFU + (bits >> 16 & 1U);
  return static_cast<std::uint16_t>((bits + to_even) >> 16);
}
// Scaling by powers of two is exact, and the float32 that is nearest to the
// number of 11 bits is found by adding what makes all others fall away.
inline std::uint16_t to_float16(float value) {
  if (std::isnan(value)) return 0x7E00;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const float magnitude = std::fabs(value);
  constexpr float kMost = 65520.0F, kLeastNormal = 0x1p-14F;
  if (!(magnitude < kMost)) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < kLeastNormal)
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  const auto own = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t nearest = own + 0xFFFU + (own >> 13 & 1U);
  constexpr std::uint32_t kBias = (127U - 15U) << 23;
  return static_cast<std::uint16_t>(sign | (nearest - kBias) >> 13);
}
inline std::uint16_t to_half(Dtype dtype, float value) {
  return dtype == Dtype::bfloat16 ? to_bfloat16(value) : to_float16(value);
}

}  // namespace penstock
