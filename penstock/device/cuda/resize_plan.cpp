#include "penstock/device/cuda/resize_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"

namespace penstock::cuda {
namespace {

static_assert(kSumBits == kResizeBits);
// Numbers stand behind windows, taps behind numbers, each aligned.
static_assert(sizeof(WorkResizeWindow) % 8 == 0);

std::size_t tap_numbers(const Resize& resize, const ResizeWindow& window) {
  return window.image == nullptr ? 0
                                 : window.columns.numbers(resize.width) +
                                       window.rows.numbers(resize.height);
}

/// Copies the taps of an axis behind those that are there.
WorkTaps copied(const Resize& resize, const ResizeAxisTaps& axis,
                std::int32_t pixels, std::int32_t* taps, std::size_t& count) {
  const WorkTaps work{static_cast<std::uint32_t>(count),
                      static_cast<std::uint32_t>(axis.most)};
  std::ranges::copy(resize.taps.subspan(axis.at, axis.numbers(pixels)),
                    taps + count);
  count += axis.numbers(pixels);
  return work;
}

std::size_t row_bytes(const Resize& resize) {
  return static_cast<std::size_t>(resize.height) *
         static_cast<std::size_t>(resize.width) *
         static_cast<std::size_t>(resize.channels) * resize.number_bytes;
}

WorkResizeWindow work_of(const Resize& resize, const ResizeWindow& window,
                         std::int32_t* taps, std::size_t& count) {
  WorkResizeWindow work{};
  work.out =
      resize.out + static_cast<std::size_t>(window.row) * row_bytes(resize);
  if (window.image == nullptr) return work;
  work.line = static_cast<std::uint64_t>(window.width);
  work.image =
      window.image + (static_cast<std::uint64_t>(window.top) * work.line +
                      static_cast<std::uint64_t>(window.left)) *
                         static_cast<std::uint64_t>(resize.channels);
  work.columns = copied(resize, window.columns, resize.width, taps, count);
  work.rows = copied(resize, window.rows, resize.height, taps, count);
  work.columns_first = window.columns_first ? 1 : 0;
  work.flip = window.flip ? 1 : 0;
  return work;
}

}  // namespace

ResizePart next_part(const Resize& resize, std::size_t first,
                     std::size_t most) {
  ResizePart part{.bytes = resize.numbers.size()};
  std::size_t count = 0;
  for (; first + count < resize.windows.size(); ++count) {
    const std::size_t more =
        sizeof(WorkResizeWindow) +
        tap_numbers(resize, resize.windows[first + count]) *
            sizeof(std::int32_t);
    if (count > 0 && part.bytes + more > most) break;
    part.bytes += more;
  }
  part.windows = resize.windows.subspan(first, count);
  return part;
}

void stage(const Resize& resize, const ResizePart& part, std::byte* to) {
  auto* windows = reinterpret_cast<WorkResizeWindow*>(to);
  std::byte* numbers = to + part.windows.size() * sizeof(WorkResizeWindow);
  std::ranges::copy(resize.numbers, numbers);
  auto* taps = reinterpret_cast<std::int32_t*>(numbers + resize.numbers.size());
  std::size_t count = 0;
  for (const ResizeWindow& window : part.windows)
    *windows++ = work_of(resize, window, taps, count);
}

ResizeLaunch plan_resize(const Resize& resize, const ResizePart& part,
                         const std::byte* staged) {
  ResizeLaunch launch;
  ResizeWork& work = launch.work;
  work.windows = reinterpret_cast<const WorkResizeWindow*>(staged);
  work.numbers = staged + part.windows.size() * sizeof(WorkResizeWindow);
  work.taps = reinterpret_cast<const std::int32_t*>(work.numbers +
                                                    resize.numbers.size());
  work.height = static_cast<std::uint32_t>(resize.height);
  work.width = static_cast<std::uint32_t>(resize.width);
  work.channels = static_cast<std::uint32_t>(resize.channels);
  work.number_bytes = static_cast<std::uint32_t>(resize.number_bytes);
  work.channels_first = resize.channels_first;
  const std::uint64_t elements =
      std::uint64_t{work.height} * work.width * work.channels;
  work.row_blocks = static_cast<std::uint32_t>((elements + kBlockElements - 1) /
                                               kBlockElements);
  const std::uint64_t blocks =
      std::uint64_t{work.row_blocks} * part.windows.size();
  PENSTOCK_ASSERT(blocks <= std::numeric_limits<std::int32_t>::max(),
                  "an operation has more blocks than a launch");
  launch.blocks = static_cast<std::uint32_t>(blocks);
  return launch;
}

}  // namespace penstock::cuda
