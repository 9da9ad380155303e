#include "penstock/device/cuda/kernels.h"

namespace penstock::cuda {
namespace {

__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const __grid_constant__ GatherWork work) {
  extern __shared__ std::int64_t near[];
  BlockShare share = share_of(work, blockIdx.x);
  fetch_rows(work, share, threadIdx.x, near);
  __syncthreads();
  copy_units(work, share, threadIdx.x, near);
}

__global__ void __launch_bounds__(kBlockThreads)
    cast_kernel(const __grid_constant__ CastWork work) {
  cast_elements(work, blockIdx.x, threadIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    crop_kernel(const __grid_constant__ CropWork work) {
  __shared__ WorkWindow window;
  if (threadIdx.x == 0) window = work.windows[blockIdx.x / work.row_blocks];
  __syncthreads();
  crop_elements(work, window, blockIdx.x, threadIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    resize_kernel(const __grid_constant__ ResizeWork work) {
  __shared__ WorkResizeWindow window;
  if (threadIdx.x == 0) window = work.windows[blockIdx.x / work.row_blocks];
  __syncthreads();
  resize_elements(work, window, blockIdx.x, threadIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    mask_kernel(const __grid_constant__ MaskWork work) {
  __shared__ WorkBox box;
  if (threadIdx.x == 0) box = work.boxes[blockIdx.x / work.box_blocks];
  __syncthreads();
  mask_elements(work, box, blockIdx.x, threadIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    move_kernel(const __grid_constant__ MoveWork work) {
  __shared__ WorkMovedRow row;
  if (threadIdx.x == 0) row = work.rows[blockIdx.x / work.row_blocks];
  __syncthreads();
  move_elements(work, row, blockIdx.x, threadIdx.x);
}

}  // namespace

cudaError_t launch(const GatherWork& work, std::uint32_t blocks,
                   std::uint32_t near_bytes, cudaStream_t stream) {
  gather_kernel<<<blocks, kGatherThreads, near_bytes, stream>>>(work);
  return cudaGetLastError();
}
cudaError_t launch(const CastWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  cast_kernel<<<blocks, kBlockThreads, 0, stream>>>(work);
  return cudaGetLastError();
}
cudaError_t launch(const CropWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  crop_kernel<<<blocks, kBlockThreads, 0, stream>>>(work);
  return cudaGetLastError();
}
cudaError_t launch(const ResizeWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  resize_kernel<<<blocks, kBlockThreads, 0, stream>>>(work);
  return cudaGetLastError();
}
cudaError_t launch(const MaskWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  mask_kernel<<<blocks, kBlockThreads, 0, stream>>>(work);
  return cudaGetLastError();
}
cudaError_t launch(const MoveWork& work, std::uint32_t blocks,
                   cudaStream_t stream) {
  move_kernel<<<blocks, kBlockThreads, 0, stream>>>(work);
  return cudaGetLastError();
}

cudaError_t load_kernels() {
  cudaFuncAttributes attributes;
  const void* const kernels[] = {reinterpret_cast<const void*>(gather_kernel),
                                 reinterpret_cast<const void*>(cast_kernel),
                                 reinterpret_cast<const void*>(crop_kernel),
                                 reinterpret_cast<const void*>(resize_kernel),
                                 reinterpret_cast<const void*>(mask_kernel),
                                 reinterpret_cast<const void*>(move_kernel)};
  for (const void* kernel : kernels)
    if (cudaError_t error = cudaFuncGetAttributes(&attributes, kernel))
      return error;
  return cudaSuccess;
}

}  // namespace penstock::cuda
