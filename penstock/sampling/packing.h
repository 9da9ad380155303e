#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/sample.h"

namespace penstock {

/// How samples that differ in length are put into bins of one size.
struct BinRules {
  std::int32_t size = 2048;  ///< elements of a bin, at most 2^24
  /// Concatenated in their order and cut where a bin ends. False: best fit
  /// decreasing, where only samples that are longer than a bin are cut.
  bool wrapped = false;
  /// Samples that are packed together, in the keyed order of `seed`; 0: all of
  /// them. Not of `wrapped`.
  std::int64_t window = 0;
  /// In every epoch others of the same length take a sample's place, so that
  /// its neighbours change and the number of bins does not. Not of `wrapped`.
  bool repack = false;
  std::uint64_t seed = 0;
};

/// The share of so many bins of this size that elements fill; 1 of no bin.
double filled_share(std::int64_t elements, std::int64_t bins,
                    std::int32_t size);

/// Bins of pieces of samples. A pure function of lengths and rules; 12 bytes of
/// memory for each piece (16 where it repacks) and 8 for each bin.
///
/// Immutable, so thread-safe.
class Bins {
 public:
  Bins() = default;
  /// Of samples 0 .. lengths.size() - 1, fewer than 2^32 of them. Those of
  /// length 0 are in no bin.
  Bins(std::span<const std::int32_t> lengths, const BinRules& rules);

  std::int64_t count() const { return std::ssize(ends_); }
  /// Appends the pieces of a bin, in their order: at most `size` elements, no
  /// piece empty. Returns how many elements are left.
  std::int32_t append(std::int64_t bin, std::int64_t epoch,
                      std::vector<SampleRange>& to) const;

  std::int64_t samples() const { return samples_; }  ///< in bins
  std::int64_t empty() const { return empty_; }      ///< of length 0
  std::int64_t cut() const { return cut_; }          ///< in more than one piece
  std::int64_t elements() const { return elements_; }
  /// The share of all bins that holds elements.
  double efficiency() const;

 private:
  struct Piece {
    std::uint32_t sample;
    std::int32_t begin, length;
  };
  /// Pieces [begin, end) that may take each other's place.
  struct Group {
    std::uint32_t begin = 0, end = 0;
  };
  class Filling;

  void wrap(std::span<const std::int32_t> lengths);
  void fit(std::span<const std::int32_t> lengths);
  void fit_window(std::span<const std::int32_t> lengths,
                  std::span<const std::int64_t> samples, Filling& filling);
  Piece piece_at(std::uint32_t slot, std::int64_t epoch) const;

  BinRules rules_;
  std::vector<Piece> pieces_;         // by window, the longest first
  std::vector<std::uint32_t> slots_;  // by bin: numbers of pieces; may be empty
  std::vector<std::int64_t> ends_;    // of each bin in `slots_`
  std::vector<Group> groups_;         // where it repacks
  std::int64_t samples_ = 0, empty_ = 0, cut_ = 0, elements_ = 0;
};

}  // namespace penstock
