#include "penstock/transforms/image/pixel_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "penstock/base/half.h"
#include "penstock/transforms/image/split_channels.h"

namespace penstock {
namespace {

float normalised(const Image& image, std::size_t channel, int byte) {
  const float value = static_cast<float>(byte) / 255.0F;
  if (image.mean.empty()) return value;
  return (value - static_cast<float>(image.mean[channel])) /
         static_cast<float>(image.std[channel]);
}

/// Channels lie `plane` numbers apart; 1: beside one another.
template <std::size_t kChannels, class Table, class Number>
void write_row(const std::uint8_t* from, std::size_t width, bool flipped,
               const Table& table, std::size_t plane, Number* to) {
  const std::size_t between = plane == 1 ? kChannels : 1;
  std::ptrdiff_t step = kChannels;
  if (flipped) {
    from += (width - 1) * kChannels;
    step = -step;
  }
  for (std::size_t x = 0; x < width; ++x, from += step, to += between)
    for (std::size_t c = 0; c < kChannels; ++c)
      to[c * plane] = table[c][from[c]];
}

}  // namespace

PixelWriter::PixelWriter(const Image& image)
    : channels_(bytes_of(image.mode)),
      channels_last_(image.channels_last),
      dtype_(image.dtype) {
  for (std::size_t c = 0; c < channels_; ++c)
    for (int byte = 0; byte < 256; ++byte) {
      const auto at = static_cast<std::size_t>(byte);
      const float value = normalised(image, c, byte);
      bytes_[c][at] = static_cast<std::uint8_t>(byte);
      floats_[c][at] = value;
      halves_[c][at] = to_half(dtype_, value);
    }
  if (dtype_ != Dtype::float32 || channels_ != 3 || channels_last_) return;
  arithmetic_ = true;
  for (std::size_t c = 0; c < channels_; ++c) {
    const bool plain = image.mean.empty();
    by_arithmetic_[c] =
        FloatNumbers(plain ? 0 : static_cast<float>(image.mean[c]),
                     plain ? 1 : static_cast<float>(image.std[c]), floats_[c]);
    arithmetic_ = arithmetic_ && by_arithmetic_[c].exact();
  }
}

void PixelWriter::write_float_planes(const Pixels& pixels, bool flipped,
                                     float* to) const {
  const auto width = static_cast<std::size_t>(pixels.width);
  const std::size_t area = width * static_cast<std::size_t>(pixels.height);
  constexpr std::size_t kAtOnce = 512;
  // A batch of so large pictures is larger than the caches of a processor, and
  // who takes it next is a device or another thread.
  constexpr std::size_t kLarge = 256 << 10;
  const bool past_caches = 3 * area * sizeof(float) >= kLarge;
  std::array<std::uint8_t, 3 * kAtOnce> bytes;
  for (int y = 0; y < pixels.height; ++y, to += width)
    for (std::size_t first = 0; first < width; first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, width - first);
      const std::size_t from = flipped ? width - first - count : first;
      split_channels(pixels.row(y) + from * 3, count, flipped, kAtOnce,
                     bytes.data());
      for (std::size_t c = 0; c < 3; ++c)
        by_arithmetic_[c].write(bytes.data() + c * kAtOnce, count,
                                to + c * area + first, past_caches);
    }
  // Streaming stores are weakly ordered, even on x86. Without the fence, the
  // thread that receives the batch could read what was there before.
  if (past_caches) std::atomic_thread_fence(std::memory_order_seq_cst);
}

template <class Number>
const auto& PixelWriter::table() const {
  if constexpr (std::is_same_v<Number, float>)
    return floats_;
  else if constexpr (std::is_same_v<Number, std::uint16_t>)
    return halves_;
  else
    return bytes_;
}

template <class Number>
void PixelWriter::write_as(const Pixels& pixels, bool flipped,
                           Number* to) const {
  const auto& table = this->table<Number>();
  const auto width = static_cast<std::size_t>(pixels.width);
  const std::size_t area = width * static_cast<std::size_t>(pixels.height);
  for (int y = 0; y < pixels.height; ++y) {
    const std::size_t first = static_cast<std::size_t>(y) * width;
    if (bytes_of(pixels.mode) == 1)
      write_row<1>(pixels.row(y), width, flipped, table, 0, to + first);
    else if (channels_last_)
      write_row<3>(pixels.row(y), width, flipped, table, 1, to + first * 3);
    else if constexpr (sizeof(Number) == 1)
      split_channels(pixels.row(y), width, flipped, area, to + first);
    else
      write_row<3>(pixels.row(y), width, flipped, table, area, to + first);
  }
}

/// Calls `work` with a number of the tensor's type.
template <class Work>
void PixelWriter::of_type(Work work) const {
  if (dtype_ == Dtype::int64)
    work(std::int64_t{});
  else if (dtype_ == Dtype::float32)
    work(float{});
  else if (dtype_ == Dtype::uint8)
    work(std::uint8_t{});
  else
    work(std::uint16_t{});
}

void PixelWriter::write(const Pixels& pixels, bool flipped,
                        std::byte* to) const {
  if (arithmetic_)
    return write_float_planes(pixels, flipped, reinterpret_cast<float*>(to));
  of_type([&](auto number) {
    write_as(pixels, flipped, reinterpret_cast<decltype(number)*>(to));
  });
}

std::vector<std::byte> PixelWriter::numbers() const {
  std::vector<std::byte> all(channels_ * 256 * size_of(dtype_));
  of_type([&](auto number) {
    std::byte* to = all.data();
    for (std::size_t c = 0; c < channels_; ++c)
      for (std::size_t byte = 0; byte < 256; ++byte, to += sizeof(number)) {
        number =
            static_cast<decltype(number)>(table<decltype(number)>()[c][byte]);
        std::memcpy(to, &number, sizeof(number));
      }
  });
  return all;
}

}  // namespace penstock
