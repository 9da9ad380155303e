#include "penstock/exec/durations.h"

#include <cmath>

namespace penstock {

namespace {

/// The middle of [16 + n, 17 + n) sixteenths of its octave.
double middle_of(int bucket) {
  return std::ldexp((16.5 + bucket % 16) / 16, bucket / 16);
}

}  // namespace

std::optional<Nanoseconds> Durations::quantile(double share) const {
  const std::int64_t all = count();
  if (all == 0) return std::nullopt;
  const auto wanted = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(share * static_cast<double>(all))), 1,
      all);
  if (wanted == all) return Nanoseconds(longest_);
  std::int64_t seen = 0;
  int bucket = 0;
  while ((seen += counts_[static_cast<std::size_t>(bucket)]) < wanted) ++bucket;
  return Nanoseconds(
      std::min(static_cast<std::int64_t>(middle_of(bucket)), longest_));
}

bool Durations::alike() const {
  return std::ranges::count_if(
             counts_, [](std::int64_t count) { return count > 0; }) == 1;
}

// From the middles of buckets, so it cannot tell less than a bucket's width
// apart; the variance is that of the whole population, not of a sample.
double Durations::variation() const {
  double n = 0, sum = 0, squares = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    const auto count =
        static_cast<double>(counts_[static_cast<std::size_t>(bucket)]);
    n += count;
    sum += count * middle_of(bucket);
    squares += count * middle_of(bucket) * middle_of(bucket);
  }
  if (n == 0) return 0;
  const double mean = sum / n;
  return std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean;
}

Durations& Durations::operator+=(const Durations& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    counts_[i] += other.counts_[i];
  longest_ = std::max(longest_, other.longest_);
  return *this;
}

Durations DurationMeter::read() const {
  Durations read;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    read.counts_[i] = counts_[i].load(std::memory_order_relaxed);
  read.longest_ = longest_.load(std::memory_order_relaxed);
  return read;
}

}  // namespace penstock
