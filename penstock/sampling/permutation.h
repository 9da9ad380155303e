#pragma once

#include <cstdint>
#include <span>

#include "penstock/sampling/feistel.h"

namespace penstock {

/// A keyed bijection of 0..n-1 with O(1) memory: a balanced Feistel network
/// over the next even power of two, walked until it falls inside (Black and
/// Rogaway 2002, "cycle walking").
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t key);
  std::int64_t operator()(std::int64_t position) const;
  /// The position of a sample: the inverse.
  std::int64_t position_of(std::int64_t sample) const;
  /// What stands at the positions first, first + 1, ...: the same numbers,
  /// computed many at a time.
  void range(std::int64_t first, std::span<std::int64_t> samples,
             Instructions use = best_instructions()) const;

 private:
  std::int64_t n_;
  FeistelNetwork network_;
};

}  // namespace penstock
