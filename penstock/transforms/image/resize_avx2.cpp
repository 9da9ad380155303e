#include <cstring>

#include "penstock/transforms/image/resize_passes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A weight has 22 bits behind the point and a sign: too many for the multiply
// of 16 bits that adds pairs (vpmaddwd). So it is split: weight = high * 2^11 +
// low, with 0 <= low < 2^11. The sums of each half are exact in 32 bits, and so
// is sum = high sum * 2^11 + low sum: the bytes are those of the plain code.
// Weights of few bits (kSplit false) are multiplied unchanged.
//
// Weights are laid out beforehand, two side by side in 32 bits, as the multiply
// takes them: of a row, four pixels of three bytes at once, the first two in
// the lower half of a register; of columns, two rows at once.

namespace penstock::resizing {

#if defined(__x86_64__)
namespace {

constexpr int kLowBits = 11;
constexpr std::int32_t kLowMask = (1 << kLowBits) - 1;

std::int32_t beside(std::int32_t first, std::int32_t second) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(second) << 16 |
      (static_cast<std::uint32_t>(first) & 0xFFFFU));
}
std::int32_t highs(std::int32_t first, std::int32_t second) {
  return beside(first >> kLowBits, second >> kLowBits);
}
std::int32_t lows(std::int32_t first, std::int32_t second) {
  return beside(first & kLowMask, second & kLowMask);
}

constexpr int kTogether = 4;  // pixels of a row
template <bool kSplit>
constexpr std::size_t kLaidOut = kSplit ? 16 : 8;

int groups_of(const ResizeTaps& taps, std::size_t pixel) {
  return (taps.count[pixel] + kTogether - 1) / kTogether;
}

/// For every four pixels: eight numbers for the high halves, eight for the low;
/// or eight for the whole.
template <bool kSplit>
void lay_out_rows(const ResizeTaps& taps, std::vector<std::int32_t>& to) {
  to.clear();
  for (std::size_t x = 0; x < taps.first.size(); ++x) {
    const std::int32_t* weights = taps.weights_of(x);
    auto weight = [&](int t) { return t < taps.count[x] ? weights[t] : 0; };
    for (int g = 0; g < groups_of(taps, x); ++g) {
      const int t = g * kTogether;
      const std::int32_t w[] = {weight(t), weight(t + 1), weight(t + 2),
                                weight(t + 3)};
      if constexpr (!kSplit) {
        to.insert(to.end(), 4, beside(w[0], w[1]));
        to.insert(to.end(), 4, beside(w[2], w[3]));
        continue;
      }
      to.insert(to.end(), 4, highs(w[0], w[1]));
      to.insert(to.end(), 4, highs(w[2], w[3]));
      to.insert(to.end(), 4, lows(w[0], w[1]));
      to.insert(to.end(), 4, lows(w[2], w[3]));
    }
  }
}

[[gnu::target("avx2")]] inline __m256i load(const std::int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// The sums of one pixel: of its first two and its last two neighbours of each
/// four, which remain to be added. Goes on to the next pixel's weights.
template <bool kSplit, bool kOneGroup>
[[gnu::target("avx2")]] inline __m256i sums_of(const std::uint8_t* from,
                                               int groups,
                                               const std::int32_t*& weights) {
  // Of each two pixels red beside red, green beside green, blue beside blue.
  const __m256i order = _mm256_setr_epi8(
      0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
      6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  __m256i high = _mm256_setzero_si256(), low = high;
  for (int g = 0; g < (kOneGroup ? 1 : groups); ++g) {
    const __m256i pixels = _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))),
        order);
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, load(weights)));
    if constexpr (kSplit)
      low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, load(weights + 8)));
    from += kTogether * 3;
    weights += kLaidOut<kSplit>;
  }
  if constexpr (!kSplit) return high;
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
}

template <bool kSplit>
[[gnu::target("avx2")]] inline __m256i rounded(__m256i sum) {
  constexpr int kBits = kSplit ? ResizeTaps::kBits : ResizeTaps::kFewBits;
  return _mm256_srai_epi32(
      _mm256_add_epi32(sum, _mm256_set1_epi32(half_of(kBits))), kBits);
}

/// Adds the halves of two pixels' sums, and rounds.
template <bool kSplit>
[[gnu::target("avx2")]] inline __m256i rounded(__m256i first, __m256i second) {
  return rounded<kSplit>(
      _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                       _mm256_permute2x128_si256(first, second, 0x31)));
}

/// Four pixels as twelve bytes, and four that mean nothing.
[[gnu::target("avx2")]] inline __m128i bytes_of(__m256i first_two,
                                                __m256i last_two) {
  const __m256i words = _mm256_packs_epi32(first_two, last_two);
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m128i pixels = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes),
                                            _mm256_extracti128_si256(bytes, 1));
  return _mm_shuffle_epi8(pixels, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12,
                                                13, 14, -1, -1, -1, -1));
}

/// Reads up to 13 bytes behind the last pixel and writes up to 13, which the
/// next pixels or rows overwrite: so rows are made in their order, and Pixels
/// end with bytes that mean nothing.
template <bool kSplit, bool kOneGroup>
[[gnu::target("avx2")]] void rgb_row(const std::uint8_t* in, int left,
                                     const ResizeTaps& taps,
                                     const std::int32_t* weights,
                                     std::uint8_t* out) {
  const std::size_t width = taps.first.size();
  auto next = [&](std::size_t x) __attribute__((target("avx2"))) {
    return x >= width
               ? _mm256_setzero_si256()
               : sums_of<kSplit, kOneGroup>(
                     in + static_cast<std::size_t>(taps.first[x] - left) * 3,
                     groups_of(taps, x), weights);
  };
  for (std::size_t x = 0; x < width; x += 4, out += 12) {
    const __m256i a = next(x), b = next(x + 1), c = next(x + 2),
                  d = next(x + 3);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     bytes_of(rounded<kSplit>(a, b), rounded<kSplit>(c, d)));
  }
}

template <bool kSplit>
void rgb_rows(const PixelView& in, int left, int first, int end,
              const ResizeTaps& columns, std::vector<std::int32_t>& scratch,
              Pixels& out) {
  lay_out_rows<kSplit>(columns, scratch);
  const bool one = scratch.size() == columns.first.size() * kLaidOut<kSplit>;
  const auto pass = one ? rgb_row<kSplit, true> : rgb_row<kSplit, false>;
  for (int y = first; y < end; ++y)
    pass(in.row(y), left, columns, scratch.data(), out.row(y - first));
}

void along_rows_avx2(const PixelView& in, int left, int first, int end,
                     const ResizeTaps& columns,
                     std::vector<std::int32_t>& scratch, Pixels& out) {
  if (in.mode != PictureMode::rgb)
    return passes_of(ResizeCode::plain)
        .along_rows(in, left, first, end, columns, scratch, out);
  const bool split = columns.bits != ResizeTaps::kFewBits;
  (split ? rgb_rows<true> : rgb_rows<false>)(in, left, first, end, columns,
                                             scratch, out);
}

/// The sums of eight bytes.
struct Sums {
  __m256i high, low;
};

template <bool kSplit>
[[gnu::target("avx2")]] inline void add_pairs(__m128i bytes, __m256i high,
                                              __m256i low, Sums& sums) {
  const __m256i values = _mm256_cvtepu8_epi16(bytes);
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(values, high));
  if constexpr (kSplit)
    sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(values, low));
}

template <bool kSplit>
[[gnu::target("avx2")]] inline __m256i rounded(const Sums& sums) {
  if constexpr (!kSplit) return rounded<false>(sums.high);
  return rounded<true>(
      _mm256_add_epi32(_mm256_slli_epi32(sums.high, kLowBits), sums.low));
}

/// `pairs`: of each two rows, the high and the low halves of their weights, or
/// they as they are and 0. Reads and writes up to 15 bytes behind the end of
/// rows.
template <bool kSplit>
[[gnu::target("avx2")]] void column_row(const std::uint8_t* in,
                                        std::size_t stride,
                                        const std::int32_t* pairs, int count,
                                        std::size_t bytes, std::uint8_t* out) {
  constexpr std::size_t kAtOnce = 16;
  for (std::size_t x = 0; x < bytes; x += kAtOnce) {
    Sums left{_mm256_setzero_si256(), _mm256_setzero_si256()};
    Sums right = left;
    const std::uint8_t* from = in + x;
    for (int t = 0; t < count; t += 2, from += 2 * stride) {
      const __m128i first =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const __m128i second =
          t + 1 < count
              ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + stride))
              : _mm_setzero_si128();
      const __m256i high = _mm256_set1_epi32(pairs[t]);
      const __m256i low = _mm256_set1_epi32(pairs[t + 1]);
      add_pairs<kSplit>(_mm_unpacklo_epi8(first, second), high, low, left);
      add_pairs<kSplit>(_mm_unpackhi_epi8(first, second), high, low, right);
    }
    // Packing works on halves of registers: the middle quarters change places.
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(rounded<kSplit>(left), rounded<kSplit>(right)),
        0b11011000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x),
                     _mm_packus_epi16(_mm256_castsi256_si128(words),
                                      _mm256_extracti128_si256(words, 1)));
  }
}

void along_columns_avx2(const PixelView& in, int top, const ResizeTaps& rows,
                        std::vector<std::int32_t>& scratch, Pixels& out) {
  const bool split = rows.bits != ResizeTaps::kFewBits;
  for (int y = 0; y < out.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    const std::int32_t* weights = rows.weights_of(at);
    const int count = rows.count[at];
    scratch.clear();
    for (int t = 0; t < count; t += 2) {
      const std::int32_t second = t + 1 < count ? weights[t + 1] : 0;
      scratch.push_back(split ? highs(weights[t], second)
                              : beside(weights[t], second));
      scratch.push_back(split ? lows(weights[t], second) : 0);
    }
    (split ? column_row<true> : column_row<false>)(in.row(rows.first[at] - top),
                                                   in.stride, scratch.data(),
                                                   count, out.row_bytes(),
                                                   out.row(y));
  }
}

constexpr Passes kAvx2{.along_rows = along_rows_avx2,
                       .along_columns = along_columns_avx2};

}  // namespace

const Passes* avx2_passes() {
  return __builtin_cpu_supports("avx2") ? &kAvx2 : nullptr;
}
#else
const Passes* avx2_passes() { return nullptr; }
#endif

}  // namespace penstock::resizing
