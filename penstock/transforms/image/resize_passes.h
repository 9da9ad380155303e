#pragma once

#include <cstdint>
#include <vector>

#include "penstock/transforms/image/picture.h"
#include "penstock/transforms/image/resize_taps.h"

namespace penstock {

/// Which code runs: all make the same bytes, of which `plain` is the
/// definition.
enum class ResizeCode : std::uint8_t { plain, avx2, avx512 };
/// What this processor runs, the fastest last.
std::vector<ResizeCode> resize_codes();

/// The two passes of a resize, in code for several processors.
namespace resizing {

/// What rounds a sum.
constexpr std::int32_t half_of(int bits) { return 1 << (bits - 1); }

/// Rows [first, end) of `in`, of which column `left` is the first, become the
/// rows of `out`, which has its size.
using RowPass = void (*)(const PixelView& in, int left, int first, int end,
                         const ResizeTaps& columns,
                         std::vector<std::int32_t>& scratch, Pixels& out);
/// The same along columns; row `top` is the first of `in`.
using ColumnPass = void (*)(const PixelView& in, int top,
                            const ResizeTaps& rows,
                            std::vector<std::int32_t>& scratch, Pixels& out);

struct Passes {
  RowPass along_rows;
  ColumnPass along_columns;
};
const Passes& passes_of(ResizeCode code);
/// Null where this processor, or this compiler's, has no such code.
const Passes* avx2_passes();
const Passes* avx512_passes();

}  // namespace resizing
}  // namespace penstock
