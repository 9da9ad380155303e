#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "penstock/base/clock.h"

namespace penstock {

/// How long things took: a histogram of 16 buckets for each doubling, so that a
/// quantile is off by 3.2 % of it at most, and the longest, which is exact. Up
/// to 2^40 ns, 18 minutes; of longer ones the longest alone is known.
class Durations {
 public:
  static constexpr int kBuckets = 640;

  void add(Nanoseconds time, std::int64_t times = 1) {
    counts_[static_cast<std::size_t>(bucket_of(time))] += times;
    longest_ = std::max(longest_, time.count());
  }
  std::int64_t count() const {
    std::int64_t all = 0;
    for (std::int64_t count : counts_) all += count;
    return all;
  }
  /// The time that `share` of them did not exceed, with 1 the longest; none
  /// if none exist.
  std::optional<Nanoseconds> quantile(double share) const;
  /// Whether they differ by less than the histogram tells; not if none
  /// exist.
  bool alike() const;
  /// Their standard deviation / their mean; 0 if none exist.
  double variation() const;
  Durations& operator+=(const Durations& other);

  static int bucket_of(Nanoseconds time) {
    const auto ns =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, time.count()));
    const int octave = static_cast<int>(std::bit_width(ns)) - 1;
    // Its four bits below the highest one.
    const auto part = static_cast<int>(octave >= 4 ? (ns >> (octave - 4)) & 15
                                                   : (ns << (4 - octave)) & 15);
    return std::min(16 * octave + part, kBuckets - 1);
  }

 private:
  friend class DurationMeter;
  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t longest_ = 0;  // ns
};

/// The same, counted by several threads.
class DurationMeter {
 public:
  void add(Nanoseconds time, std::int64_t times = 1) {
    std::int64_t longest = longest_.load(std::memory_order_relaxed);
    while (time.count() > longest &&  // seldom, after the first ones
           !longest_.compare_exchange_weak(longest, time.count(),
                                           std::memory_order_relaxed)) {
    }
    counts_[static_cast<std::size_t>(Durations::bucket_of(time))].fetch_add(
        times, std::memory_order_relaxed);
  }
  Durations read() const;

 private:
  std::array<std::atomic<std::int64_t>, Durations::kBuckets> counts_{};
  std::atomic<std::int64_t> longest_{0};
};

}  // namespace penstock
