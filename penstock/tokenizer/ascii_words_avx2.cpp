#define PENSTOCK_TARGET "avx2,bmi,bmi2,lzcnt,popcnt"
#include "penstock/tokenizer/block_words.h"

namespace penstock::scanner {
#if defined(__x86_64__)
namespace {

// AVX2 compares signed bytes only. The range is moved so that it ends at 127:
// then what is above it wraps around to negative numbers, and one comparison
// tests both ends. Bytes from 0x80 on are negative and never reach the range.
PENSTOCK_INLINE inline __m256i within(__m256i bytes, char low, char high) {
  __m256i moved =
      _mm256_add_epi8(bytes, _mm256_set1_epi8(static_cast<char>(127 - high)));
  return _mm256_cmpgt_epi8(
      moved, _mm256_set1_epi8(static_cast<char>(126 - high + low)));
}

PENSTOCK_INLINE inline Mask bits(__m256i low, __m256i high) {
  auto half = [](__m256i v) PENSTOCK_FOR_TARGET {
    return Mask{static_cast<std::uint32_t>(_mm256_movemask_epi8(v))};
  };
  return half(low) | half(high) << 32;
}

struct Avx2 {
  PENSTOCK_INLINE static Block read(const char* from) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    auto equal = [a, b](char c) PENSTOCK_FOR_TARGET {
      __m256i all = _mm256_set1_epi8(c);
      return bits(_mm256_cmpeq_epi8(a, all), _mm256_cmpeq_epi8(b, all));
    };
    auto range = [a, b](char low, char high) PENSTOCK_FOR_TARGET {
      return bits(within(a, low, high), within(b, low, high));
    };
    __m256i fold = _mm256_set1_epi8(0x20);
    Block block;
    block.letters = bits(within(_mm256_or_si256(a, fold), 'a', 'z'),
                         within(_mm256_or_si256(b, fold), 'a', 'z'));
    block.capitals = range('A', 'Z');
    block.digits = range('0', '9');
    block.blanks = equal(' ');
    block.white = block.blanks | range('\t', '\r');
    block.newlines = equal('\n') | equal('\r');
    block.apostrophes = equal('\'');
    block.slashes = equal('/');
    block.high = bits(a, b);
    return block;
  }

  /// Writes the places of bits, eight at a time, of which some may be none:
  /// there are less than 60.
  PENSTOCK_INLINE static void write(Mask bits, std::uint32_t base,
                                    std::uint32_t* out) {
    for (; bits != 0; out += 8)
      for (int i = 0; i < 8; ++i, bits = _blsr_u64(bits))
        out[i] = base + static_cast<std::uint32_t>(_tzcnt_u64(bits));
  }
};

}  // namespace

AsciiWords* ascii_words_avx2(Family family) {
  static const bool known =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return known ? block_words<Avx2>(family) : nullptr;
}
#else
AsciiWords* ascii_words_avx2(Family) { return nullptr; }
#endif

}  // namespace penstock::scanner
