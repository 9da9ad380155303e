#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

namespace penstock::unicode {

/// 64 bytes of a text: which of them are of a kind, as a bit for each.
class ByteMasks {
 public:
  using Mask = std::uint64_t;

  explicit ByteMasks(const char* from) {
    for (int i = 0; i < 4; ++i)
      part_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  }

  bool is_ascii() const {
    return _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(part_[0], part_[1]),
                                          _mm_or_si128(part_[2], part_[3]))) ==
           0;
  }
  Mask high() const {
    return each([](__m128i part) { return part; });
  }
  /// Those within a character.
  Mask goes_on() const { return within(0x80, 0xBF); }
  /// Both at least 0x80, or both below.
  Mask within(int least, int most) const {
    const __m128i below = all(least - 1), above = all(most + 1);
    if (least == 0x80)
      return each(
          [above](__m128i part) { return _mm_cmplt_epi8(part, above); });
    return each([below, above](__m128i part) {
      return _mm_and_si128(_mm_cmpgt_epi8(part, below),
                           _mm_cmplt_epi8(part, above));
    });
  }
  Mask equal(int byte) const {
    const __m128i same = all(byte);
    return each([same](__m128i part) { return _mm_cmpeq_epi8(part, same); });
  }

 private:
  static __m128i all(int byte) {
    return _mm_set1_epi8(static_cast<char>(byte));
  }
  template <class Of>
  Mask each(const Of& of) const {
    Mask mask = 0;
    for (int i = 3; i >= 0; --i)
      mask =
          mask << 16 | static_cast<unsigned>(_mm_movemask_epi8(of(part_[i])));
    return mask;
  }

  __m128i part_[4];
};

/// Bits below this one, of 0 to 64.
inline std::uint64_t bits_below(unsigned bit) {
  return bit == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bit) - 1;
}

}  // namespace penstock::unicode
#endif
