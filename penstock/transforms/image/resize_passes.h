#pragma once

#include <cstdint>

#include "penstock/transforms/image/resize.h"

/// The two passes of a resize, in code for several processors.
namespace penstock::resizing {

constexpr int kBits = 22;  ///< of the weights behind the point

/// Pixels of `out`, a row, from those of `in`, of which column `left` is the
/// first.
using RowPass = void (*)(const std::uint8_t* in, int left,
                         const ResizeTaps& taps, std::uint8_t* out);
/// Bytes of `out`, a row, from those of rows that begin `stride` apart.
using ColumnPass = void (*)(const std::uint8_t* in, std::size_t stride,
                            const std::int32_t* weights, int count,
                            std::size_t bytes, std::uint8_t* out);

struct Passes {
  RowPass rgb_row, grey_row;
  ColumnPass column;
};
const Passes& passes_of(ResizeCode code);
/// Null where this processor, or this compiler's, has no such code.
const Passes* avx2_passes();

}  // namespace penstock::resizing
