#include <algorithm>
#include <bit>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/sampling.h"

// A round replaces (left, right) by (right, left ^ f(right)), which can be
// undone whatever f is; so any number of rounds is a bijection of the square.
// Positions whose image lies outside 0..n-1 are sent through again: that walk
// follows a cycle of the bijection, so it comes back inside, and no two walks
// end at the same place. The square is less than four times n, hence a walk
// takes fewer than four passes on average, and 1.07 for n = 10^9.
//
// Four rounds are enough against an adversary with large halves (Luby and
// Rackoff 1988), but over a million keys they show a bias in the pairs of
// neighbours up to n = 256; six rounds on at least 64 values show none.

namespace penstock {
namespace {

// A smaller n walks on a square of 64.
constexpr int kLeastHalfBits = 3;

}  // namespace

Permutation::Permutation(std::int64_t n, std::uint64_t key) : n_(n) {
  PENSTOCK_ASSERT(n >= 1, "a permutation has at least one element");
  auto bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  half_bits_ = std::max((bits + 1) / 2, kLeastHalfBits);
  Random random(key, 0, 0, 0);
  for (std::uint64_t& round_key : keys_) round_key = random.next();
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  const auto n = static_cast<std::uint64_t>(n_);
  const std::uint64_t half = (std::uint64_t{1} << half_bits_) - 1;
  auto at = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = at >> half_bits_;
    std::uint64_t right = at & half;
    for (std::uint64_t key : keys_) {
      std::uint64_t f = mix64(right + key) & half;
      left = std::exchange(right, left ^ f);
    }
    at = (left << half_bits_) | right;
  } while (at >= n);
  return static_cast<std::int64_t>(at);
}

}  // namespace penstock
