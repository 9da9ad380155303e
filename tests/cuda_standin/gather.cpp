#include <cstring>
#include <vector>

#include "penstock/device/cuda/gather_kernel.h"
#include "tests/cuda_standin/standin.h"

// The gather's kernel, block by block on the stream's thread: all threads of a
// block do the first half before any does the second.

namespace penstock::cuda {
namespace {

using cuda_standin::Where;

/// Memory that a kernel of a device can touch: its own, and what is pinned.
bool reaches(int device, const void* at, std::size_t bytes, bool write) {
  int owner = device;
  Where where = cuda_standin::where_is(at, bytes, &owner);
  return (where == Where::device && owner == device) ||
         (where == Where::pinned && !write);
}

bool all_reached(int device, const GatherWork& work) {
  const std::uint64_t rows = work.units / work.row_units;
  if (!reaches(device, work.rows, rows * sizeof(std::int64_t), false))
    return false;
  for (std::uint32_t p = 0; p < work.part_count; ++p) {
    const GatherPart& part = work.parts[p];
    const std::uint64_t bytes = std::uint64_t{part.units} * part.unit_bytes;
    if (!reaches(device, part.out, rows * bytes, true)) return false;
    for (std::uint64_t r = 0; r < rows; ++r) {
      std::int64_t row = work.rows[r];
      if (row < 0) continue;
      std::uint64_t away = 0;
      for (const WorkPiece& piece : work.pieces)
        if (row >= piece.first) away = piece.shift;
      auto at = reinterpret_cast<std::uintptr_t>(part.table) +
                static_cast<std::uint64_t>(row) * part.row_stride + away;
      if (!reaches(device, reinterpret_cast<const void*>(at), bytes, false))
        return false;
    }
  }
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

}  // namespace

cudaError_t launch_gather(const GatherWork& work, std::uint32_t blocks,
                          std::uint32_t near_bytes, cudaStream_t stream) {
  if (cudaError_t error = cuda_standin::begin_call("cudaLaunchKernel"))
    return error;
  if (!cuda_standin::is_of_current_device(stream))
    return cuda_standin::ended(cudaErrorInvalidResourceHandle);
  const int device = cuda_standin::current_device();
  return cuda_standin::ended(cuda_standin::queue(stream, [=] {
    if (!all_reached(device, work)) return cudaErrorIllegalAddress;
    for (std::uint32_t block = blocks; block-- > 0;)
      run_block(work, block, near_bytes);
    return cudaSuccess;
  }));
}

cudaError_t load_gather() {
  return cuda_standin::begin_call("cudaFuncGetAttributes");
}

}  // namespace penstock::cuda
