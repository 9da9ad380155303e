#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/sample.h"
#include "penstock/sampling/permutation.h"

namespace penstock {

/// Brings samples of about equal length together in batches, so that little of
/// a batch is padding: the shuffled samples of an epoch are taken in groups of
/// some batches, and each group is sorted by length, the longest first. A pure
/// function of the lengths and the permutation; 4 bytes of memory a sample.
///
/// Immutable, so thread-safe.
class LengthGroups {
 public:
  enum class How : std::uint8_t {
    none,
    /// The batches of an epoch come in a keyed order, so that lengths neither
    /// rise nor fall from batch to batch; one that is not full stays last.
    buckets,
    /// As get_length_grouped_indices() of transformers: groups come in their
    /// order, and the longest sample of all stands first, to show at once
    /// whether there is enough memory.
    hf,
  };

  /// Of samples 0 .. lengths.size() - 1.
  LengthGroups(std::vector<std::int32_t> lengths, How how,
               std::int64_t batch_size);

  /// The samples at positions [first, first + to.size()) of an epoch whose
  /// samples are shuffled by `order`; `key` is its own. About a microsecond for
  /// 10 samples of each group that it touches.
  void fill(const Permutation& order, std::uint64_t key, std::int64_t first,
            std::span<SampleRange> to) const;

  /// Of a group, but for the last.
  std::int64_t group_size() const { return group_size_; }
  How how() const { return how_; }

 private:
  std::int64_t samples() const { return std::ssize(lengths_); }
  void fill_sorted(const Permutation& order, std::int64_t first,
                   std::span<SampleRange> to) const;
  void put_longest_first(const Permutation& order, std::int64_t first,
                         std::span<SampleRange> to) const;
  std::int64_t first_longest(const Permutation& order) const;

  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> longest_;  // samples; empty where they are many
  const How how_;
  const std::int64_t batch_size_;
  std::int64_t group_size_ = 0;
  std::int32_t most_ = 0;  // elements of the longest
};

}  // namespace penstock
