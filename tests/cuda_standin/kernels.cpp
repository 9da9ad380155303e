#include "penstock/device/cuda/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/cuda_standin/standin.h"

// The kernels, block by block on the stream's thread: all threads of a block do
// what comes before a barrier before any does what comes behind it. What a
// kernel touches is looked at first: memory of another device, or of the host
// that is not pinned, is an illegal address.

namespace penstock::cuda {
namespace {

using cuda_standin::Where;

/// Memory that a kernel of a device can touch: its own, and what is pinned.
bool reaches(int device, const void* at, std::size_t bytes, bool write) {
  if (bytes == 0) return true;
  int owner = device;
  Where where = cuda_standin::where_is(at, bytes, &owner);
  return (where == Where::device && owner == device) ||
         (where == Where::pinned && !write);
}

bool all_reached(int device, const GatherWork& work) {
  const std::uint64_t rows = work.count;
  if (!reaches(device, work.rows, rows * sizeof(std::int64_t), false))
    return false;
  for (std::uint32_t p = 0; p < work.part_count; ++p) {
    const GatherPart& part = work.parts[p];
    const std::uint64_t bytes = std::uint64_t{part.units} * part.unit_bytes;
    if (!reaches(device, part.out, rows * bytes, true)) return false;
    for (std::uint64_t r = 0; r < rows; ++r) {
      std::int64_t row = work.rows[r];
      if (row < 0) continue;
      if (!reaches(device, row_of(work, part, row), bytes, false)) return false;
    }
  }
  return true;
}

bool all_reached(int device, const CastWork& work, std::uint32_t blocks) {
  const std::uint64_t numbers =
      std::uint64_t{blocks / work.row_blocks} * work.pixels * work.channels;
  const std::size_t bytes = work.to == WorkNumber::float32 ? 4 : 2;
  return reaches(device, work.in, numbers, false) &&
         reaches(device, work.out, numbers * bytes, true);
}

bool all_reached(int device, const CropWork& work, std::uint32_t blocks) {
  const std::uint64_t windows = blocks / work.row_blocks;
  const std::uint64_t line = std::uint64_t{work.width} * work.channels;
  if (!reaches(device, work.windows, windows * sizeof(WorkWindow), false) ||
      !reaches(device, work.out, windows * work.height * line, true))
    return false;
  for (std::uint64_t w = 0; w < windows; ++w) {
    const WorkWindow& window = work.windows[w];
    const auto width = static_cast<std::uint64_t>(window.width);
    const std::uint64_t first = static_cast<std::uint64_t>(window.top) * width +
                                static_cast<std::uint64_t>(window.left);
    if (window.image != nullptr &&
        !reaches(device, window.image + first * work.channels,
                 (work.height - 1) * width * work.channels + line, false))
      return false;
  }
  return true;
}

/// From the first to the last pixel of an axis that taps use.
std::pair<std::uint64_t, std::uint64_t> used(const ResizeWork& work,
                                             const WorkTaps& axis,
                                             std::uint32_t pixels) {
  std::uint64_t begin = UINT64_MAX, end = 0;
  for (std::uint32_t p = 0; p < pixels; ++p) {
    const PixelTaps taps = taps_of(work, axis, pixels, p);
    begin = std::min<std::uint64_t>(begin, taps.first);
    end = std::max<std::uint64_t>(end, std::uint64_t{taps.first} + taps.count);
  }
  return {begin, end};
}

bool reached(int device, const ResizeWork& work,
             const WorkResizeWindow& window) {
  const std::uint64_t elements =
      std::uint64_t{work.height} * work.width * work.channels;
  if (!reaches(device, window.out, elements * work.number_bytes, true))
    return false;
  if (window.image == nullptr) return true;
  for (const auto& [axis, pixels] : {std::pair(window.columns, work.width),
                                     std::pair(window.rows, work.height)})
    if (!reaches(device, work.taps + axis.at,
                 std::uint64_t{pixels} * (axis.most + 2) * sizeof(std::int32_t),
                 false))
      return false;
  const auto [left, right] = used(work, window.columns, work.width);
  const auto [top, bottom] = used(work, window.rows, work.height);
  const std::uint64_t first = top * window.line + left,
                      last = (bottom - 1) * window.line + right;
  return reaches(device, window.image + first * work.channels,
                 (last - first) * work.channels, false);
}

bool all_reached(int device, const ResizeWork& work, std::uint32_t blocks) {
  const std::uint64_t windows = blocks / work.row_blocks;
  if (!reaches(device, work.windows, windows * sizeof(WorkResizeWindow),
               false) ||
      !reaches(device, work.numbers,
               std::uint64_t{work.channels} * 256 * work.number_bytes, false))
    return false;
  for (std::uint64_t w = 0; w < windows; ++w)
    if (!reached(device, work, work.windows[w])) return false;
  return true;
}

bool all_reached(int device, const MaskWork& work, std::uint32_t blocks) {
  const std::uint64_t boxes = blocks / work.box_blocks;
  if (!reaches(device, work.boxes, boxes * sizeof(WorkBox), false))
    return false;
  for (std::uint64_t b = 0; b < boxes; ++b) {
    const WorkBox& box = work.boxes[b];
    if (box.height == 0 || box.width == 0) continue;
    const std::uint64_t elements =
        std::uint64_t{box.height - 1} * work.width + box.width;
    if (!reaches(device, work.out + box.first * work.element_bytes,
                 elements * work.element_bytes, true))
      return false;
  }
  return true;
}

bool all_reached(int device, const MoveWork& work, std::uint32_t blocks) {
  const std::uint64_t rows = blocks / work.row_blocks;
  if (!reaches(device, work.rows, rows * sizeof(WorkMovedRow), false))
    return false;
  const std::size_t bytes = std::size_t{work.height} * work.width * 4;
  for (std::uint64_t r = 0; r < rows; ++r)
    if (!reaches(device, work.rows[r].from, bytes, false) ||
        !reaches(device, work.out + work.rows[r].row * bytes, bytes, true))
      return false;
  return true;
}

void run_block(const GatherWork& work, std::uint32_t block,
               std::uint32_t near_bytes) {
  BlockShare share = share_of(work, block);
  std::vector<std::int64_t> near(near_bytes / sizeof(std::int64_t));
  for (std::uint32_t t = 0; t < kGatherThreads; ++t)
    fetch_rows(work, share, t, near.data());
  for (std::uint32_t t = kGatherThreads; t-- > 0;)
    copy_units(work, share, t, near.data());
}

void run_thread(const CastWork& work, std::uint32_t block, std::uint32_t t) {
  cast_elements(work, block, t);
}
void run_thread(const CropWork& work, std::uint32_t block, std::uint32_t t) {
  crop_elements(work, work.windows[block / work.row_blocks], block, t);
}
void run_thread(const ResizeWork& work, std::uint32_t block, std::uint32_t t) {
  resize_elements(work, work.windows[block / work.row_blocks], block, t);
}
void run_thread(const MaskWork& work, std::uint32_t block, std::uint32_t t) {
  mask_elements(work, work.boxes[block / work.box_blocks], block, t);
}
void run_thread(const MoveWork& work, std::uint32_t block, std::uint32_t t) {
  move_elements(work, work.rows[block / work.row_blocks], block, t);
}

/// `run` on the stream's thread, where the device may touch what it does.
template <class Reached, class Run>
cudaError_t queue_kernel(cudaStream_t stream, Reached reached, Run run) {
  if (cudaError_t error = cuda_standin::begin_call("cudaLaunchKernel"))
    return error;
  if (!cuda_standin::is_of_current_device(stream))
    return cuda_standin::ended(cudaErrorInvalidResourceHandle);
  const int device = cuda_standin::current_device();
  return cuda_standin::ended(cuda_standin::queue(stream, [=] {
    if (!reached(device)) return cudaErrorIllegalAddress;
    run();
    return cudaSuccess;
  }));
}

template <class Work>
cudaError_t queue_threads(const Work& work, std::uint32_t blocks,
                          cudaStream_t stream) {
  return queue_kernel(
      stream, [=](int device) { return all_reached(device, work, blocks); },
      [=] {
        for (std::uint32_t block = blocks; block-- > 0;)
          for (std::uint32_t t = kBlockThreads; t-- > 0;)
            run_thread(work, block, t);
      });
}

}  // namespace

cudaError_t launch(const GatherWork& work, std::uint32_t blocks,
                   std::uint32_t near_bytes, cudaStream_t stream) {
  return queue_kernel(
      stream, [=](int device) { return all_reached(device, work); },
      [=] {
        for (std::uint32_t block = blocks; block-- > 0;)
          run_block(work, block, near_bytes);
      });
}
cudaError_t launch(const CastWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  return queue_threads(work, blocks, stream);
}
cudaError_t launch(const CropWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  return queue_threads(work, blocks, stream);
}
cudaError_t launch(const ResizeWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  return queue_threads(work, blocks, stream);
}
cudaError_t launch(const MaskWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  return queue_threads(work, blocks, stream);
}
cudaError_t launch(const MoveWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  return queue_threads(work, blocks, stream);
}

cudaError_t load_kernels() {
  return cuda_standin::begin_call("cudaFuncGetAttributes");
}

}  // namespace penstock::cuda
