#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace penstock {

/// Eight bytes of text as one word, the first byte lowest.
inline std::uint64_t load_word(const char* from) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word;
  std::memcpy(&word, from, 8);
  return word;
}

/// Reads a JSON number as the nearest double (ties to even, -0 as 0).
///
/// Returns the first character after it, or null where it gives up: not a JSON
/// number, or one outside the range of double. Reads up to 64 bytes from `from`
/// whatever `end` says, so check the result against `end`.
const char* read_number(const char* from, const char* end, double& number);

/// w / 10^k for 0 < w < 2^63 and 1 <= k <= 19, correctly rounded.
double divided_by_power(std::uint64_t w, unsigned k);

// The implementation is here because it must be inlined into the scanner, also
// where that is compiled together with others who call it.
namespace decimal {

inline constexpr std::uint64_t kZeros = 0x3030303030303030u;
inline constexpr std::size_t kMostDigits = 19;  // 10^19 < 2^64

/// Which bytes of `x`, digits less '0', are not digits: their high bit is set,
/// and those of the bytes before the first one are not. Adding 0x76 takes a
/// digit to at most 0x7f, so that no carry comes from below.
inline std::uint64_t others(std::uint64_t x) {
  return ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
}

/// The value of eight digits, each less '0', the first one lowest: pairs, then
/// fours, then all.
inline std::uint64_t value_of_eight(std::uint64_t x) {
  x = ((x * (1 + (10 << 8))) >> 8) & 0x00ff00ff00ff00ffu;
  x = ((x * (1 + (100 << 16))) >> 16) & 0x0000ffff0000ffffu;
  return (x * (1 + (std::uint64_t{10000} << 32))) >> 32;
}

/// A run of up to seven digits: how many, and their value.
struct Digits {
  std::size_t count;
  std::uint64_t value;
};

/// The digits before the first of `others(x)`, which has at least one. They are
/// moved to the end, and the zeros before them count for nothing. The value
/// means nothing when the count is 0.
inline Digits digits_before(std::uint64_t x, std::uint64_t others_of_x) {
  auto bit = static_cast<unsigned>(std::countr_zero(others_of_x));
  return {bit / 8, value_of_eight(x << ((7 - bit) & 63))};
}

inline constexpr std::uint64_t kPowersOfTen[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/// 5^k, shifted up to its top bit, and the reciprocal that divides by it.
struct Divisor {
  std::uint64_t value;
  std::uint64_t reciprocal;  // floor((2^128 - 1) / value) - 2^64
  int exponent;              // of a double: 2^(1 + shift - k - 64), biased
};

struct Divisors {
  Divisor of[kMostDigits + 1];
};

constexpr Divisors make_divisors() {
  Divisors divisors{};
  std::uint64_t power = 1;
  for (int k = 0; k <= static_cast<int>(kMostDigits); ++k) {
    Divisor& divisor = divisors.of[k];
    int shift = std::countl_zero(power);
    divisor.value = power << shift;
    divisor.exponent = 1023 + 1 + shift - k - 64;
    divisor.reciprocal =
        static_cast<std::uint64_t>(~static_cast<unsigned __int128>(0) /
                                   divisor.value);  // less 2^64 by truncation
    power *= 5;
  }
  return divisors;
}
inline constexpr Divisors kDivisors = make_divisors();

inline std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >>
                                    64);
}

/// Half of floor(high * 2^64 / by.value) for high < by.value; its lowest bit is
/// set when anything is left over, so that it rounds like the whole quotient.
std::uint64_t exact_half_quotient(std::uint64_t high, const Divisor& by);

const char* read_odd_number(const char* from, const char* end, double& number);

}  // namespace decimal

// w / 10^k = w / 5^k / 2^k. 5^k is shifted up to its top bit and w to the bit
// below, so that the quotient of 128 by 64 bits has 62 to 64 bits. Multiplying
// by the reciprocal gives it, or up to 2 less, where a double keeps 53 bits:
// the error matters only next to the middle between two doubles, and then the
// remainder decides.
inline double divided_by_power(std::uint64_t w, unsigned k) {
  const decimal::Divisor& by = decimal::kDivisors.of[k];
  int up = std::countl_zero(w) - 1;
  std::uint64_t high = w << up;
  std::uint64_t half =
      (high + decimal::upper_product(by.reciprocal, high)) >> 1;
  if (((half + 1) & 0x7f) <= 1) [[unlikely]]
    half = decimal::exact_half_quotient(high, by);
  auto scale = static_cast<std::uint64_t>(by.exponent - up) << 52;
  return static_cast<double>(static_cast<std::int64_t>(half)) *
         std::bit_cast<double>(scale);
}

[[gnu::always_inline]] inline const char* read_number(const char* from,
                                                      const char* end,
                                                      double& number) {
  constexpr std::uint64_t kEight = 100000000;
  const char* p = from;
  bool negative = *p == '-';
  p += negative;
  std::uint64_t x = load_word(p) ^ decimal::kZeros;
  std::uint64_t others = decimal::others(x);
  if (others == 0) [[unlikely]]
    return decimal::read_odd_number(from, end, number);
  decimal::Digits run = decimal::digits_before(x, others);
  if (run.count == 0 || (*p == '0' && run.count > 1)) [[unlikely]]
    return nullptr;
  p += run.count;
  std::size_t digits = run.count;
  std::uint64_t w = run.value;
  std::size_t places = 0;
  if (*p == '.') {
    const char* point = p++;
    x = load_word(p) ^ decimal::kZeros;
    others = decimal::others(x);
    while (others == 0) {  // at most twice, or there are too many digits
      w = w * kEight + decimal::value_of_eight(x);
      p += 8;
      if (p - from > 24) [[unlikely]]
        return decimal::read_odd_number(from, end, number);
      x = load_word(p) ^ decimal::kZeros;
      others = decimal::others(x);
    }
    run = decimal::digits_before(x, others);
    if (run.count != 0) w = w * decimal::kPowersOfTen[run.count] + run.value;
    p += run.count;
    places = static_cast<std::size_t>(p - point) - 1;
    if (places == 0) [[unlikely]]
      return nullptr;
    digits += places;
  }
  // 18 digits fit into w; of 19, some.
  bool fits = digits <= 18 || (digits == 19 && (w >> 63) == 0);
  if (!fits || (*p | 0x20) == 'e') [[unlikely]]
    return decimal::read_odd_number(from, end, number);
  double magnitude = places == 0 || w == 0
                         ? static_cast<double>(static_cast<std::int64_t>(w))
                         : divided_by_power(w, static_cast<unsigned>(places));
  std::uint64_t sign = static_cast<std::uint64_t>(negative && w != 0) << 63;
  number =
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | sign);
  return p;
}

}  // namespace penstock
