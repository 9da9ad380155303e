#pragma once

#include <cstdint>
#include <vector>

#include "penstock/transforms/image/picture.h"
#include "penstock/transforms/image/resize_passes.h"
#include "penstock/transforms/image/resize_taps.h"

namespace penstock {

/// Whether the first pass is along columns: Pillow's rule since version 13, or
/// with few bits where that is less work.
bool columns_first(const ResizeTaps& columns, const ResizeTaps& rows);

/// Resizes pictures as Image.resize() of Pillow 13 does, byte by byte; belongs
/// to one thread at a time.
class Resizer {
 public:
  explicit Resizer(ResizeCode code = resize_codes().back()) : code_(code) {}

  /// `in` begins at column `left` and row `top` of the picture that the taps
  /// are made for, and holds all that they use.
  void resize(const PixelView& in, int left, int top, const ResizeTaps& columns,
              const ResizeTaps& rows, Pixels& out);
  std::size_t held() const { return between_.held(); }

 private:
  const ResizeCode code_;
  Pixels between_;  // after the first pass
  std::vector<std::int32_t> scratch_;
};

}  // namespace penstock
