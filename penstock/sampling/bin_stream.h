#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "penstock/sampling/packing.h"
#include "penstock/sampling/paged.h"

namespace penstock {

/// Bins without an end, of samples whose lengths are asked for as late as may
/// be. A pass takes all samples in a keyed order of its own: pages of
/// neighbours, shuffled, so that what lies together is read together. A window
/// of them is packed at a time, as Bins does it; its bins come in a keyed
/// order, and behind them those of the next window. Behind the last one of a
/// pass the next pass begins.
///
/// A pure function of samples, lengths and rules, with a memory: one thread's.
/// Bin b costs the lengths of all windows up to its own, once, and 8 bytes for
/// each of them.
class BinStream {
 public:
  /// Neighbours that stay together in the order of a pass.
  static constexpr std::int64_t kPage = 256;
  /// Gives the lengths of samples.
  using LengthsOf = std::function<void(std::span<const std::int64_t> samples,
                                       std::span<std::int32_t> out)>;

  /// Of `rules` size, window (one sample or more, of whole pages where it holds
  /// several) and seed. There is a sample.
  BinStream(std::int64_t samples, const BinRules& rules, LengthsOf lengths);

  /// Appends the pieces of a bin, in their order, and returns how many elements
  /// are left, as Bins::append(). Throws what asking for lengths throws, and
  /// Error(source), code packing.empty, where no sample has an element.
  std::int32_t append(std::int64_t bin, std::vector<SampleRange>& to);

  /// Of the windows that were packed so far, those of all passes.
  std::int64_t samples() const { return samples_; }    ///< in bins
  std::int64_t empty() const { return empty_; }        ///< of length 0
  std::int64_t cut() const { return cut_; }            ///< in several pieces
  std::int64_t elements() const { return elements_; }  ///< of all samples
  std::int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// The share of these bins that holds elements.
  double efficiency() const {
    return filled_share(elements_, count(), rules_.size);
  }

 private:
  struct Window {
    std::int64_t number = -1;
    std::vector<std::int64_t> samples = {};
    Bins bins = {};
  };
  std::int64_t begin_of(std::int64_t window) const {
    return window == 0 ? 0 : ends_[static_cast<std::size_t>(window) - 1];
  }
  /// Packs a window, or remembers it.
  const Window& window(std::int64_t number);
  void pack_next();

  const std::int64_t count_;  // of samples
  const BinRules rules_;
  const Pages pages_;
  const std::int64_t a_pass_;  // windows
  const LengthsOf lengths_;
  std::vector<std::int64_t> ends_;  // bins up to the end of each window
  std::vector<Window> recent_;      // the last ones that were asked for
  std::size_t oldest_ = 0;          // of these
  std::vector<std::int32_t> asked_;
  std::int64_t samples_ = 0, empty_ = 0, cut_ = 0, elements_ = 0;
};

}  // namespace penstock
