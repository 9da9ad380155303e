#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace penstock::files {

/// Puts the numbers of `positions` in `order`, by ascending position, equal
/// ones as they come: by their digits, from the last one on. `spare` is memory
/// that is kept from call to call.
inline void ascending(std::span<const std::int64_t> positions,
                      std::vector<std::size_t>& order,
                      std::vector<std::size_t>& spare) {
  constexpr int kBits = 8;
  order.resize(positions.size());
  spare.resize(positions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (positions.empty()) return;
  std::uint64_t differs = 0;  // bits in which two of them do
  bool sorted = true;
  for (std::size_t at = 1; at < positions.size(); ++at) {
    differs |= static_cast<std::uint64_t>(positions[at] ^ positions[0]);
    sorted = sorted && positions[at - 1] <= positions[at];
  }
  if (sorted) return;
  for (int shift = 0; shift < 64 && differs >> shift != 0; shift += kBits) {
    // The sign counts the other way round.
    auto digit = [&](std::size_t at) {
      const std::uint64_t bits =
          static_cast<std::uint64_t>(positions[at]) ^ (std::uint64_t{1} << 63);
      return static_cast<std::size_t>(bits >> shift & ((1U << kBits) - 1));
    };
    if ((differs >> shift & ((1U << kBits) - 1)) == 0) continue;
    std::array<std::size_t, std::size_t{1} << kBits> ends{};
    for (std::size_t at : order) ++ends[digit(at)];
    std::size_t begin = 0;
    for (std::size_t& end : ends) begin += std::exchange(end, begin);
    for (std::size_t at : order) spare[ends[digit(at)]++] = at;
    order.swap(spare);
  }
}

}  // namespace penstock::files
