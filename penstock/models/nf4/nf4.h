#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/tensor.h"

namespace penstock {

// Weights of four bits: NormalFloat 4 (Dettmers et al., "QLoRA", 2023) in the
// layout of bitsandbytes. The weights of a layer are one list, in C order. Each
// block of 64 of them has a scale, which is its greatest magnitude, and each
// weight is one of 16 fixed values times that scale. Two codes share a byte,
// the first in its high half. Scales are float32, or have eight bits as well.
//
// These functions define the numbers. They are pure, work on the host, and may
// be called by several threads for parts of a list that begin at a block.

inline constexpr std::int64_t kNf4Block = 64;     ///< weights of a scale
inline constexpr std::int64_t kScaleBlock = 256;  ///< scales of a scale
inline constexpr std::uint8_t kNf4Zero = 7;       ///< the code of 0

/// The 16 values between -1 and 1, ascending.
const std::array<float, 16>& nf4_values();
/// The 256 values between -1 and 1 that scales of eight bits stand for,
/// ascending: seven powers of ten, each finer than the one below it.
const std::array<float, 256>& scale_values();

/// How many scales, and bytes of codes, so many weights have.
constexpr std::int64_t nf4_blocks(std::int64_t weights) {
  return (weights + kNf4Block - 1) / kNf4Block;
}
constexpr std::int64_t nf4_bytes(std::int64_t weights) {
  return (weights + 1) / 2;
}

/// Quantises `weights`, of type float32, float64, float16 or bfloat16, at any
/// address. A code is that of the nearest value, of two the lower one; a block
/// of zeros has scale 0. The last half byte of an odd number is 0's.
/// `codes`: nf4_bytes() of their number; `scales`: nf4_blocks() of it.
void quantize_nf4(const TensorView& weights, std::span<std::uint8_t> codes,
                  std::span<float> scales);

/// The weights that these codes stand for, as float32, float16 or bfloat16: the
/// float32 product of value and scale, rounded once.
void dequantize_nf4(std::span<const std::uint8_t> codes,
                    std::span<const float> scales, const TensorView& weights);

/// Scales of eight bits: what is left of them without their mean, in blocks of
/// 256, each with a scale of its own ("double quantisation").
struct NestedScales {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  float mean = 0;
};
NestedScales nested_scales(std::span<const float> scales);

/// The scales that these codes stand for. `values`: 256, as the program that
/// wrote the codes has them.
std::vector<float> scales_of(std::span<const std::uint8_t> codes,
                             std::span<const float> scales, float mean,
                             std::span<const float> values);

}  // namespace penstock
