#define PENSTOCK_TARGET \
  "avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi,bmi2,lzcnt,popcnt"
#include <array>

#include "penstock/tokenizer/block_words.h"

namespace penstock::scanner {
#if defined(__x86_64__)
namespace {

struct Avx512 {
  PENSTOCK_INLINE static Block read(const char* from) {
    const __m512i bytes = _mm512_loadu_si512(from);
    auto equal = [bytes](char c) PENSTOCK_FOR_TARGET {
      return Mask{_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(c))};
    };
    auto range = [](__m512i of, char low, char high) PENSTOCK_FOR_TARGET {
      const __m512i moved = _mm512_sub_epi8(of, _mm512_set1_epi8(low));
      return Mask{_mm512_cmple_epu8_mask(
          moved, _mm512_set1_epi8(static_cast<char>(high - low)))};
    };
    Block block;
    block.letters =
        range(_mm512_or_si512(bytes, _mm512_set1_epi8(0x20)), 'a', 'z');
    block.capitals = range(bytes, 'A', 'Z');
    block.digits = range(bytes, '0', '9');
    block.blanks = equal(' ');
    block.white = block.blanks | range(bytes, '\t', '\r');
    block.newlines = equal('\n') | equal('\r');
    block.apostrophes = equal('\'');
    block.slashes = equal('/');
    block.high = _mm512_movepi8_mask(bytes);
    return block;
  }

  /// Writes the places of bits, of which there are less than 60: 32 of them,
  /// some of which may be none, and the others where there are more.
  PENSTOCK_INLINE static void write(Mask bits, std::uint32_t base,
                                    std::uint32_t* out) {
    alignas(64) static constexpr auto kPlaces = [] {
      std::array<std::uint8_t, 64> places{};
      for (std::size_t i = 0; i < 64; ++i)
        places[i] = static_cast<std::uint8_t>(i);
      return places;
    }();
    const __m512i places =
        _mm512_maskz_compress_epi8(bits, _mm512_load_si512(kPlaces.data()));
    const __m512i begin = _mm512_set1_epi32(static_cast<int>(base));
    auto put = [begin](__m128i some, std::uint32_t* to) PENSTOCK_FOR_TARGET {
      _mm512_storeu_si512(
          to,
          _mm512_add_epi32(begin, _mm512_maskz_cvtepu8_epi32(0xFFFF, some)));
    };
    put(_mm512_maskz_extracti32x4_epi32(15, places, 0), out);
    put(_mm512_maskz_extracti32x4_epi32(15, places, 1), out + 16);
    if (__builtin_popcountll(bits) <= 32) return;
    put(_mm512_maskz_extracti32x4_epi32(15, places, 2), out + 32);
    put(_mm512_maskz_extracti32x4_epi32(15, places, 3), out + 48);
  }
};

}  // namespace

AsciiWords* ascii_words_avx512(Family family) {
  static const bool known =
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return known ? block_words<Avx512>(family) : nullptr;
}
#else
AsciiWords* ascii_words_avx512(Family) { return nullptr; }
#endif

}  // namespace penstock::scanner
