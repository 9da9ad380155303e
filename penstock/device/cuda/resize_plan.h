#pragma once

#include <span>

#include "penstock/device/cuda/resize_work.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

/// The windows of one launch, and the bytes that their kernel reads beside the
/// images: the windows, the numbers and the taps.
struct ResizePart {
  std::span<const ResizeWindow> windows;
  std::size_t bytes = 0;
};

/// As many windows from `first` on as `most` bytes hold, at least one. A pure
/// function of an operation that was checked, as are these.
ResizePart next_part(const Resize& resize, std::size_t first, std::size_t most);

/// Writes these bytes to `to`, at a multiple of 8.
void stage(const Resize& resize, const ResizePart& part, std::byte* to);

/// A launch with its geometry; without blocks there is nothing to do.
struct ResizeLaunch {
  ResizeWork work;
  std::uint32_t blocks = 0;
};
/// `staged`: where the device has what was staged.
ResizeLaunch plan_resize(const Resize& resize, const ResizePart& part,
                         const std::byte* staged);

}  // namespace penstock::cuda
