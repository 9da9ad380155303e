#include "penstock/device/cuda/operation_plan.h"

#include <algorithm>
#include <limits>

#include "penstock/base/error.h"

namespace penstock::cuda {
namespace {

std::uint64_t blocks_of(std::uint64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

std::uint32_t checked_blocks(std::uint64_t blocks) {
  PENSTOCK_ASSERT(blocks <= std::numeric_limits<std::int32_t>::max(),
                  "an operation has more blocks than a launch");
  return static_cast<std::uint32_t>(blocks);
}

}  // namespace

CastLaunch plan_cast(const CastNormalize& cast) {
  static_assert(kWorkChannels == kMostChannels);
  CastLaunch launch;
  CastWork& work = launch.work;
  work.in = cast.in;
  work.out = cast.out;
  work.pixels = static_cast<std::uint32_t>(cast.pixels);
  work.channels = static_cast<std::uint32_t>(cast.channels.size());
  work.channels_first = cast.channels_first;
  work.to = cast.to == Dtype::float32   ? WorkNumber::float32
            : cast.to == Dtype::float16 ? WorkNumber::float16
                                        : WorkNumber::bfloat16;
  for (std::size_t c = 0; c < cast.channels.size(); ++c) {
    const Factors factors = factors_of(cast.channels[c]);
    work.scale[c] = factors.scale;
    work.offset[c] = factors.offset;
  }
  const std::uint64_t row_blocks =
      blocks_of(std::uint64_t{work.pixels} * work.channels);
  work.row_blocks = static_cast<std::uint32_t>(row_blocks);
  launch.blocks =
      checked_blocks(row_blocks * static_cast<std::uint64_t>(cast.rows));
  return launch;
}

CropLaunch plan_crop(const CropFlip& crop, std::size_t first,
                     std::span<const CropWindow> windows,
                     const WorkWindow* staged) {
  CropLaunch launch;
  CropWork& work = launch.work;
  work.height = static_cast<std::uint32_t>(crop.height);
  work.width = static_cast<std::uint32_t>(crop.width);
  work.channels = static_cast<std::uint32_t>(crop.channels);
  const std::uint64_t elements =
      std::uint64_t{work.height} * work.width * work.channels;
  work.out = crop.out + first * elements;
  work.windows = staged;
  work.row_blocks = static_cast<std::uint32_t>(blocks_of(elements));
  launch.blocks =
      checked_blocks(std::uint64_t{work.row_blocks} * windows.size());
  return launch;
}

MaskLaunch plan_mask(const Mask& mask, std::span<const MaskBox> boxes,
                     const WorkBox* staged) {
  MaskLaunch launch;
  MaskWork& work = launch.work;
  work.out = mask.out;
  work.boxes = staged;
  work.width = static_cast<std::uint32_t>(mask.width);
  work.element_bytes = static_cast<std::uint32_t>(mask.element_bytes);
  work.value = mask.value;
  std::uint64_t largest = 0;
  for (const MaskBox& box : boxes)
    largest = std::max(largest, static_cast<std::uint64_t>(box.height) *
                                    static_cast<std::uint64_t>(box.width));
  work.box_blocks = static_cast<std::uint32_t>(blocks_of(largest));
  launch.blocks = checked_blocks(std::uint64_t{work.box_blocks} * boxes.size());
  return launch;
}

MoveLaunch plan_move(const Move& move, std::span<const MovedRow> rows,
                     const WorkMovedRow* staged) {
  MoveLaunch launch;
  MoveWork& work = launch.work;
  work.out = move.out;
  work.rows = staged;
  work.height = static_cast<std::uint32_t>(move.height);
  work.width = static_cast<std::uint32_t>(move.width);
  work.wraps = move.wraps;
  work.row_blocks = static_cast<std::uint32_t>(
      blocks_of(std::uint64_t{work.height} * work.width));
  launch.blocks = checked_blocks(std::uint64_t{work.row_blocks} * rows.size());
  return launch;
}

WorkMovedRow work_of(const MovedRow& row) {
  return {row.from, static_cast<std::uint64_t>(row.row), row.by, row.factor};
}

WorkWindow work_of(const CropWindow& window) {
  return {window.image, window.width, window.top, window.left,
          window.flip ? 1 : 0};
}

WorkBox work_of(const MaskBox& box, const Mask& mask) {
  const auto width = static_cast<std::uint64_t>(mask.width);
  const std::uint64_t line = static_cast<std::uint64_t>(box.row) *
                                 static_cast<std::uint64_t>(mask.height) +
                             static_cast<std::uint64_t>(box.top);
  return {line * width + static_cast<std::uint64_t>(box.left),
          static_cast<std::uint32_t>(box.height),
          static_cast<std::uint32_t>(box.width)};
}

}  // namespace penstock::cuda
