#include "penstock/device/cuda/decode_plan.h"

namespace penstock::cuda {

std::size_t decoded_bytes(const Resize& resize, const ResizeWindow& window) {
  constexpr std::size_t kAlign = 256;
  if (window.file.empty()) return 0;
  return (window.image_bytes(resize.channels) + kAlign - 1) / kAlign * kAlign;
}

DecodedPart next_decoded(const Resize& resize, std::size_t first,
                         std::size_t most) {
  DecodedPart part;
  std::size_t count = 0;
  for (; first + count < resize.windows.size(); ++count) {
    const std::size_t more =
        decoded_bytes(resize, resize.windows[first + count]);
    if (count > 0 && part.bytes + more > most) break;
    part.bytes += more;
  }
  part.windows = resize.windows.subspan(first, count);
  return part;
}

}  // namespace penstock::cuda
