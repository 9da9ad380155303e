#include "penstock/device/operation.h"

#include <cmath>
#include <limits>

#include "penstock/base/error.h"

namespace penstock {
namespace {

/// Of a row; devices count them in 32 bits.
void check_elements(std::int64_t a, std::int64_t b, std::int64_t c) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PENSTOCK_ASSERT(a >= 0 && b >= 0 && c >= 0 && a <= kMost && b <= kMost,
                  "an extent of an operation is below 0 or beyond 2^31");
  PENSTOCK_ASSERT(c == 0 || (a * b <= kMost && a * b <= kMost / c),
                  "a row of an operation has too many elements");
}

void check_aligned(const std::byte* at, std::size_t bytes) {
  PENSTOCK_ASSERT(reinterpret_cast<std::uintptr_t>(at) % bytes == 0,
                  "the target of an operation is not aligned, or its source");
}

/// [at, at + count) is within [0, size).
bool within(std::int32_t at, std::int32_t count, std::int32_t size) {
  return at >= 0 && count >= 0 && count <= size && at <= size - count;
}

}  // namespace

Factors factors_of(const Normalization& channel) {
  return {static_cast<float>(1 / channel.deviation),
          static_cast<float>(-channel.mean / channel.deviation)};
}

void check(const CastNormalize& cast) {
  PENSTOCK_ASSERT(!cast.channels.empty() &&
                      cast.channels.size() <= kMostChannels && cast.rows >= 0,
                  "a cast has no channels, or too many");
  check_elements(cast.pixels, 1,
                 static_cast<std::int64_t>(cast.channels.size()));
  PENSTOCK_ASSERT(cast.to == Dtype::float32 || cast.to == Dtype::float16 ||
                      cast.to == Dtype::bfloat16,
                  "a cast is to a floating-point number of 16 or 32 bits");
  check_aligned(cast.out, size_of(cast.to));
  for (const Normalization& channel : cast.channels) {
    Factors factors = factors_of(channel);
    PENSTOCK_ASSERT(
        std::isfinite(factors.scale) && std::isfinite(factors.offset),
        "the deviation of a channel is 0, or too small to divide by");
  }
}

void check(const CropFlip& crop) {
  check_elements(crop.height, crop.width, crop.channels);
  PENSTOCK_ASSERT(crop.channels > 0, "an image without channels");
  for (const CropWindow& window : crop.windows)
    PENSTOCK_ASSERT(window.image == nullptr ||
                        (within(window.top, crop.height, window.height) &&
                         within(window.left, crop.width, window.width)),
                    "a window leaves its image");
}

namespace {

bool right_taps(const Resize& resize, const ResizeAxisTaps& axis,
                std::int32_t pixels, std::int32_t room) {
  if (axis.most < 1 || axis.at > resize.taps.size() ||
      axis.numbers(pixels) > resize.taps.size() - axis.at)
    return false;
  const std::int32_t* first = resize.taps.data() + axis.at;
  const std::int32_t* count = first + pixels;
  bool right = true;
  for (std::int32_t p = 0; p < pixels; ++p)
    right = right && count[p] >= 1 && count[p] <= axis.most &&
            within(first[p], count[p], room);
  return right;
}

}  // namespace

void check(const Resize& resize) {
  check_elements(resize.height, resize.width, resize.channels);
  const std::size_t bytes = resize.number_bytes;
  PENSTOCK_ASSERT(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8,
                  "a resize to numbers of another size");
  check_aligned(resize.out, bytes);
  PENSTOCK_ASSERT(
      resize.channels > 0 &&
          static_cast<std::size_t>(resize.channels) <= kMostChannels &&
          resize.numbers.size() ==
              static_cast<std::size_t>(resize.channels) * 256 * bytes,
      "a resize has no channels, too many, or not the numbers of each");
  for (const ResizeWindow& window : resize.windows) {
    PENSTOCK_ASSERT(window.row >= 0, "a window without a row");
    if (window.zeros()) continue;
    PENSTOCK_ASSERT(window.file.empty() ||
                        (window.image == nullptr && resize.decode != nullptr),
                    "a file of a window that nobody decodes");
    PENSTOCK_ASSERT(within(window.top, 0, window.height) &&
                        within(window.left, 0, window.width),
                    "a window leaves its image");
    PENSTOCK_ASSERT(right_taps(resize, window.columns, resize.width,
                               window.width - window.left) &&
                        right_taps(resize, window.rows, resize.height,
                                   window.height - window.top),
                    "the taps of a window leave it, or are not there");
  }
}

void check(const Mask& mask) {
  check_elements(mask.height, mask.width, 1);
  PENSTOCK_ASSERT(mask.element_bytes == 1 || mask.element_bytes == 2 ||
                      mask.element_bytes == 4 || mask.element_bytes == 8,
                  "a mask of elements of another size");
  check_aligned(mask.out, mask.element_bytes);
  for (const MaskBox& box : mask.boxes)
    PENSTOCK_ASSERT(box.row >= 0 && box.row < mask.rows &&
                        within(box.top, box.height, mask.height) &&
                        within(box.left, box.width, mask.width),
                    "a box of a mask leaves its row");
}

void check(const Move& move) {
  check_elements(move.height, move.width, 1);
  check_aligned(move.out, sizeof(float));
  for (const MovedRow& row : move.moved) {
    check_aligned(row.from, sizeof(float));
    PENSTOCK_ASSERT(row.row >= 0 && row.row < move.rows &&
                        row.by >= -move.width && row.by <= move.width,
                    "a row moves by more than its width, or to none");
  }
}

}  // namespace penstock
