#pragma once

#include <cstddef>
#include <memory>

namespace penstock {

struct FreeAligned {
  void operator()(std::byte* bytes) const;
};
/// Memory aligned to at least a cache line, not initialised.
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

/// From this size on, memory is in huge pages of 2 MiB where the system has
/// them: a page fault for each 4 KiB costs more than writing these.
inline constexpr std::size_t kHugeFrom = std::size_t{8} << 20;

inline constexpr std::size_t kCacheLine = 64;

/// The size of what begins and ends at a cache line and holds `bytes`.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// Null when there is no memory; never null for that reason with 0 bytes.
AlignedBytes allocate_aligned(std::size_t bytes);

}  // namespace penstock
