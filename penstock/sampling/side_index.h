#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/key.h"

namespace penstock {

/// The samples of one side of a split: one bit per row and an index of 0.14
/// bits over them (Jacobson 1989; within a cache line as Vigna's rank9 of
/// 2008), or nothing at all when the side is everything. Immutable, so
/// thread-safe.
class SideIndex {
 public:
  /// Every one of `rows` rows is on this side.
  explicit SideIndex(std::int64_t rows);
  /// Those rows for which `on_side[i]` is true.
  explicit SideIndex(const std::vector<bool>& on_side);
  /// Those rows whose byte in `sides` is `side`.
  SideIndex(std::span<const std::byte> sides, std::byte side);

  std::int64_t size() const { return size_; }
  /// The id of the `nth` sample of this side.
  SampleId select(std::int64_t nth) const;
  /// Replaces each rank within this side by that sample's id: the same ids as
  /// above, found many at a time. What is negative (padding) stays.
  void select(std::span<std::int64_t> ranks) const;
  bool contains(SampleId id) const;
  std::size_t memory() const;

 private:
  /// 512 rows: one cache line.
  struct alignas(64) Block {
    std::array<std::uint64_t, 8> words = {};
  };
  /// Of a block: how many samples come before it in the upper 37 bits, and in 9
  /// bits each how many of its own come before words 2, 4 and 6.
  struct Count {
    std::uint64_t bits;
    std::int64_t before() const {
      return static_cast<std::int64_t>(bits >> 27);
    }
  };
  struct Search;
  void index();
  SampleId select_in(std::size_t block, std::int64_t nth) const;

  std::int64_t size_;
  bool all_;
  std::vector<Block> blocks_;
  std::vector<Count> counts_;  // of each block
  // The block of every 2^start_bits_-th sample, then the last block: where the
  // search for a sample begins and ends.
  int start_bits_ = 0;
  std::vector<std::int64_t> starts_;
};

}  // namespace penstock
