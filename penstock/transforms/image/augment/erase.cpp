#include "penstock/transforms/image/augment/erase.h"

#include <algorithm>
#include <cmath>

#include "penstock/transforms/half.h"

namespace penstock {
namespace {

template <class Number>
Number number_of(Dtype dtype, double value) {
  if constexpr (sizeof(Number) == 1)
    return static_cast<Number>(std::clamp(value, 0.0, 255.0));
  else if constexpr (sizeof(Number) == 2)
    return dtype == Dtype::bfloat16 ? to_bfloat16(static_cast<float>(value))
                                    : to_float16(static_cast<float>(value));
  else
    return static_cast<Number>(value);
}

/// The part of a tensor, channel by channel.
template <class Number>
void write(const Image& image, const Augment& augment,
           const PixelChange& change, Random random, std::byte* tensor) {
  auto* numbers = reinterpret_cast<Number*>(tensor);
  const std::size_t channels = bytes_of(image.mode);
  const auto width = static_cast<std::size_t>(image.width);
  const auto height = static_cast<std::size_t>(image.height);
  auto at = [&](std::size_t i) {
    return static_cast<std::size_t>(change.numbers[i]);
  };
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t y = at(0); y < at(0) + at(2); ++y)
      for (std::size_t x = at(1); x < at(1) + at(3); ++x) {
        const double value =
            augment.random_value
                ? random.normal()
                : augment.value[augment.value.size() == 1 ? 0 : c];
        const std::size_t pixel = y * width + x;
        numbers[image.channels_last ? pixel * channels + c
                                    : c * width * height + pixel] =
            number_of<Number>(image.dtype, value);
      }
}

}  // namespace

void erase(const Image& image, const Augment& augment,
           const PixelChange& change, Random random, std::byte* tensor) {
  if (image.dtype == Dtype::uint8)
    write<std::uint8_t>(image, augment, change, random, tensor);
  else if (image.dtype == Dtype::float32)
    write<float>(image, augment, change, random, tensor);
  else
    write<std::uint16_t>(image, augment, change, random, tensor);
}

}  // namespace penstock
