#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "penstock/transforms/audio/lanes.h"

namespace penstock {

/// Resamples as torchaudio.functional.resample does by default (2.11): the
/// sinc function in a Hann window, low-pass filter of width 6, roll-off 0.99.
/// Immutable, so thread-safe.
class Resampler {
 public:
  Resampler(std::int64_t from_rate, std::int64_t to_rate);

  /// False where the kernels of two rates without a common factor would take
  /// more than 16 MiB.
  static bool is_possible(std::int64_t from_rate, std::int64_t to_rate);

  /// Samples that come of so many.
  std::int64_t length(std::int64_t samples) const;
  /// The samples that the output from `first` on depends on: from the first of
  /// the pair on, before its second. Both may lie outside of the input, which
  /// is zero there.
  std::pair<std::int64_t, std::int64_t> needed(std::int64_t first,
                                               std::int64_t count) const;
  /// `from` holds needed(first, to.size()), with the zeros outside.
  void run(std::span<const float> from, std::int64_t first,
           std::span<float> to) const;
  bool is_needed() const { return old_ != new_; }

 private:
  std::int64_t old_, new_;  // without their common factor
  std::int64_t width_ = 0;
  std::size_t taps_ = 0;
  std::vector<std::int32_t> firsts_;  // by phase
  std::vector<float> kernels_;        // by phase, taps_ each
};

}  // namespace penstock
