#include "penstock/device/cpu/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "penstock/device/device.h"
#include "penstock/device/rounding.h"

namespace penstock {
namespace on_host {
namespace {

template <class Number>
Number rounded(float value, Dtype to);
template <>
float rounded(float value, Dtype) {
  return value;
}
template <>
std::uint16_t rounded(float value, Dtype to) {
  return to == Dtype::float16 ? float16_bits(value) : bfloat16_bits(value);
}

/// A channel of some rows. A byte has 256 values: what each becomes is computed
/// once.
template <class Number>
void cast_channel(const CastNormalize& cast, std::size_t c, std::size_t begin,
                  std::size_t end) {
  const Factors factors = factors_of(cast.channels[c]);
  std::array<Number, 256> numbers;
  for (std::size_t byte = 0; byte < numbers.size(); ++byte)
    numbers[byte] = rounded<Number>(
        std::fma(static_cast<float>(byte), factors.scale, factors.offset),
        cast.to);
  const std::size_t channels = cast.channels.size();
  const auto pixels = static_cast<std::size_t>(cast.pixels);
  const std::size_t step = cast.channels_first ? 1 : channels;
  for (std::size_t row = begin; row < end; ++row) {
    const std::size_t first = row * pixels * channels;
    const std::byte* in = cast.in + first + c;
    std::byte* out =
        cast.out +
        sizeof(Number) * (first + c * (cast.channels_first ? pixels : 1));
    for (std::size_t p = 0; p < pixels; ++p)
      std::memcpy(out + sizeof(Number) * p * step,
                  &numbers[std::to_integer<std::size_t>(in[p * channels])],
                  sizeof(Number));
  }
}

// As many rows at once as stay in a processor's cache from channel to channel.
template <class Number>
void cast_all(const CastNormalize& cast) {
  constexpr std::size_t kCached = std::size_t{256} << 10;
  const std::size_t row_bytes =
      static_cast<std::size_t>(cast.pixels) * cast.channels.size();
  if (row_bytes == 0) return;
  const std::size_t most = std::max<std::size_t>(1, kCached / row_bytes);
  const auto rows = static_cast<std::size_t>(cast.rows);
  for (std::size_t begin = 0; begin < rows; begin += most)
    for (std::size_t c = 0; c < cast.channels.size(); ++c)
      cast_channel<Number>(cast, c, begin, std::min(rows, begin + most));
}

/// A line of a window, from its first pixel's bytes on.
void copy_line(std::byte* to, const std::byte* from, std::size_t pixels,
               std::size_t channels, bool flip) {
  if (!flip) {
    std::memcpy(to, from, pixels * channels);
    return;
  }
  for (std::size_t x = 0; x < pixels; ++x)
    std::memcpy(to + x * channels, from + (pixels - 1 - x) * channels,
                channels);
}

template <class Element>
void fill_boxes(const Mask& mask) {
  const auto value = static_cast<Element>(mask.value);
  const auto width = static_cast<std::size_t>(mask.width);
  for (const MaskBox& box : mask.boxes) {
    const std::size_t first_line = static_cast<std::size_t>(box.row) *
                                       static_cast<std::size_t>(mask.height) +
                                   static_cast<std::size_t>(box.top);
    for (std::size_t y = 0; y < static_cast<std::size_t>(box.height); ++y) {
      std::byte* at =
          mask.out + sizeof(Element) * ((first_line + y) * width +
                                        static_cast<std::size_t>(box.left));
      for (std::int32_t x = 0; x < box.width; ++x, at += sizeof(Element))
        std::memcpy(at, &value, sizeof(Element));
    }
  }
}

/// A line of so many numbers, `by` of them to the right.
void move_line(std::byte* to, const std::byte* from, std::int64_t width,
               std::int64_t by, bool wraps) {
  const auto bytes = [](std::int64_t numbers) {
    return sizeof(float) * static_cast<std::size_t>(numbers);
  };
  const std::int64_t come_in = by < 0 ? -by : by, stay = width - come_in;
  const std::int64_t right = std::max<std::int64_t>(by, 0);
  const std::int64_t left = std::max<std::int64_t>(-by, 0);
  std::memcpy(to + bytes(right), from + bytes(left), bytes(stay));
  std::byte* end = to + bytes(by < 0 ? stay : 0);
  if (wraps)
    std::memcpy(end, from + bytes(by < 0 ? 0 : stay), bytes(come_in));
  else
    std::memset(end, 0, bytes(come_in));
}

void multiply(std::byte* numbers, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i, numbers += sizeof(float)) {
    std::uint32_t bits;
    std::memcpy(&bits, numbers, sizeof(bits));
    bits = multiplied_bits(bits, factor);
    std::memcpy(numbers, &bits, sizeof(bits));
  }
}

}  // namespace

void run(const CastNormalize& cast) {
  check(cast);
  if (cast.to == Dtype::float32)
    cast_all<float>(cast);
  else
    cast_all<std::uint16_t>(cast);
}

void run(const CropFlip& crop) {
  check(crop);
  const auto height = static_cast<std::size_t>(crop.height);
  const auto width = static_cast<std::size_t>(crop.width);
  const auto channels = static_cast<std::size_t>(crop.channels);
  if (height * width == 0) return;
  std::byte* out = crop.out;
  for (const CropWindow& window : crop.windows) {
    for (std::size_t y = 0; y < height; ++y, out += width * channels) {
      if (window.image == nullptr) {
        std::memset(out, 0, width * channels);
        continue;
      }
      const std::size_t line = static_cast<std::size_t>(window.top) + y;
      const std::size_t pixel = line * static_cast<std::size_t>(window.width) +
                                static_cast<std::size_t>(window.left);
      copy_line(out, window.image + pixel * channels, width, channels,
                window.flip);
    }
  }
}

void run(const Mask& mask) {
  check(mask);
  switch (mask.element_bytes) {
    case 1:
      return fill_boxes<std::uint8_t>(mask);
    case 2:
      return fill_boxes<std::uint16_t>(mask);
    case 4:
      return fill_boxes<std::uint32_t>(mask);
    default:
      return fill_boxes<std::uint64_t>(mask);
  }
}

void run(const Move& move) {
  check(move);
  const std::size_t line = sizeof(float) * static_cast<std::size_t>(move.width);
  const auto lines = static_cast<std::size_t>(move.height);
  for (const MovedRow& row : move.moved) {
    std::byte* out =
        move.out + static_cast<std::size_t>(row.row) * lines * line;
    for (std::size_t y = 0; y < lines; ++y)
      move_line(out + y * line, row.from + y * line, move.width, row.by,
                move.wraps);
    if (row.factor != 1)
      multiply(out, lines * line / sizeof(float), row.factor);
  }
}

}  // namespace on_host

void run_on_host(const DeviceOperation& operation) {
  std::visit([](const auto& each) { on_host::run(each); }, operation);
}

}  // namespace penstock
