#include "penstock/transforms/numbers/number_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock {
namespace {

constexpr double kLeastShare = 1e-7;

// Where a value stands at several quantiles, as the most frequent one may, its
// place is the middle of theirs. Elsewhere it is interpolated between the two
// quantiles around it.
double place_of(const std::vector<double>& quantiles, double number) {
  if (number < quantiles.front()) return 0;
  if (number > quantiles.back()) return 1;
  const auto last = static_cast<double>(quantiles.size() - 1);
  if (last == 0) return 0.5;
  // Not of std::ranges: clang 14 cannot read the subrange of libstdc++ 12.
  const auto [low, high] =
      std::equal_range(quantiles.begin(), quantiles.end(), number);
  const auto first = static_cast<double>(low - quantiles.begin());
  if (low != high)
    return (first + static_cast<double>(high - low - 1) / 2) / last;
  const double before = *(low - 1), after = *low;
  // Halves, whose distance is no infinity.
  const double step = (number / 2 - before / 2) / (after / 2 - before / 2);
  return (first - 1 + step) / last;
}

/// Of a share of at most 0.5.
double lower_quantile(double share) {
  // Hastings' approximation (Abramowitz and Stegun 1964, 26.2.23), which is
  // 4.5e-4 off at most; two steps of Halley's method make it exact.
  const double t = std::sqrt(-2 * std::log(share));
  double at = ((0.010328 * t + 0.802853) * t + 2.515517) /
                  (((0.001308 * t + 0.189269) * t + 1.432788) * t + 1) -
              t;
  for (int step = 0; step < 2; ++step) {
    const double off = std::erfc(-at / std::numbers::sqrt2) / 2 - share;
    const double newton =
        off * std::sqrt(2 * std::numbers::pi) * std::exp(at * at / 2);
    at -= newton / (1 + at * newton / 2);
  }
  return at;
}

}  // namespace

double normal_quantile(double share) {
  if (share == 0.5) return 0;
  return share < 0.5 ? lower_quantile(share) : -lower_quantile(1 - share);
}

double mapped(const Standardization& by, double number) {
  if (std::isnan(number)) return number;
  if (!by.edges.empty())
    return static_cast<double>(std::ranges::upper_bound(by.edges, number) -
                               by.edges.begin());
  if (by.quantiles.empty()) return number;
  const double place = place_of(by.quantiles, number);
  if (!by.normal) return place;
  return normal_quantile(std::clamp(place, kLeastShare, 1 - kLeastShare));
}

}  // namespace penstock
