#pragma once

#include <bit>
#include <cstdint>

namespace penstock {

// Numbers of 16 bits, of which C++ has none: float16 is that of IEEE 754,
// bfloat16 the upper half of a float32.

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

}  // namespace penstock
