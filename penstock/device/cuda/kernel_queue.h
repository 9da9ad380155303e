#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "penstock/device/cuda/argument_ring.h"
#include "penstock/device/cuda/device.h"
#include "penstock/device/cuda/image_decoder.h"

namespace penstock::cuda {

/// Queues the kernels of a stream's operations, and holds what they read of the
/// host's memory until they have. One thread.
class KernelQueue {
 public:
  KernelQueue(CudaDevice& device, cudaStream_t stream)
      : device_(device), stream_(stream) {}

  void run(const Gather& gather);
  // Pictures.
  void run(const CropFlip& crop);
  void run(const Resize& resize);
  // Numbers.
  void run(const CastNormalize& cast);
  void run(const Mask& mask);
  void run(const Move& move);
  /// An internal error.
  void run(const HostKernel& kernel);

 private:
  template <class Write, class Launch>
  void with_arguments(PinnedRing& arguments, std::size_t bytes, Write write,
                      Launch launch);
  void gather_rows(const Gather& gather, std::size_t first, std::size_t count);
  void resize_images(const Resize& resize);
  void check_launch(cudaError_t result);

  CudaDevice& device_;
  const cudaStream_t stream_;
  // Made by the first operation that has arguments; most streams never see one.
  PinnedRing arguments_;
  // What resizes read is copied to the device, where it is read often. A ring
  // waits for its readers before this is freed.
  Buffer resize_memory_;
  PinnedRing resize_arguments_;
  std::unique_ptr<ImageDecoder> decoder_;  // of those that are in files
};

}  // namespace penstock::cuda
