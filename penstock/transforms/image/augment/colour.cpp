#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "penstock/transforms/image/augment/change.h"

// As Pillow's ImageEnhance, ImageOps, Blend.c and Convert.c have it: the steps
// in float32 must be the same ones, since they are cut off to bytes.

namespace penstock::changes {
namespace {

using Table = std::array<std::uint8_t, 256>;

std::span<std::uint8_t> all_of(Pixels& pixels) {
  return {pixels.row(0),
          pixels.row_bytes() * static_cast<std::size_t>(pixels.height)};
}

template <class Value>
Table table_of(Value value) {
  Table table;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<std::size_t>(byte)] = static_cast<std::uint8_t>(
        std::clamp<std::int64_t>(value(byte), 0, 255));
  return table;
}

void look_up(const Table& table, Pixels& pixels) {
  for (std::uint8_t& byte : all_of(pixels)) byte = table[byte];
}

std::uint8_t grey_at(const std::uint8_t* pixel) {
  return grey_of(pixel[0], pixel[1], pixel[2]);
}

/// The mean of convert("L"), rounded.
int brightness_of(Pixels& pixels) {
  std::int64_t sum = 0, count = 0;
  const std::size_t step = bytes_of(pixels.mode);
  const std::span<std::uint8_t> bytes = all_of(pixels);
  for (std::size_t at = 0; at < bytes.size(); at += step, ++count)
    sum += step == 1 ? bytes[at] : grey_at(&bytes[at]);
  return static_cast<int>(
      static_cast<double>(sum) / static_cast<double>(count) + 0.5);
}

void saturate(float factor, Pixels& pixels) {
  if (pixels.mode == PictureMode::grey) return;
  const std::span<std::uint8_t> bytes = all_of(pixels);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const int grey = grey_at(&bytes[at]);
    for (std::size_t c = 0; c < 3; ++c)
      bytes[at + c] = blended(grey, bytes[at + c], factor);
  }
}

void make_grey(Pixels& pixels) { saturate(0, pixels); }

struct Hsv {
  int hue = 0, saturation = 0, value = 0;
};

// rgb2hsv_row() of Convert.c, which follows Python's colorsys. Constants
// without a suffix are doubles in C, so what they touch is computed in double
// and cut back to float where it is stored. The casts repeat that step by step:
// the last bit decides, since the result is cut off to a byte.
Hsv hsv_of(const std::uint8_t* rgb) {
  const int most = std::max({rgb[0], rgb[1], rgb[2]});
  const int least = std::min({rgb[0], rgb[1], rgb[2]});
  if (most == least) return {.value = most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  auto part = [&](int byte) { return static_cast<float>(most - byte) / range; };
  const float red = part(rgb[0]), green = part(rgb[1]), blue = part(rgb[2]);
  float hue = 0;
  if (rgb[0] == most)
    hue = blue - green;
  else if (rgb[1] == most)
    hue = static_cast<float>(2.0 + static_cast<double>(red) -
                             static_cast<double>(blue));
  else
    hue = static_cast<float>(4.0 + static_cast<double>(green) -
                             static_cast<double>(red));
  hue =
      static_cast<float>(std::fmod(static_cast<double>(hue) / 6.0 + 1.0, 1.0));
  auto byte = [](float of) {
    return std::clamp(static_cast<int>(static_cast<double>(of) * 255.0), 0,
                      255);
  };
  return {.hue = byte(hue), .saturation = byte(saturation), .value = most};
}

// hsv2rgb() of Convert.c: with f the fraction of the sixth of the circle,
//   p = v (1 - s),    q = v (1 - s f),    t = v (1 - s (1 - f))
void write_rgb(const Hsv& hsv, std::uint8_t* rgb) {
  const auto value = static_cast<std::uint8_t>(hsv.value);
  if (hsv.saturation == 0) {
    std::fill_n(rgb, 3, value);
    return;
  }
  const double sixth =
      static_cast<double>(static_cast<float>(hsv.hue)) * 6.0 / 255.0;
  const int which = static_cast<int>(std::floor(sixth));
  const auto rest = static_cast<float>(
      sixth - static_cast<double>(static_cast<float>(which)));
  const auto saturation = static_cast<float>(
      static_cast<double>(static_cast<float>(hsv.saturation)) / 255.0);
  auto part = [&](double factor) {
    const double exact =
        static_cast<double>(static_cast<float>(hsv.value)) * factor;
    return static_cast<std::uint8_t>(
        std::clamp(static_cast<int>(std::round(exact)), 0, 255));
  };
  const auto s = static_cast<double>(saturation);
  const std::uint8_t p = part(1.0 - s);
  const std::uint8_t q = part(1.0 - static_cast<double>(saturation * rest));
  const std::uint8_t t = part(1.0 - s * (1.0 - static_cast<double>(rest)));
  const std::array<std::array<std::uint8_t, 3>, 6> all = {{{value, t, p},
                                                           {q, value, p},
                                                           {p, value, t},
                                                           {p, q, value},
                                                           {t, p, value},
                                                           {value, p, q}}};
  std::copy_n(all[static_cast<std::size_t>(which % 6)].data(), 3, rgb);
}

// torchvision adds `factor` * 255, cut off to a byte, to the byte of the hue.
void turn_hue(double factor, Pixels& pixels) {
  if (pixels.mode == PictureMode::grey) return;
  const auto shift = static_cast<int>(factor * 255);
  const std::span<std::uint8_t> bytes = all_of(pixels);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    Hsv hsv = hsv_of(&bytes[at]);
    hsv.hue = (hsv.hue + shift) & 255;
    write_rgb(hsv, &bytes[at]);
  }
}

using Counts = std::array<std::int64_t, 256>;

// ImageOps.autocontrast() without a cutoff: the least and the greatest value
// that occur become 0 and 255.
Table stretched(const Counts& counts) {
  const auto filled = [](std::int64_t count) { return count > 0; };
  const auto least = std::ranges::find_if(counts, filled) - counts.begin();
  std::int64_t most = 255;
  while (most > 0 && counts[static_cast<std::size_t>(most)] == 0) --most;
  if (most <= least) return table_of([](int byte) { return byte; });
  const double scale = 255.0 / static_cast<double>(most - least);
  const double offset = -static_cast<double>(least) * scale;
  return table_of([&](int byte) {
    return static_cast<std::int64_t>(byte * scale + offset);
  });
}

// ImageOps.equalize(): a value becomes the number of pixels below it over
// `step`, a 255th of all but those of the greatest value. Integers only, as
// there.
Table equalized(const Counts& counts) {
  std::int64_t sum = 0, last = 0, kinds = 0;
  for (std::int64_t count : counts)
    if (count > 0) sum += count, last = count, ++kinds;
  const std::int64_t step = (sum - last) / 255;
  if (kinds <= 1 || step == 0) return table_of([](int byte) { return byte; });
  std::int64_t before = step / 2;
  return table_of([&](int byte) {
    const std::int64_t value = before / step;
    before += counts[static_cast<std::size_t>(byte)];
    return value;
  });
}

/// Each channel by a table that is made of its histogram.
void by_histogram(Table (*make)(const Counts&), Pixels& pixels) {
  const std::size_t channels = bytes_of(pixels.mode);
  const std::span<std::uint8_t> bytes = all_of(pixels);
  for (std::size_t c = 0; c < channels; ++c) {
    Counts counts{};
    for (std::size_t at = c; at < bytes.size(); at += channels)
      ++counts[bytes[at]];
    const Table table = make(counts);
    for (std::size_t at = c; at < bytes.size(); at += channels)
      bytes[at] = table[bytes[at]];
  }
}

}  // namespace

// a + factor (b - a), cut off. Between 0 and 1 the sum cannot leave the bytes;
// beyond, Blend.c clips it first.
std::uint8_t blended(int a, int b, float factor) {
  if (factor == 0) return static_cast<std::uint8_t>(a);
  if (factor == 1) return static_cast<std::uint8_t>(b);
  const float exact =
      static_cast<float>(a) + factor * static_cast<float>(b - a);
  if (factor > 0 && factor < 1) return static_cast<std::uint8_t>(exact);
  if (exact <= 0) return 0;
  return exact >= 255 ? 255 : static_cast<std::uint8_t>(exact);
}

void colour(const PixelChange& change, Pixels& pixels) {
  const double number = change.numbers[0];
  const auto factor = static_cast<float>(number);
  auto from = [&](int base) {
    look_up(table_of([&](int byte) { return blended(base, byte, factor); }),
            pixels);
  };
  switch (change.change) {
    case Change::brightness:
      return from(0);
    case Change::contrast:
      return from(brightness_of(pixels));
    case Change::saturation:
      return saturate(factor, pixels);
    case Change::grey:
      return make_grey(pixels);
    case Change::hue:
      return turn_hue(number, pixels);
    case Change::posterize: {
      const int kept = ~((1 << (8 - static_cast<int>(number))) - 1);
      return look_up(table_of([&](int byte) { return byte & kept; }), pixels);
    }
    case Change::solarize:
      return look_up(
          table_of([&](int byte) { return byte < number ? byte : 255 - byte; }),
          pixels);
    case Change::invert:
      return look_up(table_of([](int byte) { return 255 - byte; }), pixels);
    case Change::auto_contrast:
      return by_histogram(stretched, pixels);
    case Change::equalize:
      return by_histogram(equalized, pixels);
    default:
      return;
  }
}

}  // namespace penstock::changes
