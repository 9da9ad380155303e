#pragma once

#include "penstock/device/device.h"

namespace penstock::cuda {

/// Windows of a resize whose images are in a GPU's memory at once, and the
/// bytes of those that are decoded: by the GPU's decoders, and by the host.
struct DecodedPart {
  std::span<const ResizeWindow> windows;
  std::size_t there = 0, on_host = 0;
};

/// As many windows from `first` on as there is room for (kDecodedBytes,
/// kHostDecodedBytes) and as a decoder best takes at once, at least one. A pure
/// function of an operation that was checked, as are the next.
DecodedPart next_decoded(const Resize& resize, std::size_t first);

/// The bytes that the image of a window takes there; 0: it is in no file.
std::size_t decoded_bytes(const Resize& resize, const ResizeWindow& window);

/// Whether the GPU's decoders get its file: they make images of three channels.
bool decoded_there(const Resize& resize, const ResizeWindow& window);

}  // namespace penstock::cuda
