#pragma once

#include <cstdint>
#include <vector>

#include "penstock/device/device.h"
#include "penstock/transforms/image/image.h"
#include "penstock/transforms/image/resize.h"
#include "penstock/transforms/image/view.h"

namespace penstock {

/// Pictures that a device makes the rows of a batch of, kept decoded or as
/// files: what Resizer and PixelWriter do, as one operation. Keeps its memory
/// for the next batch; belongs to one thread.
class DeviceResize {
 public:
  explicit DeviceResize(const Image& image);

  /// Begins a batch that goes to `out`.
  void begin(std::byte* out);
  /// The picture of a row: `of` says where it is, and its size.
  void add(std::int64_t row, ResizeWindow of, const View& view,
           const ResizeTaps& columns, const ResizeTaps& rows);
  /// A row of zeros.
  void add_none(std::int64_t row);
  void run(Stream& stream) const;

 private:
  ResizeAxisTaps append(const ResizeTaps& taps);

  const std::vector<std::byte> numbers_;
  Resize resize_;
  std::vector<ResizeWindow> windows_;
  std::vector<std::int32_t> taps_;
};

}  // namespace penstock
