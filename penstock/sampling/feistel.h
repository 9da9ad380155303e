#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "penstock/base/random.h"

namespace penstock {

/// A balanced Feistel network: a keyed bijection of 0 .. 2^(2 half_bits) - 1.
///
/// A round replaces (left, right) by (right, left ^ f(right)), which can be
/// undone whatever f is. Here two rounds stand in two lines, so that the
/// halves need not change places.
struct FeistelNetwork {
  int half_bits;
  std::array<std::uint64_t, 6> keys;

  [[gnu::always_inline]] std::uint64_t operator()(std::uint64_t at) const {
    const std::uint64_t half = (std::uint64_t{1} << half_bits) - 1;
    std::uint64_t left = at >> half_bits;
    std::uint64_t right = at & half;
    left ^= mix64(right + keys[0]) & half;
    right ^= mix64(left + keys[1]) & half;
    left ^= mix64(right + keys[2]) & half;
    right ^= mix64(left + keys[3]) & half;
    left ^= mix64(right + keys[4]) & half;
    right ^= mix64(left + keys[5]) & half;
    return (left << half_bits) | right;
  }

  std::uint64_t inverse(std::uint64_t at) const {
    const std::uint64_t half = (std::uint64_t{1} << half_bits) - 1;
    std::uint64_t left = at >> half_bits;
    std::uint64_t right = at & half;
    for (std::size_t round = keys.size(); round > 0; round -= 2) {
      right ^= mix64(left + keys[round - 1]) & half;
      left ^= mix64(right + keys[round - 2]) & half;
    }
    return (left << half_bits) | right;
  }
};

/// The instructions that may be used. They change the time that a computation
/// takes, never its result.
enum class Instructions : std::uint8_t { baseline, avx2, avx512 };

/// Those that this processor has, the slowest first.
std::span<const Instructions> usable_instructions();
/// The fastest of them.
Instructions best_instructions();

/// Replaces each of `values` by its image.
void apply(const FeistelNetwork& network, std::span<std::uint64_t> values,
           Instructions use);

}  // namespace penstock
