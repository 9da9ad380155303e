#pragma once

#include <cstdint>
#include <vector>

#include "penstock/transforms/image/resize.h"

/// The two passes of a resize, in code for several processors.
namespace penstock::resizing {

constexpr int kBits = 22;  ///< of the weights behind the point

/// Rows [first, end) of `in`, of which column `left` is the first, become the
/// rows of `out`, which has its size.
using RowPass = void (*)(const Pixels& in, int left, int first, int end,
                         const ResizeTaps& columns,
                         std::vector<std::int32_t>& scratch, Pixels& out);
/// The same along columns; row `top` is the first of `in`.
using ColumnPass = void (*)(const Pixels& in, int top, const ResizeTaps& rows,
                            std::vector<std::int32_t>& scratch, Pixels& out);

struct Passes {
  RowPass along_rows;
  ColumnPass along_columns;
};
const Passes& passes_of(ResizeCode code);
/// Null where this processor, or this compiler's, has no such code.
const Passes* avx2_passes();

}  // namespace penstock::resizing
