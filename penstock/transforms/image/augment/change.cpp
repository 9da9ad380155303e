#include "penstock/transforms/image/augment/change.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace penstock {
namespace {

void flip_rows(Pixels& pixels) {
  for (int y = 0; y < pixels.height / 2; ++y)
    std::swap_ranges(pixels.row(y), pixels.row(y) + pixels.row_bytes(),
                     pixels.row(pixels.height - 1 - y));
}

}  // namespace

void mirror(Pixels& pixels) {
  const std::size_t size = bytes_of(pixels.mode);
  const auto width = static_cast<std::size_t>(pixels.width);
  for (int y = 0; y < pixels.height; ++y) {
    std::uint8_t* row = pixels.row(y);
    for (std::size_t x = 0; x < width / 2; ++x)
      std::swap_ranges(row + x * size, row + (x + 1) * size,
                       row + (width - 1 - x) * size);
  }
}

void PixelChanger::apply(const PixelChange& change, Pixels& pixels) {
  switch (change.change) {
    case Change::none:
    case Change::erase:
      return;
    case Change::rotate:
    case Change::affine:
      return changes::warp(change, pixels, other_);
    case Change::sharpness:
      return changes::sharpen(change.numbers[0], pixels, other_);
    case Change::blur:
      return changes::blur(change, pixels, numbers_);
    case Change::flip_vertically:
      return flip_rows(pixels);
    default:
      return changes::colour(change, pixels);
  }
}

}  // namespace penstock
