#include <cstring>

#include "penstock/transforms/image/resize_passes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A weight has 22 bits behind the point and a sign: too many for the multiply
// of 16 bits that adds pairs (vpmaddwd). So it is split: weight = high * 2^11 +
// low, with 0 <= low < 2^11. The sums of each half are exact in 32 bits, and so
// is sum = high sum * 2^11 + low sum: the bytes are those of the plain code.

namespace penstock::resizing {

#if defined(__x86_64__)
namespace {

constexpr int kLowBits = 11;
constexpr std::int32_t kLowMask = (1 << kLowBits) - 1;
constexpr int kHalf = 1 << (kBits - 1);

/// Two weights side by side, each as 16 bits.
struct Pair {
  std::int32_t high, low;
};

inline Pair pair_of(std::int32_t first, std::int32_t second) {
  auto beside = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>((static_cast<std::uint32_t>(b) << 16) |
                                     (static_cast<std::uint32_t>(a) & 0xFFFFU));
  };
  return {beside(first >> kLowBits, second >> kLowBits),
          beside(first & kLowMask, second & kLowMask)};
}

/// The sums as bytes between 0 and 255.
[[gnu::target("avx2")]] inline __m128i bytes_of(__m128i high, __m128i low) {
  __m128i sum = _mm_add_epi32(_mm_slli_epi32(high, kLowBits), low);
  sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kHalf)), kBits);
  sum = _mm_packs_epi32(sum, sum);
  return _mm_packus_epi16(sum, sum);
}

/// Adds two pixels of three bytes times their weights.
[[gnu::target("avx2")]] inline void add_two(__m128i pixels, Pair weights,
                                            __m128i& high, __m128i& low) {
  const __m128i order =
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m128i values = _mm_shuffle_epi8(pixels, order);
  high =
      _mm_add_epi32(high, _mm_madd_epi16(values, _mm_set1_epi32(weights.high)));
  low = _mm_add_epi32(low, _mm_madd_epi16(values, _mm_set1_epi32(weights.low)));
}

/// Reads two bytes behind the last pixel and writes one, which the next pixel
/// or row overwrites: so rows are made in their order, and Pixels end with
/// bytes that mean nothing.
[[gnu::target("avx2")]] void rgb_row(const std::uint8_t* in, int left,
                                     const ResizeTaps& taps,
                                     std::uint8_t* out) {
  for (std::size_t x = 0; x < taps.first.size(); ++x, out += 3) {
    const std::int32_t* weights =
        taps.weights.data() + x * static_cast<std::size_t>(taps.most);
    const std::uint8_t* from =
        in + static_cast<std::size_t>(taps.first[x] - left) * 3;
    __m128i high = _mm_setzero_si128(), low = _mm_setzero_si128();
    const int count = taps.count[x];
    int t = 0;
    for (; t + 2 <= count; t += 2)
      add_two(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + t * 3)),
              pair_of(weights[t], weights[t + 1]), high, low);
    if (t < count) {
      std::int32_t last = 0;
      std::memcpy(&last, from + t * 3, sizeof(last));
      add_two(_mm_cvtsi32_si128(last), pair_of(weights[t], 0), high, low);
    }
    const int pixel = _mm_cvtsi128_si32(bytes_of(high, low));
    std::memcpy(out, &pixel, sizeof(pixel));
  }
}

/// Eight bytes of a row.
[[gnu::target("avx2")]] inline __m128i eight(const std::uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

/// Eight bytes of two rows, times their weights.
[[gnu::target("avx2")]] inline void add_rows(__m128i first, __m128i second,
                                             Pair weights, __m256i& high,
                                             __m256i& low) {
  const __m256i values = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second));
  high = _mm256_add_epi32(
      high, _mm256_madd_epi16(values, _mm256_set1_epi32(weights.high)));
  low = _mm256_add_epi32(
      low, _mm256_madd_epi16(values, _mm256_set1_epi32(weights.low)));
}

[[gnu::target("avx2")]] inline void store_eight(__m256i high, __m256i low,
                                                std::uint8_t* out) {
  __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
  sum =
      _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kHalf)), kBits);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(sum),
                                        _mm256_extracti128_si256(sum, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out),
                   _mm_packus_epi16(words, words));
}

[[gnu::target("avx2")]] void column(const std::uint8_t* in, std::size_t stride,
                                    const std::int32_t* weights, int count,
                                    std::size_t bytes, std::uint8_t* out) {
  constexpr std::size_t kAtOnce = 8;
  std::size_t x = 0;
  for (; x + kAtOnce <= bytes; x += kAtOnce) {
    __m256i high = _mm256_setzero_si256(), low = _mm256_setzero_si256();
    const std::uint8_t* from = in + x;
    int t = 0;
    for (; t + 2 <= count; t += 2, from += 2 * stride)
      add_rows(eight(from), eight(from + stride),
               pair_of(weights[t], weights[t + 1]), high, low);
    if (t < count)
      add_rows(eight(from), _mm_setzero_si128(), pair_of(weights[t], 0), high,
               low);
    store_eight(high, low, out + x);
  }
  if (x < bytes)
    passes_of(ResizeCode::plain)
        .column(in + x, stride, weights, count, bytes - x, out + x);
}

void grey_row(const std::uint8_t* in, int left, const ResizeTaps& taps,
              std::uint8_t* out) {
  passes_of(ResizeCode::plain).grey_row(in, left, taps, out);
}

constexpr Passes kAvx2{
    .rgb_row = rgb_row, .grey_row = grey_row, .column = column};

}  // namespace

const Passes* avx2_passes() {
  return __builtin_cpu_supports("avx2") ? &kAvx2 : nullptr;
}
#else
const Passes* avx2_passes() { return nullptr; }
#endif

}  // namespace penstock::resizing
