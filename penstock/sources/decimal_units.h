#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace penstock {

/// A decimal as Arrow stores it: how many units of 1/10^scale, in two's
/// complement whose lowest byte comes first.
struct DecimalUnits {
  /// Of 4, 8, 16 or 32 bytes.
  static DecimalUnits at(const void* bytes, std::size_t width) {
    DecimalUnits units;
    units.negative =
        (static_cast<const std::uint8_t*>(bytes)[width - 1] >> 7) != 0;
    if (units.negative) units.size.fill(~std::uint64_t{0});
    std::memcpy(units.size.data(), bytes, width);
    bool carry = units.negative;
    for (std::uint64_t& word : units.size) {
      if (units.negative) word = ~word + carry;
      carry = carry && word == 0;
    }
    return units;
  }

  bool negative = false;
  std::array<std::uint64_t, 4> size{};  ///< without the sign, lowest first
};

/// Of how many units it is, without a sign.
inline std::string digits_of(const DecimalUnits& units) {
  __extension__ using Unsigned128 = unsigned __int128;
  std::array<std::uint64_t, 4> left = units.size;
  std::string digits;  // the last one first
  do {
    std::uint64_t digit = 0;
    for (std::size_t at = left.size(); at-- > 0;) {
      const Unsigned128 value = Unsigned128{digit} << 64 | left[at];
      left[at] = static_cast<std::uint64_t>(value / 10);
      digit = static_cast<std::uint64_t>(value % 10);
    }
    digits += static_cast<char>('0' + static_cast<int>(digit));
  } while (left != std::array<std::uint64_t, 4>{});
  std::ranges::reverse(digits);
  return digits;
}

/// The float64 that is nearest to it: what the same digits are in a file of
/// text.
inline double float64_of(const DecimalUnits& units, int scale) {
  // Both are exact, so that their quotient is rounded once.
  constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;
  const bool one_word =
      std::ranges::all_of(units.size.begin() + 1, units.size.end(),
                          [](auto word) { return !word; });
  double number = 0;
  if (one_word && units.size[0] <= kMostExact && scale >= 0 && scale <= 22) {
    number = static_cast<double>(units.size[0]) / kPowers[scale];
  } else {
    const std::string text =
        digits_of(units) + "e" + std::to_string(-std::int64_t{scale});
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec !=
        std::errc())
      number = scale > 0 ? 0 : HUGE_VAL;  // beyond what there is
  }
  return units.negative ? -number : number;
}

}  // namespace penstock
