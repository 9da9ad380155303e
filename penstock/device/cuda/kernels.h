#pragma once

#include <cuda_runtime_api.h>

#include "penstock/device/cuda/gather_work.h"
#include "penstock/device/cuda/operation_work.h"
#include "penstock/device/cuda/resize_work.h"

namespace penstock::cuda {

/// Queues the kernel: `blocks` of kGatherThreads threads, each block with
/// `near_bytes` for its row indices.
cudaError_t launch(const GatherWork& work, std::uint32_t blocks,
                   std::uint32_t near_bytes, cudaStream_t stream);
/// Blocks of kBlockThreads threads.
cudaError_t launch(const CastWork& work, std::uint32_t blocks,
                   cudaStream_t stream);
cudaError_t launch(const CropWork& work, std::uint32_t blocks,
                   cudaStream_t stream);
cudaError_t launch(const ResizeWork& work, std::uint32_t blocks,
                   cudaStream_t stream);
cudaError_t launch(const MaskWork& work, std::uint32_t blocks,
                   cudaStream_t stream);
cudaError_t launch(const MoveWork& work, std::uint32_t blocks,
                   cudaStream_t stream);

/// Loads the kernels' code for the current device; an error where this build
/// has none that it can run.
cudaError_t load_kernels();

}  // namespace penstock::cuda
