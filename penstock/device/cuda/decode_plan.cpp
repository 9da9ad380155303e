#include "penstock/device/cuda/decode_plan.h"

namespace penstock::cuda {
namespace {

// An engine decoded 64 or 128 files of a call no faster, and others wait longer
// for a decoder.
constexpr int kMostFiles = 32;

}  // namespace

std::size_t decoded_bytes(const Resize& resize, const ResizeWindow& window) {
  constexpr std::size_t kAlign = 256;
  if (window.file.empty()) return 0;
  return (window.image_bytes(resize.channels) + kAlign - 1) / kAlign * kAlign;
}

bool decoded_there(const Resize& resize, const ResizeWindow& window) {
  return !window.file.empty() && !window.host_decodes && resize.channels == 3;
}

DecodedPart next_decoded(const Resize& resize, std::size_t first) {
  DecodedPart part;
  std::size_t count = 0;
  int files = 0;
  for (; first + count < resize.windows.size(); ++count) {
    const ResizeWindow& window = resize.windows[first + count];
    const std::size_t bytes = decoded_bytes(resize, window);
    const bool there = decoded_there(resize, window);
    std::size_t& of = there ? part.there : part.on_host;
    const std::size_t most = there ? kDecodedBytes : kHostDecodedBytes;
    if (count > 0 && (of + bytes > most || (there && files == kMostFiles)))
      break;
    of += bytes;
    files += there;
  }
  part.windows = resize.windows.subspan(first, count);
  return part;
}

}  // namespace penstock::cuda
