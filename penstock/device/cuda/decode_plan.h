#pragma once

#include "penstock/device/device.h"

namespace penstock::cuda {

/// Windows of a resize whose images are in a GPU's memory at once, and the
/// bytes that those of them take that are decoded.
struct DecodedPart {
  std::span<const ResizeWindow> windows;
  std::size_t bytes = 0;
};

/// As many windows from `first` on as `most` bytes hold, at least one. A pure
/// function of an operation that was checked, as is the next.
DecodedPart next_decoded(const Resize& resize, std::size_t first,
                         std::size_t most);

/// The bytes that the image of a window takes there; 0: it is in no file.
std::size_t decoded_bytes(const Resize& resize, const ResizeWindow& window);

}  // namespace penstock::cuda
