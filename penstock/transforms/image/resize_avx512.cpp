#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "penstock/transforms/image/resize_passes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// One instruction (vpdpbusd) adds four bytes times four weights of eight bits.
// So a weight is split into digits: weight = (third * 256 + second) * 256 +
// first, each from -128 to 127. The sums of each digit are exact in 32 bits,
// and so is what they make together: the bytes are those of the plain code.
// Weights of few bits have two digits.
//
// The bytes that are added stand side by side: of a row, four neighbours of one
// channel, which one instruction (vpermb) finds for four pixels; of columns,
// four rows of 64 bytes.

namespace penstock::resizing {

#if defined(__x86_64__)
namespace {
namespace avx512 {

constexpr int kTaps = 4;  // that are added by one instruction
constexpr std::size_t kLanes = 4, kPixels = 4 * kLanes;  // of a row, at once
constexpr std::size_t kNumbers = 16;                     // of a register
constexpr std::size_t kBytes = 64;                       // the same
/// Of what is made: without it compilers take the rest of a register for one
/// that nobody has set.
constexpr __mmask16 kAll = 0xFFFF;
static_assert(static_cast<int>(kBytes) <= PixelView::kReadBehind);

int groups_of(int count) { return (count + kTaps - 1) / kTaps; }

/// The lowest digit, which is taken off the weight.
std::uint32_t take_digit(std::int32_t& weight) {
  const auto digit = static_cast<std::int8_t>(weight & 0xFF);
  weight = (weight - digit) >> 8;
  return static_cast<std::uint8_t>(digit);
}

/// Of the first four of `count` weights: the lowest digits, side by side, and
/// so on.
template <std::size_t kDigits>
std::array<std::int32_t, kDigits> digits_of(const std::int32_t* weights,
                                            int count) {
  std::array<std::uint32_t, kDigits> all{};
  for (int t = 0; t < std::min(count, kTaps); ++t) {
    std::int32_t rest = weights[t];
    for (std::uint32_t& digits : all) digits |= take_digit(rest) << (8 * t);
  }
  return std::bit_cast<std::array<std::int32_t, kDigits>>(all);
}

/// The sums of sixteen bytes, by digit.
struct Sums {
  __m512i first, second, third;
};

template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline Sums no_sums() {
  constexpr int kBits = kDigits == 3 ? ResizeTaps::kBits : ResizeTaps::kFewBits;
  return {_mm512_set1_epi32(half_of(kBits)), _mm512_setzero_si512(),
          _mm512_setzero_si512()};
}

// vpdpbusd adds its four products in 32 bits, unlike vpmaddubsw, which
// saturates at 16. A digit's sum grows by at most 255 * 128 for each tap, so 32
// bits hold over 65,700 taps, more than a side has pixels.
template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline void add(
    __m512i bytes, const Sums& by, Sums& to) {
  to.first = _mm512_dpbusd_epi32(to.first, bytes, by.first);
  to.second = _mm512_dpbusd_epi32(to.second, bytes, by.second);
  if constexpr (kDigits == 3)
    to.third = _mm512_dpbusd_epi32(to.third, bytes, by.third);
}

template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline __m512i rounded(
    const Sums& sums) {
  constexpr int kBits = kDigits == 3 ? ResizeTaps::kBits : ResizeTaps::kFewBits;
  __m512i high = sums.second;
  if constexpr (kDigits == 3)
    high = _mm512_add_epi32(high, _mm512_maskz_slli_epi32(kAll, sums.third, 8));
  return _mm512_maskz_srai_epi32(
      kAll,
      _mm512_add_epi32(sums.first, _mm512_maskz_slli_epi32(kAll, high, 8)),
      kBits);
}

/// The same of the sums of one addition, from the highest digit down.
template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline __m512i rounded(
    __m512i bytes, const Sums& by) {
  constexpr int kBits = kDigits == 3 ? ResizeTaps::kBits : ResizeTaps::kFewBits;
  constexpr int kDigit = 8;
  __m512i sum = _mm512_set1_epi32(
      half_of(kBits - kDigit * (static_cast<int>(kDigits) - 1)));
  if constexpr (kDigits == 3)
    sum = _mm512_maskz_slli_epi32(
        kAll, _mm512_dpbusd_epi32(sum, bytes, by.third), kDigit);
  sum = _mm512_maskz_slli_epi32(
      kAll, _mm512_dpbusd_epi32(sum, bytes, by.second), kDigit);
  return _mm512_maskz_srai_epi32(
      kAll, _mm512_dpbusd_epi32(sum, bytes, by.first), kBits);
}

/// Of each quarter of the registers the numbers of all four, as bytes.
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline __m512i packed(
    __m512i first, __m512i second, __m512i third, __m512i fourth) {
  return _mm512_packus_epi16(_mm512_packs_epi32(first, second),
                             _mm512_packs_epi32(third, fourth));
}

[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline __m512i load(
    const std::int32_t* from) {
  return _mm512_loadu_si512(from);
}

/// What four pixels of a row are made of, for each four of their neighbours:
/// where 64 bytes begin that hold these, in the row; which of the bytes they
/// are, the four reds, greens and blues of each pixel, and four that mean
/// nothing; and their digits.
template <std::size_t kDigits>
class RowSteps {
 public:
  static constexpr std::size_t kStep = kNumbers * (1 + kDigits);

  /// `to` gets the beginnings, then all else. False where four pixels need more
  /// than 64 bytes.
  static bool lay_out(const ResizeTaps& taps, int left, int groups,
                      std::vector<std::int32_t>& to) {
    const std::size_t width = taps.first.size();
    const std::size_t steps = steps_of(width, groups);
    to.assign(steps * (1 + kStep), 0);
    const int last = taps.end() - 1;
    std::size_t step = 0;
    for (std::size_t x = 0; x < width; x += kLanes)
      for (int t = 0; t < groups * kTaps; t += kTaps, ++step) {
        const int begin = std::min(taps.first[x] + t, last);
        to[step] = (begin - left) * 3;
        for (std::size_t i = 0; i < std::min(kLanes, width - x); ++i)
          if (!add_pixel(taps, x + i, t, begin, i,
                         to.data() + steps + step * kStep))
            return false;
      }
    return true;
  }
  static std::size_t steps_of(std::size_t width, int groups) {
    return (width + kPixels - 1) / kPixels * kLanes *
           static_cast<std::size_t>(groups);
  }

 private:
  static bool add_pixel(const ResizeTaps& taps, std::size_t x, int t, int begin,
                        std::size_t lane, std::int32_t* to) {
    const int count = std::min(kTaps, taps.count[x] - t);
    if (count <= 0) return true;
    const int first = (taps.first[x] + t - begin) * 3;
    if (first + count * 3 > static_cast<int>(kBytes)) return false;
    auto* const which = reinterpret_cast<std::uint8_t*>(to) + lane * 16;
    for (int i = 0; i < count; ++i)
      for (int c = 0; c < 3; ++c)
        which[c * kTaps + i] = static_cast<std::uint8_t>(first + i * 3 + c);
    std::int32_t* at = to + kNumbers + lane * kLanes;
    for (std::int32_t digits :
         digits_of<kDigits>(taps.weights_of(x) + t, count)) {
      std::fill_n(at, kLanes, digits);
      at += kNumbers;
    }
    return true;
  }
};

/// Four pixels, of which each step adds four neighbours.
template <std::size_t kDigits, bool kOneGroup>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline __m512i four_of_row(
    const std::uint8_t* row, const std::int32_t* begins, int groups,
    const std::int32_t* steps) {
  Sums sums = no_sums<kDigits>();
  for (int g = 0; g < (kOneGroup ? 1 : groups); ++g) {
    const __m512i bytes = _mm512_maskz_permutexvar_epi8(
        ~__mmask64{0}, load(steps), _mm512_loadu_si512(row + begins[g]));
    const Sums by{
        load(steps + kNumbers), load(steps + 2 * kNumbers),
        kDigits == 3 ? load(steps + 3 * kNumbers) : _mm512_setzero_si512()};
    if constexpr (kOneGroup) return rounded<kDigits>(bytes, by);
    add<kDigits>(bytes, by, sums);
    steps += RowSteps<kDigits>::kStep;
  }
  return rounded<kDigits>(sums);
}

/// Where packed() has the bytes of sixteen pixels, in their order.
constexpr std::array<std::uint8_t, kBytes> in_order() {
  std::array<std::uint8_t, kBytes> order{};
  for (std::size_t at = 0; at < kPixels * 3; ++at)
    order[at] = static_cast<std::uint8_t>(at / 3 % kLanes * 16 +
                                          at / 3 / kLanes * kLanes + at % 3);
  return order;
}
constexpr std::array<std::uint8_t, kBytes> kInOrder = in_order();

/// Reads up to 61 bytes behind the last pixel.
template <std::size_t kDigits, bool kOneGroup>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] void rgb_row(
    const std::uint8_t* in, std::size_t width, int groups,
    const std::int32_t* laid_out, std::uint8_t* out) {
  using Layout = RowSteps<kDigits>;
  const __m512i order = _mm512_loadu_si512(kInOrder.data());
  const std::size_t each = static_cast<std::size_t>(kOneGroup ? 1 : groups);
  const std::int32_t* begins = laid_out;
  const std::int32_t* steps = laid_out + Layout::steps_of(width, groups);
  const auto four = [&](std::size_t at)
      __attribute__((target("avx512bw,avx512vbmi,avx512vnni"))) {
    return four_of_row<kDigits, kOneGroup>(in, begins + at * each, groups,
                                           steps + at * each * Layout::kStep);
  };
  for (std::size_t x = 0; x < width; x += kPixels) {
    const std::size_t wanted = std::min(kPixels, width - x) * 3;
    _mm512_mask_storeu_epi8(
        out, (__mmask64{1} << wanted) - 1,
        _mm512_maskz_permutexvar_epi8(
            ~__mmask64{0}, order, packed(four(0), four(1), four(2), four(3))));
    begins += kLanes * each;
    steps += kLanes * each * Layout::kStep;
    out += kPixels * 3;
  }
}

/// False where it cannot.
template <std::size_t kDigits>
bool rgb_rows(const PixelView& in, int left, int first, int end,
              const ResizeTaps& columns, std::vector<std::int32_t>& scratch,
              Pixels& out) {
  const int groups = groups_of(*std::ranges::max_element(columns.count));
  if (!RowSteps<kDigits>::lay_out(columns, left, groups, scratch)) return false;
  const auto pass =
      groups == 1 ? rgb_row<kDigits, true> : rgb_row<kDigits, false>;
  for (int y = first; y < end; ++y)
    pass(in.row(y), columns.first.size(), groups, scratch.data(),
         out.row(y - first));
  return true;
}

void along_rows(const PixelView& in, int left, int first, int end,
                const ResizeTaps& columns, std::vector<std::int32_t>& scratch,
                Pixels& out) {
  const bool few = columns.bits == ResizeTaps::kFewBits;
  if (in.mode != PictureMode::rgb ||
      !(few ? rgb_rows<2> : rgb_rows<3>)(in, left, first, end, columns, scratch,
                                         out))
    passes_of(ResizeCode::avx2)
        .along_rows(in, left, first, end, columns, scratch, out);
}

/// Adds 64 bytes of each of four rows, whose ends may be in them.
template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] inline void add_rows(
    const std::uint8_t* in, const std::int32_t* begins, const Sums& by, Sums& a,
    Sums& b, Sums& c, Sums& d) {
  const __m512i first = _mm512_loadu_si512(in + begins[0]);
  const __m512i second = _mm512_loadu_si512(in + begins[1]);
  const __m512i third = _mm512_loadu_si512(in + begins[2]);
  const __m512i fourth = _mm512_loadu_si512(in + begins[3]);
  const __m512i low = _mm512_unpacklo_epi8(first, second),
                low_2 = _mm512_unpacklo_epi8(third, fourth),
                high = _mm512_unpackhi_epi8(first, second),
                high_2 = _mm512_unpackhi_epi8(third, fourth);
  add<kDigits>(_mm512_unpacklo_epi16(low, low_2), by, a);
  add<kDigits>(_mm512_unpackhi_epi16(low, low_2), by, b);
  add<kDigits>(_mm512_unpacklo_epi16(high, high_2), by, c);
  add<kDigits>(_mm512_unpackhi_epi16(high, high_2), by, d);
}

/// `laid_out`: of each four rows where they begin, and the digits.
template <std::size_t kDigits>
[[gnu::target("avx512bw,avx512vbmi,avx512vnni")]] void column_row(
    const std::uint8_t* in, const std::int32_t* laid_out, int groups,
    std::size_t bytes, std::uint8_t* out) {
  for (std::size_t x = 0; x < bytes; x += kBytes) {
    const std::size_t left = bytes - x;
    const __mmask64 there =
        left >= kBytes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    Sums a = no_sums<kDigits>(), b = a, c = a, d = a;
    const std::int32_t* at = laid_out;
    for (int g = 0; g < groups; ++g, at += kTaps + kDigits) {
      const Sums by{_mm512_set1_epi32(at[kTaps]),
                    _mm512_set1_epi32(at[kTaps + 1]),
                    _mm512_set1_epi32(at[kTaps + kDigits - 1])};
      add_rows<kDigits>(in + x, at, by, a, b, c, d);
    }
    _mm512_mask_storeu_epi8(out + x, there,
                            packed(rounded<kDigits>(a), rounded<kDigits>(b),
                                   rounded<kDigits>(c), rounded<kDigits>(d)));
  }
}

template <std::size_t kDigits>
void byte_columns(const PixelView& in, int top, const ResizeTaps& rows,
                  std::vector<std::int32_t>& scratch, Pixels& out) {
  for (int y = 0; y < out.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    const int count = rows.count[at];
    scratch.clear();
    for (int t = 0; t < count; t += kTaps) {
      for (int i = t; i < t + kTaps; ++i)  // the last one's weight is 0 then
        scratch.push_back(std::min(i, count - 1) *
                          static_cast<std::int32_t>(in.stride));
      const auto digits =
          digits_of<kDigits>(rows.weights_of(at) + t, count - t);
      scratch.insert(scratch.end(), digits.begin(), digits.end());
    }
    column_row<kDigits>(in.row(rows.first[at] - top), scratch.data(),
                        groups_of(count), out.row_bytes(), out.row(y));
  }
}

void along_columns(const PixelView& in, int top, const ResizeTaps& rows,
                   std::vector<std::int32_t>& scratch, Pixels& out) {
  (rows.bits == ResizeTaps::kFewBits
       ? byte_columns<2>
       : byte_columns<3>)(in, top, rows, scratch, out);
}

constexpr Passes kPasses{.along_rows = along_rows,
                         .along_columns = along_columns};

}  // namespace avx512
}  // namespace

const Passes* avx512_passes() {
  return __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vbmi") &&
                 __builtin_cpu_supports("avx512vnni")
             ? &avx512::kPasses
             : nullptr;
}
#else
const Passes* avx512_passes() { return nullptr; }
#endif

}  // namespace penstock::resizing
