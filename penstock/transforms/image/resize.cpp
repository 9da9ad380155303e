#include "penstock/transforms/image/resize.h"

// Pillow resizes bytes in two passes, one along rows, one along columns, and
// rounds to bytes after each: so their order shows.

namespace penstock {

bool columns_first(const ResizeTaps& columns, const ResizeTaps& rows) {
  const int lower = rows.size - rows.out;
  // Pixels cost more along rows: so there are fewer of them.
  if (rows.bits == ResizeTaps::kFewBits) return lower > 0;
  return lower > 0 && lower > 2 * (columns.size - columns.out);
}

void Resizer::resize(const PixelView& in, int left, int top,
                     const ResizeTaps& columns, const ResizeTaps& rows,
                     Pixels& out) {
  const resizing::Passes& passes = resizing::passes_of(code_);
  const auto width = static_cast<int>(columns.first.size());
  const auto height = static_cast<int>(rows.first.size());
  if (columns_first(columns, rows)) {
    between_.reshape(in.width, height, in.mode);
    passes.along_columns(in, top, rows, scratch_, between_);
    out.reshape(width, height, in.mode);
    passes.along_rows(between_.view(), left, 0, height, columns, scratch_, out);
    return;
  }
  const int first = rows.begin(), end = rows.end();
  between_.reshape(width, end - first, in.mode);
  passes.along_rows(in, left, first - top, end - top, columns, scratch_,
                    between_);
  out.reshape(width, height, in.mode);
  passes.along_columns(between_.view(), first, rows, scratch_, out);
}

}  // namespace penstock
