#include "penstock/device/cuda/kernel_queue.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/gather_plan.h"
#include "penstock/device/cuda/kernels.h"
#include "penstock/device/cuda/operation_plan.h"
#include "penstock/device/cuda/resize_plan.h"

namespace penstock::cuda {
namespace {

// Room for 512 batches of 256 rows on their way, or for 4 of the largest
// launches.
constexpr std::size_t kRingBytes =
    4 * kMostRowsPerLaunch * sizeof(std::int64_t);
static_assert(4 * kMostWindowsPerLaunch * sizeof(WorkWindow) <= kRingBytes);
static_assert(4 * kMostBoxesPerLaunch * sizeof(WorkBox) <= kRingBytes);
static_assert(4 * kMostMovedPerLaunch * sizeof(WorkMovedRow) <= kRingBytes);
static_assert(kRingBytes <= 2 * kResizeBytes);  // of resizes, made before

/// False when one of them is below -1.
bool copied(std::span<const std::int64_t> rows, std::byte* to) {
  // One pass without branches: r + 1 is negative for r below -1 alone.
  std::int64_t all = 0;
  auto* out = reinterpret_cast<std::int64_t*>(to);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out[i] = rows[i];
    all |= static_cast<std::int64_t>(static_cast<std::uint64_t>(rows[i]) + 1);
  }
  return all >= 0;
}

}  // namespace

/// `write` fills the arguments and `launch` queues what reads them.
/// The order is what makes the ring safe: take() waits until the device has
/// read what was at that place, `write` fills it, `launch` queues the readers,
/// and only then is the event recorded until which the place is taken. When a
/// launch throws there is no such event, so the stream is waited for instead.
template <class Write, class Launch>
void KernelQueue::with_arguments(PinnedRing& arguments, std::size_t bytes,
                                 Write write, Launch launch) {
  arguments.grow(device_, kRingBytes);
  std::byte* staged = arguments.ring->take(bytes);
  write(staged);
  OnDevice current(device_.number());
  try {
    launch(staged);
    arguments.ring->read_until(device_.mark(stream_));
  } catch (...) {  // launches before this may still read them
    check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                  device_.name());
    throw;
  }
}

void KernelQueue::check_launch(cudaError_t result) {
  check(result, "cudaLaunchKernel", device_.name());
}

void KernelQueue::run(const Gather& gather) {
  if (gather.fields.empty()) return;
  const std::size_t all = gather.rows.size();
  for (std::size_t first = 0; first < all; first += kMostRowsPerLaunch)
    gather_rows(gather, first, std::min(kMostRowsPerLaunch, all - first));
}

void KernelQueue::gather_rows(const Gather& gather, std::size_t first,
                              std::size_t count) {
  with_arguments(
      arguments_, count * sizeof(std::int64_t),
      [&](std::byte* to) {
        PENSTOCK_ASSERT(copied(gather.rows.subspan(first, count), to),
                        "a gather names a row below -1");
      },
      [&](const std::byte* staged) {
        auto* rows = reinterpret_cast<const std::int64_t*>(staged);
        for (auto fields = gather.fields; !fields.empty();
             fields = fields.subspan(
                 std::min<std::size_t>(fields.size(), kMostParts))) {
          GatherLaunch planned = plan_launch(
              fields, first, count, rows, device_.processors(), gather.pieces);
          if (planned.blocks != 0)
            check_launch(launch(planned.work, planned.blocks,
                                planned.near_bytes, stream_));
        }
      });
}

void KernelQueue::run(const CastNormalize& cast) {
  penstock::check(cast);
  const CastLaunch planned = plan_cast(cast);
  if (planned.blocks == 0) return;
  OnDevice current(device_.number());
  check_launch(launch(planned.work, planned.blocks, stream_));
}

void KernelQueue::run(const CropFlip& crop) {
  penstock::check(crop);
  for (std::size_t first = 0; first < crop.windows.size();
       first += kMostWindowsPerLaunch) {
    const auto windows = crop.windows.subspan(
        first, std::min(kMostWindowsPerLaunch, crop.windows.size() - first));
    with_arguments(
        arguments_, windows.size() * sizeof(WorkWindow),
        [&](std::byte* to) {
          std::ranges::transform(
              windows, reinterpret_cast<WorkWindow*>(to),
              [](const CropWindow& window) { return work_of(window); });
        },
        [&](const std::byte* staged) {
          const CropLaunch planned =
              plan_crop(crop, first, windows,
                        reinterpret_cast<const WorkWindow*>(staged));
          if (planned.blocks != 0)
            check_launch(launch(planned.work, planned.blocks, stream_));
        });
  }
}

void KernelQueue::run(const Resize& resize) {
  penstock::check(resize);
  const bool files = std::ranges::any_of(
      resize.windows,
      [](const ResizeWindow& window) { return !window.file.empty(); });
  if (!files) return resize_images(resize);
  if (decoder_ == nullptr)
    decoder_ = std::make_unique<ImageDecoder>(device_, stream_);
  for (std::size_t first = 0; first < resize.windows.size();) {
    const ImageDecoder::Images images = decoder_->decode(resize, first);
    Resize part = resize;
    part.windows = images.windows();
    resize_images(part);
    first += part.windows.size();
  }
}

// One buffer on the device serves all parts. The copy for the next part is
// queued after the kernel that reads this one, on the same stream, so it cannot
// overtake it.
void KernelQueue::resize_images(const Resize& resize) {
  for (std::size_t first = 0; first < resize.windows.size();) {
    const ResizePart part = next_part(resize, first, kResizeBytes);
    first += part.windows.size();
    if (resize_memory_.size() < part.bytes) {
      resize_arguments_.ring.reset();  // waits for who reads both
      resize_memory_ = {};
      resize_memory_ = device_.allocate(std::max(kResizeBytes, part.bytes));
    }
    resize_arguments_.grow(device_, 2 * resize_memory_.size());
    with_arguments(
        resize_arguments_, part.bytes,
        [&](std::byte* to) { stage(resize, part, to); },
        [&](const std::byte* staged) {
          check(cudaMemcpyAsync(resize_memory_.data(), staged, part.bytes,
                                cudaMemcpyDefault, stream_),
                "cudaMemcpyAsync", device_.name());
          const ResizeLaunch planned =
              plan_resize(resize, part, resize_memory_.data());
          if (planned.blocks != 0)
            check_launch(launch(planned.work, planned.blocks, stream_));
        });
  }
}

void KernelQueue::run(const Mask& mask) {
  penstock::check(mask);
  for (std::size_t first = 0; first < mask.boxes.size();
       first += kMostBoxesPerLaunch) {
    const auto boxes = mask.boxes.subspan(
        first, std::min(kMostBoxesPerLaunch, mask.boxes.size() - first));
    with_arguments(
        arguments_, boxes.size() * sizeof(WorkBox),
        [&](std::byte* to) {
          std::ranges::transform(
              boxes, reinterpret_cast<WorkBox*>(to),
              [&](const MaskBox& box) { return work_of(box, mask); });
        },
        [&](const std::byte* staged) {
          const MaskLaunch planned =
              plan_mask(mask, boxes, reinterpret_cast<const WorkBox*>(staged));
          if (planned.blocks != 0)
            check_launch(launch(planned.work, planned.blocks, stream_));
        });
  }
}

void KernelQueue::run(const Move& move) {
  penstock::check(move);
  for (std::size_t first = 0; first < move.moved.size();
       first += kMostMovedPerLaunch) {
    const auto rows = move.moved.subspan(
        first, std::min(kMostMovedPerLaunch, move.moved.size() - first));
    with_arguments(
        arguments_, rows.size() * sizeof(WorkMovedRow),
        [&](std::byte* to) {
          std::ranges::transform(
              rows, reinterpret_cast<WorkMovedRow*>(to),
              [](const MovedRow& row) { return work_of(row); });
        },
        [&](const std::byte* staged) {
          const MoveLaunch planned = plan_move(
              move, rows, reinterpret_cast<const WorkMovedRow*>(staged));
          if (planned.blocks != 0)
            check_launch(launch(planned.work, planned.blocks, stream_));
        });
  }
}

void KernelQueue::run(const HostKernel&) {
  PENSTOCK_ASSERT(false, "code of the host does no work on a GPU's memory");
}

}  // namespace penstock::cuda
