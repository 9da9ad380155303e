#pragma once

#include <bit>
#include <cstdint>

namespace penstock {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64
/// bits in which every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Numbers that depend on a key alone, not on earlier draws: the same (seed,
/// epoch, sample, operation) gives the same stream on every machine. A value:
/// copy it, keep no global one.
class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t epoch,
                   std::uint64_t sample, std::uint64_t operation)
      : state_(mix64(mix64(mix64(mix64(seed + kStep) ^ (epoch + 2 * kStep)) ^
                           (sample + 3 * kStep)) ^
                     (operation + 4 * kStep))) {}

  constexpr std::uint64_t next() { return mix64(state_ += kStep); }
  /// In [0, 1), a multiple of 2^-53.
  constexpr double uniform() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
  }
  /// In [0, n) for n >= 1, by multiplication; the bias is below n / 2^64.
  constexpr std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>(
        (static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  /// Standard normal, by Box and Muller (1958); uses two draws.
  double normal();

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  std::uint64_t state_;
};

}  // namespace penstock
