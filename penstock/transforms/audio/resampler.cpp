#include "penstock/transforms/audio/resampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace penstock {

// Of the kernels of torchaudio, [new, 2 width + old], the part is kept that is
// not zero: each phase has its own place for it.
// With old and new the rates without their common factor, output i belongs to
// phase p = i mod new of round q = i / new, whose kernel begins at input q *
// old - width. Its weight for tap k is
//   sinc(t) cos^2(pi t / 12) base / old,
//   t = base (-p / new + (k - width) / old),    base = 0.99 min(old, new)
// where |t| < 6 and 0 elsewhere: _get_sinc_resample_kernel() of torchaudio.
// Kernels are filled up with zeros to a multiple of eight taps, which needed()
// accounts for.
Resampler::Resampler(std::int64_t from_rate, std::int64_t to_rate) {
  const std::int64_t common = std::gcd(from_rate, to_rate);
  old_ = from_rate / common;
  new_ = to_rate / common;
  if (old_ == new_) return;
  constexpr double kWidth = 6, kRollOff = 0.99;
  const double base = static_cast<double>(std::min(old_, new_)) * kRollOff;
  const auto old_rate = static_cast<double>(old_);
  width_ = static_cast<std::int64_t>(std::ceil(kWidth * old_rate / base));
  const std::int64_t whole = 2 * width_ + old_;
  // In float32 from here on, step by step as there: what these round away is
  // more than float64 would add.
  auto time = [&](std::int64_t phase, std::int64_t tap) {
    const float begin = static_cast<float>(-phase) / static_cast<float>(new_);
    const float at =
        static_cast<float>(tap - width_) / static_cast<float>(old_);
    return (begin + at) * static_cast<float>(base);
  };
  auto inside = [&](float t) {
    return std::fabs(t) < static_cast<float>(kWidth);
  };
  std::vector<std::int64_t> ends;
  for (std::int64_t phase = 0; phase < new_; ++phase) {
    std::int64_t first = 0, end = whole;
    while (first < end && !inside(time(phase, first))) ++first;
    while (first < end && !inside(time(phase, end - 1))) --end;
    firsts_.push_back(static_cast<std::int32_t>(first));
    ends.push_back(end);
    taps_ = std::max(taps_, static_cast<std::size_t>(end - first));
  }
  taps_ = (taps_ + 7) / 8 * 8;
  kernels_.assign(taps_ * static_cast<std::size_t>(new_), 0.0F);
  for (std::int64_t phase = 0; phase < new_; ++phase) {
    const auto p = static_cast<std::size_t>(phase);
    for (std::int64_t tap = firsts_[p]; tap < ends[p]; ++tap) {
      const float t = time(phase, tap);
      constexpr auto kPi = std::numbers::pi_v<float>;
      const float window =
          std::cos(t * kPi / static_cast<float>(kWidth) / 2.0F);
      const float angle = t * kPi;
      const float sinc = angle == 0 ? 1.0F : std::sin(angle) / angle;
      kernels_[p * taps_ + static_cast<std::size_t>(tap - firsts_[p])] =
          sinc * (window * window * static_cast<float>(base / old_rate));
    }
  }
}

bool Resampler::is_possible(std::int64_t from_rate, std::int64_t to_rate) {
  const std::int64_t common = std::gcd(from_rate, to_rate);
  const std::int64_t phases = to_rate / common;
  const std::int64_t taps = 13 * from_rate / std::min(from_rate, to_rate) + 16;
  constexpr std::int64_t kMost = 1 << 22;
  return phases <= kMost / taps;
}

// ceil(samples * new / old), without an overflow for any length.
std::int64_t Resampler::length(std::int64_t samples) const {
  // A damaged file may claim to have any number.
  const std::int64_t most =
      (std::numeric_limits<std::int64_t>::max() - old_) / new_;
  return (std::min(samples, most) * new_ + old_ - 1) / old_;
}

std::pair<std::int64_t, std::int64_t> Resampler::needed(
    std::int64_t first, std::int64_t count) const {
  if (!is_needed()) return {first, first + count};
  const std::int64_t last = first + std::max<std::int64_t>(count, 1) - 1;
  // Kernels are filled up to a multiple of eight.
  return {first / new_ * old_ - width_, last / new_ * old_ + width_ + old_ + 8};
}

void Resampler::run(std::span<const float> from, std::int64_t first,
                    std::span<float> to) const {
  if (!is_needed()) {
    std::copy_n(from.begin(), to.size(), to.begin());
    return;
  }
  lanes::best().filter(from.data(), kernels_.data(), firsts_.data(), taps_,
                       static_cast<std::size_t>(new_), old_, first % new_,
                       to.size(), to.data());
}

}  // namespace penstock
