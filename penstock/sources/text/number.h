#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// Most numbers in texts are short: a sign, up to 16 digits, a point. All of
// their digits are looked at at once. What is not like that ("1e5", " 1",
// "nan", 17 digits) is left to std::from_chars, which gives the same numbers.

namespace penstock::text {

/// So many bytes before the end of a number are read, whatever they are.
inline constexpr std::size_t kBeforeNumber = 16;

/// digits / 10^fraction
struct PlainDecimal {
  std::uint64_t digits = 0;  ///< less than 10^19
  int fraction = 0;          ///< at most 19
  bool point = false;        ///< there is one; "1." has no fraction
  bool negative = false;
};

/// One byte at a time; '\0': there may be no point. False: it is no such
/// number.
inline bool plain_decimal_by_bytes(const char* begin, const char* end,
                                   char point, PlainDecimal& to) {
  to = {.negative = begin != end && *begin == '-'};
  begin += to.negative;
  if (begin == end || end - begin > 20) return false;
  const char* mark = nullptr;
  for (const char* at = begin; at < end; ++at) {
    if (*at >= '0' && *at <= '9') {
      to.digits = to.digits * 10 + static_cast<std::uint64_t>(*at - '0');
    } else {
      if (point == '\0' || *at != point || mark != nullptr) return false;
      mark = at;
    }
  }
  to.point = mark != nullptr;
  if (to.point) to.fraction = static_cast<int>(end - mark - 1);
  const std::ptrdiff_t digits = end - begin - to.point;
  return digits >= 1 && digits <= 19;
}

#if defined(__x86_64__)
/// Of `size` bytes before `end`, 1 to 16, without a sign.
inline bool short_decimal(std::ptrdiff_t size, const char* end, char point,
                          PlainDecimal& to) {
  const __m128i place =
      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(end - 16));
  const __m128i inside =
      _mm_cmpgt_epi8(place, _mm_set1_epi8(static_cast<char>(15 - size)));
  __m128i digits =
      _mm_and_si128(_mm_sub_epi8(bytes, _mm_set1_epi8('0')), inside);
  to.fraction = 0;
  to.point = false;
  if (point != '\0') {
    const auto points = static_cast<unsigned>(_mm_movemask_epi8(
        _mm_and_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(point)), inside)));
    if (points != 0) {
      if (size == 1) return false;
      const int at = __builtin_ctz(points);
      // What stands before the point moves to where it was.
      const __m128i before =
          _mm_cmplt_epi8(place, _mm_set1_epi8(static_cast<char>(at + 1)));
      digits = _mm_or_si128(_mm_and_si128(before, _mm_slli_si128(digits, 1)),
                            _mm_andnot_si128(before, digits));
      to.fraction = 15 - at;
      to.point = true;
    }
  }
  const __m128i nine = _mm_set1_epi8(9);
  if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, nine), nine)) !=
      0xffff)
    return false;
  // Neighbours become numbers of 2, 4, 8 digits.
  const __m128i twos =
      _mm_add_epi16(_mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xff)),
                                    _mm_set1_epi16(10)),
                    _mm_srli_epi16(digits, 8));
  const __m128i fours =
      _mm_madd_epi16(twos, _mm_setr_epi16(100, 1, 100, 1, 100, 1, 100, 1));
  const __m128i eights =
      _mm_madd_epi16(_mm_packs_epi32(fours, fours),
                     _mm_setr_epi16(10000, 1, 10000, 1, 10000, 1, 10000, 1));
  const auto both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(eights));
  to.digits = (both & 0xffffffff) * 100'000'000 + (both >> 32);
  return true;
}

/// The last 16 bytes at once, and up to 4 before them.
inline bool long_decimal(const char* begin, const char* end, char point,
                         PlainDecimal& to) {
  const char* mark = nullptr;
  std::uint64_t before = 0;
  for (const char* at = begin; at < end - 16; ++at) {
    if (*at >= '0' && *at <= '9') {
      before = before * 10 + static_cast<std::uint64_t>(*at - '0');
    } else {
      if (point == '\0' || *at != point || mark != nullptr) return false;
      mark = at;
    }
  }
  if (!short_decimal(16, end, mark == nullptr ? point : '\0', to)) return false;
  to.digits +=
      before * (to.point ? 1'000'000'000'000'000 : 10'000'000'000'000'000);
  if (mark != nullptr) {
    to.point = true;
    to.fraction = static_cast<int>(end - mark - 1);
  }
  return end - begin - to.point <= 19;
}

/// The same; kBeforeNumber bytes before `end` and one at it must be readable.
inline bool plain_decimal(const char* begin, const char* end, char point,
                          PlainDecimal& to) {
  to.negative = *begin == '-' && begin != end;
  begin += to.negative;
  const std::ptrdiff_t size = end - begin;
  if (size < 1 || size > 20) return false;
  return size <= 16 ? short_decimal(size, end, point, to)
                    : long_decimal(begin, end, point, to);
}
#else
inline bool plain_decimal(const char* begin, const char* end, char point,
                          PlainDecimal& to) {
  return plain_decimal_by_bytes(begin, end, point, to);
}
#endif

/// digits / 10^fraction, rounded once.
inline double divided(std::uint64_t digits, int fraction) {
  // Integers up to 2^53 and powers of ten up to 10^22 are float64, whose
  // division is rounded once.
  constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                              1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                              1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  if (digits <= std::uint64_t{1} << 53)
    return static_cast<double>(digits) / kTens[fraction];
  // Else a quotient of 62 or 63 bits, of which the last stands for what is left
  // over: that is rounded, and multiplied by a power of two.
  const auto by = static_cast<std::uint64_t>(kTens[fraction]);
  const int up = std::countl_zero(digits), down = std::countl_zero(by);
  const auto from = static_cast<unsigned __int128>(digits << up) << 62;
  const std::uint64_t divisor = by << down;
  const auto quotient = static_cast<std::uint64_t>(from / divisor);
  const bool rest = static_cast<std::uint64_t>(from) != quotient * divisor;
  const auto rounded =
      static_cast<double>(static_cast<std::int64_t>(quotient | rest));
  return rounded * std::bit_cast<double>(
                       static_cast<std::uint64_t>(1023 + down - up - 62) << 52);
}

/// Reads a number as std::from_chars does. False: it is to be read by that.
/// Memory as for plain_decimal().
template <class Number>
bool read_plain(const char* begin, const char* end, char point,
                Number& number) {
  PlainDecimal decimal;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!plain_decimal(begin, end, point, decimal)) return false;
    double value = divided(decimal.digits, decimal.fraction);
    if (decimal.negative) value = -value;
    if constexpr (sizeof(Number) < sizeof(double)) {
      // Rounded twice, unless it fell between two of float32.
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      if ((bits & 0x1fffffff) == 0x10000000) return false;
    }
    number = static_cast<Number>(value);
    return true;
  } else {
    if (!plain_decimal(begin, end, '\0', decimal)) return false;
    if (std::is_unsigned_v<Number> && decimal.negative) return false;
    if constexpr (std::is_same_v<Number, std::uint64_t>) {
      number = decimal.digits;
      return true;
    }
    if (decimal.digits > std::numeric_limits<std::int64_t>::max()) return false;
    const auto digits = static_cast<std::int64_t>(decimal.digits);
    const std::int64_t value = decimal.negative ? -digits : digits;
    number = static_cast<Number>(value);
    return std::in_range<Number>(value);
  }
}

}  // namespace penstock::text
