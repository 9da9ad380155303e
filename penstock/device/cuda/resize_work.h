#pragma once

#include "penstock/device/cuda/operation_work.h"

/// What the kernel of resizes does, as operation_work.h has it for the others.
///
/// A thread adds up both axes of an element at once, the first one again for
/// each tap of the second: a few more sums, and no memory between them.
namespace penstock::cuda {

/// As penstock::ResizeAxisTaps.
struct WorkTaps {
  std::uint32_t at, most;
};
/// As penstock::ResizeWindow.
struct WorkResizeWindow {
  const std::byte* image;  ///< where taps count from; null: zeros
  std::byte* out;          ///< its row
  std::uint64_t line;      ///< pixels from a line of the image to the next
  WorkTaps columns, rows;
  std::uint32_t columns_first, flip;
};
/// All that it points to is the device's.
struct ResizeWork {
  const WorkResizeWindow* windows = nullptr;
  const std::byte* numbers = nullptr;
  const std::int32_t* taps = nullptr;
  std::uint32_t height = 0, width = 0, channels = 0;
  std::uint32_t number_bytes = 0;
  std::uint32_t row_blocks = 0;  ///< of a window
  bool channels_first = false;
};

/// The taps of one pixel along one axis.
struct PixelTaps {
  std::uint32_t first, count;
  const std::int32_t* weights;
};

PENSTOCK_HOST_DEVICE inline PixelTaps taps_of(const ResizeWork& work,
                                              const WorkTaps& axis,
                                              std::uint32_t pixels,
                                              std::uint32_t pixel) {
  const std::int32_t* first = work.taps + axis.at;
  return {static_cast<std::uint32_t>(first[pixel]),
          static_cast<std::uint32_t>(first[pixels + pixel]),
          first + 2 * std::uint64_t{pixels} + std::uint64_t{pixel} * axis.most};
}

constexpr std::int32_t kSumBits = 22;  // as kResizeBits
constexpr std::int32_t kSumHalf = 1 << (kSumBits - 1);

PENSTOCK_HOST_DEVICE inline std::int32_t byte_of_sum(std::int32_t sum) {
  sum >>= kSumBits;
  return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

/// Of the bytes from `from` on, in steps along the axis that is first added up
/// and along the other.
PENSTOCK_HOST_DEVICE inline std::int32_t sum_of_sums(const std::byte* from,
                                                     const PixelTaps& inner,
                                                     std::uint64_t inner_step,
                                                     const PixelTaps& outer,
                                                     std::uint64_t outer_step) {
  std::int32_t sum = kSumHalf;
  for (std::uint32_t o = 0; o < outer.count; ++o, from += outer_step) {
    std::int32_t part = kSumHalf;
    const std::byte* at = from;
    for (std::uint32_t i = 0; i < inner.count; ++i, at += inner_step)
      part += static_cast<std::int32_t>(*at) * inner.weights[i];
    sum += byte_of_sum(part) * outer.weights[o];
  }
  return byte_of_sum(sum);
}

/// Writes number `entry` of the table; zero where it is below 0.
template <class Number>
PENSTOCK_HOST_DEVICE inline void put_entry(std::byte* out, std::uint64_t at,
                                           const std::byte* table,
                                           std::int32_t entry) {
  Number number = 0;
  if (entry >= 0) {
#if defined(__CUDA_ARCH__)
    number = reinterpret_cast<const Number*>(table)[entry];
#else
    std::memcpy(&number,
                table + static_cast<std::size_t>(entry) * sizeof(number),
                sizeof(number));
#endif
  }
  put_number(out, at, number);
}

/// What becomes of element `i`, which is counted as written: an entry of
/// the table of numbers, or -1.
PENSTOCK_HOST_DEVICE inline std::int32_t resized_element(
    const ResizeWork& work, const WorkResizeWindow& window, std::uint32_t i) {
  if (window.image == nullptr) return -1;
  const std::uint32_t pixels = work.height * work.width;
  const std::uint32_t channel =
      work.channels_first ? i / pixels : i % work.channels;
  const std::uint32_t pixel =
      work.channels_first ? i - channel * pixels : i / work.channels;
  const std::uint32_t y = pixel / work.width;
  const std::uint32_t x = pixel - y * work.width;
  const PixelTaps columns = taps_of(work, window.columns, work.width,
                                    window.flip != 0 ? work.width - 1 - x : x);
  const PixelTaps rows = taps_of(work, window.rows, work.height, y);
  const std::uint64_t line = window.line * work.channels;
  const std::byte* from = window.image + rows.first * line +
                          std::uint64_t{columns.first} * work.channels +
                          channel;
  const std::int32_t byte =
      window.columns_first != 0
          ? sum_of_sums(from, rows, line, columns, work.channels)
          : sum_of_sums(from, columns, work.channels, rows, line);
  return static_cast<std::int32_t>(channel * 256) + byte;
}

/// `window`: that of the block, which a block reads once.
PENSTOCK_HOST_DEVICE inline void resize_elements(const ResizeWork& work,
                                                 const WorkResizeWindow& window,
                                                 std::uint64_t block,
                                                 std::uint32_t thread) {
  const ElementShare share = elements_of(
      block, work.row_blocks, work.height * work.width * work.channels);
  for (std::uint32_t i = share.first + thread; i < share.end;
       i += kBlockThreads) {
    const std::int32_t entry = resized_element(work, window, i);
    switch (work.number_bytes) {
      case 1:
        put_entry<std::uint8_t>(window.out, i, work.numbers, entry);
        break;
      case 2:
        put_entry<std::uint16_t>(window.out, i, work.numbers, entry);
        break;
      case 4:
        put_entry<std::uint32_t>(window.out, i, work.numbers, entry);
        break;
      default:
        put_entry<std::uint64_t>(window.out, i, work.numbers, entry);
    }
  }
}

}  // namespace penstock::cuda
