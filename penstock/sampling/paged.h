#pragma once

#include <cstdint>
#include <span>

#include "penstock/sampling/permutation.h"

namespace penstock {

/// Shuffles in two steps, so that what is read together lies together: the
/// pages of an epoch are shuffled, and then the samples of each few pages, a
/// window. Pages hold neighbours; every epoch has other windows.
struct Pages {
  std::int64_t page = 0;  ///< samples in a page; 0: no pages, one exact shuffle
  std::int64_t window = 0;  ///< pages in a window

  explicit operator bool() const { return page > 0; }
  friend bool operator==(const Pages&, const Pages&) = default;
};

/// The order of one epoch, a bijection of 0 .. samples - 1 with O(1) memory.
class PagedOrder {
 public:
  PagedOrder(std::int64_t samples, Pages pages, std::uint64_t seed,
             std::int64_t epoch);
  /// What stands at the positions first, first + 1, ...
  void range(std::int64_t first, std::span<std::int64_t> samples) const;

 private:
  /// Where the slot-th page begins among the positions, in order of windows.
  std::int64_t start_of(std::int64_t slot) const;
  std::int64_t slot_of(std::int64_t position) const;
  Permutation within(std::int64_t window, std::int64_t samples) const;

  const Pages pages_;
  const std::uint64_t seed_;
  const std::int64_t epoch_;
  const std::int64_t count_;  // of pages
  const Permutation pages_shuffled_;
  std::int64_t missing_;     // what the last page is short of
  std::int64_t short_slot_;  // where it comes
};

}  // namespace penstock
