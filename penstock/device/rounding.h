#pragma once

#include <cstdint>
#include <cstring>

#include "penstock/device/host_device.h"

/// Numbers of 16 bits out of numbers of 32, for processors and GPUs, in whole
/// numbers: the same bits everywhere. Rounded to the nearest, or to the even
/// one of two (IEEE 754, roundTiesToEven). What is no number stays none.
namespace penstock {

PENSTOCK_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Of the product with what has these bits, where that is a number; else these.
/// In bits, as a compiler may take x == x ? x * y : x for x * y, of which what
/// is no number comes out with other bits.
PENSTOCK_HOST_DEVICE inline std::uint32_t multiplied_bits(std::uint32_t bits,
                                                          float factor) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return bits_of(value * factor);
}

PENSTOCK_HOST_DEVICE inline std::uint16_t bfloat16_bits(float value) {
  std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >>
                                    16);
}

PENSTOCK_HOST_DEVICE inline std::uint16_t float16_bits(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t size = bits & 0x7fffffffu;
  std::uint32_t half;
  if (size > 0x7f800000u) {
    half = 0x7e00u;
  } else if (size >= 0x477ff000u) {  // 65520, between 65504 and infinity
    half = 0x7c00u;
  } else if (size < 0x33000000u) {  // below 2^-25, half of the least number
    half = 0;
  } else if (size < 0x38800000u) {  // below 2^-14: of one size, 2^-24
    const std::uint32_t shift = 126u - (size >> 23);
    const std::uint32_t digits = (size & 0x7fffffu) | 0x800000u;
    const std::uint32_t below = digits & ((1u << shift) - 1u);
    const std::uint32_t middle = 1u << (shift - 1u);
    half = digits >> shift;
    half += (below > middle || (below == middle && (half & 1u) != 0)) ? 1u : 0u;
  } else {  // the exponent counts from 15 instead of 127
    half = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace penstock
