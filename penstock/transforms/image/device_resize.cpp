#include "penstock/transforms/image/device_resize.h"

#include "penstock/transforms/image/device_decode.h"
#include "penstock/transforms/image/pixel_writer.h"

namespace penstock {

static_assert(kResizeBits == ResizeTaps::kBits);

DeviceResize::DeviceResize(const Image& image)
    : numbers_(PixelWriter(image).numbers()),
      resize_{.height = image.height,
              .width = image.width,
              .channels = static_cast<std::int32_t>(bytes_of(image.mode)),
              .channels_first = !image.channels_last,
              .number_bytes = size_of(image.dtype),
              .numbers = numbers_,
              .decode = decode_on_host} {}

void DeviceResize::begin(std::byte* out) {
  resize_.out = out;
  windows_.clear();
  taps_.clear();
}

void DeviceResize::add(std::int64_t row, ResizeWindow of, const View& view,
                       const ResizeTaps& columns, const ResizeTaps& rows) {
  PENSTOCK_ASSERT(
      columns.bits == ResizeTaps::kBits && rows.bits == ResizeTaps::kBits,
      "a device has weights of so many bits");
  of.top = view.crop.top;
  of.left = view.crop.left;
  of.row = row;
  of.columns = append(columns);
  of.rows = append(rows);
  of.columns_first = columns_first(columns, rows);
  of.flip = view.flipped;
  windows_.push_back(of);
}

void DeviceResize::add_none(std::int64_t row) {
  windows_.push_back({.row = row});
}

void DeviceResize::run(Stream& stream) const {
  Resize resize = resize_;
  resize.taps = taps_;
  resize.windows = windows_;
  stream.run(resize);
}

ResizeAxisTaps DeviceResize::append(const ResizeTaps& taps) {
  const ResizeAxisTaps axis{.at = taps_.size(), .most = taps.most};
  for (const auto* part : {&taps.first, &taps.count, &taps.weights})
    taps_.insert(taps_.end(), part->begin(), part->end());
  return axis;
}

}  // namespace penstock
