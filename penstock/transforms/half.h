#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock {

// Numbers of 16 bits, of which C++ has none: float16 is that of IEEE 754,
// bfloat16 the upper half of a float32. To and from float32.

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

/// The nearest number of these formats, as bits; of two the even one. What is
/// too large becomes an infinity, and NaN one of them.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  const std::uint32_t to_even = 0x7FFFU + (bits >> 16 & 1U);
  return static_cast<std::uint16_t>((bits + to_even) >> 16);
}
// Scaling by powers of two is exact, and the float32 that is nearest to the
// number of 11 bits is found by adding what makes all others fall away.
inline std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const float magnitude = std::fabs(value);
  constexpr float kMost = 65520.0F, kLeastNormal = 0x1p-14F;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= kMost) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < kLeastNormal)
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  const auto own = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t nearest = own + 0xFFFU + (own >> 13 & 1U);
  constexpr std::uint32_t kBias = (127U - 15U) << 23;
  return static_cast<std::uint16_t>(sign | (nearest - kBias) >> 13);
}

}  // namespace penstock
