#include "penstock/device/cuda/gather_kernel.h"

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

}  // namespace

cudaError_t launch_gather(const GatherWork& work, std::uint32_t blocks,
                          std::uint32_t near_bytes, cudaStream_t stream) {
  gather_kernel<<<blocks, kGatherThreads, near_bytes, stream>>>(work);
  return cudaGetLastError();
}

cudaError_t load_gather() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, gather_kernel);
}

}  // namespace penstock::cuda
