#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "penstock/device/host_device.h"
#include "penstock/device/rounding.h"

/// What the kernels of casts, crops, masks and moves do, in code that a
/// processor can run as well, as gather_work.h has it for the gather: the tests
/// call it for every block and thread and compare with run_on_host().
/// operation_plan.h makes the work, kernels.cu runs it.
///
/// A block does kBlockElements elements of one row of a batch, or of one box of
/// a mask, and a thread every 256th of these: neighbours in a warp write
/// neighbours in memory. Elements of a row are counted in 32 bits, in which a
/// GPU divides fast.
namespace penstock::cuda {

inline constexpr std::uint32_t kBlockThreads = 256;
inline constexpr std::uint32_t kBlockElements = 8 * kBlockThreads;
inline constexpr std::uint32_t kWorkChannels = 128;

enum class WorkNumber : std::uint32_t { float32, float16, bfloat16 };

/// As penstock::CastNormalize. 1.1 KiB of a launch's parameters.
struct CastWork {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t pixels = 0;
  std::uint32_t channels = 0;
  std::uint32_t row_blocks = 0;  ///< of a row
  WorkNumber to = WorkNumber::float32;
  bool channels_first = false;
  float scale[kWorkChannels];
  float offset[kWorkChannels];
};

/// As penstock::CropWindow.
struct WorkWindow {
  const std::byte* image;
  std::int32_t width;
  std::int32_t top, left;
  std::int32_t flip;
};
struct CropWork {
  std::byte* out = nullptr;
  const WorkWindow* windows =
      nullptr;  ///< host memory that the device can read
  std::uint32_t height = 0, width = 0, channels = 0;
  std::uint32_t row_blocks = 0;
};

/// As penstock::MaskBox, with the place of its first element.
struct WorkBox {
  std::uint64_t first;
  std::uint32_t height, width;
};
struct MaskWork {
  std::byte* out = nullptr;
  const WorkBox* boxes = nullptr;  ///< host memory that the device can read
  std::uint32_t width = 0;         ///< of a row
  std::uint32_t box_blocks = 0;
  std::uint32_t element_bytes = 0;
  std::uint64_t value = 0;
};

/// As penstock::MovedRow.
struct WorkMovedRow {
  const std::byte* from;
  std::uint64_t row;
  std::int32_t by;
  float factor;
};
struct MoveWork {
  std::byte* out = nullptr;
  const WorkMovedRow* rows = nullptr;  ///< host memory that the device can read
  std::uint32_t height = 0, width = 0;
  std::uint32_t row_blocks = 0;
  bool wraps = false;
};

/// The elements of a block: of which row or box, and from where on.
struct ElementShare {
  std::uint64_t row;
  std::uint32_t first, end;
};

PENSTOCK_HOST_DEVICE inline ElementShare elements_of(std::uint64_t block,
                                                     std::uint32_t row_blocks,
                                                     std::uint32_t elements) {
  ElementShare share;
  share.row = block / row_blocks;
  // The blocks of the largest box are more than a small one has.
  std::uint64_t first = (block - share.row * row_blocks) * kBlockElements;
  share.first = first < elements ? static_cast<std::uint32_t>(first) : elements;
  share.end = elements - share.first < kBlockElements
                  ? elements
                  : share.first + kBlockElements;
  return share;
}

template <class Number>
PENSTOCK_HOST_DEVICE inline void put_number(std::byte* out, std::uint64_t at,
                                            Number number) {
#if defined(__CUDA_ARCH__)
  reinterpret_cast<Number*>(out)[at] = number;
#else
  std::memcpy(out + at * sizeof(number), &number, sizeof(number));
#endif
}

/// Of a float32.
PENSTOCK_HOST_DEVICE inline std::uint32_t take_bits(const std::byte* in,
                                                    std::uint64_t at) {
#if defined(__CUDA_ARCH__)
  return reinterpret_cast<const std::uint32_t*>(in)[at];
#else
  std::uint32_t bits;
  std::memcpy(&bits, in + at * sizeof(bits), sizeof(bits));
  return bits;
#endif
}

/// All elements of a thread.
PENSTOCK_HOST_DEVICE inline void cast_elements(const CastWork& work,
                                               std::uint64_t block,
                                               std::uint32_t thread) {
  const std::uint32_t elements = work.pixels * work.channels;
  const ElementShare share = elements_of(block, work.row_blocks, elements);
  const std::uint64_t base = share.row * elements;
  for (std::uint32_t i = share.first + thread; i < share.end;
       i += kBlockThreads) {
    // Counted as written.
    const std::uint32_t channel =
        work.channels_first ? i / work.pixels : i % work.channels;
    const std::uint32_t from =
        work.channels_first
            ? (i - channel * work.pixels) * work.channels + channel
            : i;
    const float byte =
        static_cast<float>(static_cast<std::uint8_t>(work.in[base + from]));
    const float number = fmaf(byte, work.scale[channel], work.offset[channel]);
    if (work.to == WorkNumber::float32)
      put_number(work.out, base + i, number);
    else
      put_number(work.out, base + i,
                 work.to == WorkNumber::float16 ? float16_bits(number)
                                                : bfloat16_bits(number));
  }
}

/// `window`: that of the block's row, which a block reads from the host's
/// memory once.
PENSTOCK_HOST_DEVICE inline void crop_elements(const CropWork& work,
                                               const WorkWindow& window,
                                               std::uint64_t block,
                                               std::uint32_t thread) {
  const std::uint32_t line = work.width * work.channels;
  const std::uint32_t elements = work.height * line;
  const ElementShare share = elements_of(block, work.row_blocks, elements);
  std::byte* out = work.out + share.row * elements;
  for (std::uint32_t i = share.first + thread; i < share.end;
       i += kBlockThreads) {
    const std::uint32_t y = i / line;
    const std::uint32_t in_line = i - y * line;
    const std::uint32_t x = in_line / work.channels;
    const std::uint32_t channel = in_line - x * work.channels;
    const std::uint64_t pixel = (static_cast<std::uint64_t>(window.top) + y) *
                                    static_cast<std::uint64_t>(window.width) +
                                static_cast<std::uint64_t>(window.left) +
                                (window.flip != 0 ? work.width - 1 - x : x);
    out[i] = window.image == nullptr
                 ? std::byte{0}
                 : window.image[pixel * work.channels + channel];
  }
}

/// `box`: the block's.
PENSTOCK_HOST_DEVICE inline void mask_elements(const MaskWork& work,
                                               const WorkBox& box,
                                               std::uint64_t block,
                                               std::uint32_t thread) {
  const ElementShare share =
      elements_of(block, work.box_blocks, box.height * box.width);
  for (std::uint32_t i = share.first + thread; i < share.end;
       i += kBlockThreads) {
    const std::uint32_t y = i / box.width;
    const std::uint64_t at =
        box.first + std::uint64_t{y} * work.width + (i - y * box.width);
    switch (work.element_bytes) {
      case 1:
        put_number(work.out, at, static_cast<std::uint8_t>(work.value));
        break;
      case 2:
        put_number(work.out, at, static_cast<std::uint16_t>(work.value));
        break;
      case 4:
        put_number(work.out, at, static_cast<std::uint32_t>(work.value));
        break;
      default:
        put_number(work.out, at, work.value);
    }
  }
}

/// `row`: the block's.
PENSTOCK_HOST_DEVICE inline void move_elements(const MoveWork& work,
                                               const WorkMovedRow& row,
                                               std::uint64_t block,
                                               std::uint32_t thread) {
  const std::uint32_t elements = work.height * work.width;
  const ElementShare share = elements_of(block, work.row_blocks, elements);
  const std::int64_t width = work.width;
  for (std::uint32_t i = share.first + thread; i < share.end;
       i += kBlockThreads) {
    const std::uint32_t y = i / work.width;
    const std::uint32_t line = y * work.width;
    std::int64_t x = std::int64_t{i - line} - row.by;
    if (work.wraps) x += x < 0 ? width : x >= width ? -width : 0;
    std::uint32_t bits = 0;
    if (x >= 0 && x < width)
      bits = take_bits(row.from, line + static_cast<std::uint64_t>(x));
    if (row.factor != 1) bits = multiplied_bits(bits, row.factor);
    put_number(work.out, row.row * elements + i, bits);
  }
}

}  // namespace penstock::cuda
