#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "penstock/base/clock.h"

namespace penstock {

/// How long things took: a histogram of four buckets for each doubling, so that
/// a quantile is known to within a tenth of it. Up to 2^40 ns, 18 minutes;
/// longer ones count as that.
class Durations {
 public:
  static constexpr int kBuckets = 160;

  void add(Nanoseconds time, std::int64_t times = 1) {
    counts_[static_cast<std::size_t>(bucket_of(time))] += times;
  }
  std::int64_t count() const {
    std::int64_t all = 0;
    for (std::int64_t count : counts_) all += count;
    return all;
  }
  /// The time that `share` of them did not exceed; none where there are none.
  std::optional<Nanoseconds> quantile(double share) const;
  /// Their standard deviation / their mean; 0 where there are none.
  double variation() const;
  Durations& operator+=(const Durations& other);

  static int bucket_of(Nanoseconds time) {
    const auto ns =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, time.count()));
    const int octave = static_cast<int>(std::bit_width(ns)) - 1;
    // Its two bits below the highest one.
    const auto quarter = static_cast<int>(
        octave >= 2 ? (ns >> (octave - 2)) & 3 : (ns << (2 - octave)) & 3);
    return std::min(4 * octave + quarter, kBuckets - 1);
  }

 private:
  friend class DurationMeter;
  std::array<std::int64_t, kBuckets> counts_{};
};

/// The same, counted by several threads.
class DurationMeter {
 public:
  void add(Nanoseconds time, std::int64_t times = 1) {
    counts_[static_cast<std::size_t>(Durations::bucket_of(time))].fetch_add(
        times, std::memory_order_relaxed);
  }
  Durations read() const;

 private:
  std::array<std::atomic<std::int64_t>, Durations::kBuckets> counts_{};
};

}  // namespace penstock
