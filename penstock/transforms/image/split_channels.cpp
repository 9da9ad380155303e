#include "penstock/transforms/image/split_channels.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Sixteen pixels are 48 bytes, three registers: of each the bytes of a channel
// are put to their places, and what comes from all three is joined.

namespace penstock {
namespace {

#if defined(__x86_64__)
constexpr std::size_t kAtOnce = 16;

using Shuffle = std::array<std::int8_t, kAtOnce>;

/// Where register `part` has the channel's bytes; -1: another one has them.
constexpr Shuffle mask_of(int channel, int part, bool mirrored) {
  Shuffle mask{};
  for (int i = 0; i < static_cast<int>(kAtOnce); ++i) {
    const int pixel = mirrored ? static_cast<int>(kAtOnce) - 1 - i : i;
    const int at = 3 * pixel + channel - static_cast<int>(kAtOnce) * part;
    mask[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(
        at >= 0 && at < static_cast<int>(kAtOnce) ? at : -1);
  }
  return mask;
}

constexpr std::array<std::array<std::array<Shuffle, 3>, 3>, 2> make_masks() {
  std::array<std::array<std::array<Shuffle, 3>, 3>, 2> all{};
  for (std::size_t mirrored = 0; mirrored < 2; ++mirrored)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t part = 0; part < 3; ++part)
        all[mirrored][c][part] =
            mask_of(static_cast<int>(c), static_cast<int>(part), mirrored == 1);
  return all;
}
constexpr auto kMasks = make_masks();

[[gnu::target("ssse3")]] inline __m128i load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

/// Whole sixteens from the left; the number of pixels that are done.
[[gnu::target("ssse3")]] std::size_t split_sixteens(const std::uint8_t* rgb,
                                                    std::size_t width,
                                                    bool mirrored,
                                                    std::size_t plane,
                                                    std::uint8_t* to) {
  const auto& masks = kMasks[mirrored ? 1 : 0];
  std::size_t x = 0;
  for (; x + kAtOnce <= width; x += kAtOnce) {
    const std::uint8_t* from = rgb + x * 3;
    const __m128i parts[3] = {load(from), load(from + 16), load(from + 32)};
    std::uint8_t* out = to + (mirrored ? width - kAtOnce - x : x);
    for (std::size_t c = 0; c < 3; ++c) {
      const __m128i bytes = _mm_or_si128(
          _mm_or_si128(_mm_shuffle_epi8(parts[0], load(masks[c][0].data())),
                       _mm_shuffle_epi8(parts[1], load(masks[c][1].data()))),
          _mm_shuffle_epi8(parts[2], load(masks[c][2].data())));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c * plane), bytes);
    }
  }
  return x;
}
#endif

}  // namespace

void split_channels(const std::uint8_t* rgb, std::size_t width, bool mirrored,
                    std::size_t plane, std::uint8_t* to) {
  std::size_t x = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("ssse3"))
    x = split_sixteens(rgb, width, mirrored, plane, to);
#endif
  for (; x < width; ++x)
    for (std::size_t c = 0; c < 3; ++c)
      to[c * plane + (mirrored ? width - 1 - x : x)] = rgb[x * 3 + c];
}

}  // namespace penstock
