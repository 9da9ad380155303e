#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace penstock::cuda {

/// Throws unless `result` is cudaSuccess: Error(device) with the name of the
/// call and CUDA's error, or Error(out_of_memory). CUDA reports errors of work
/// that was queued earlier at any later call; the message mentions it.
void check(cudaError_t result, std::string_view call,
           const std::string& device);

/// The same where nothing can be thrown: logs.
void check_quietly(cudaError_t result, std::string_view call,
                   const std::string& device) noexcept;

/// Makes a device the thread's current one while it lives; a program may use
/// several. A thread begins with device 0, and most calls create the context of
/// the current device, some hundred MiB: so every call of ours is made under
/// one of these, and a device that has no context is not made current again.
class OnDevice {
 public:
  explicit OnDevice(int number);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // -1: it was the current one
};

/// Keeps a thread's calls out of CUDA graphs while it lives.
///
/// While one thread captures a graph, CUDA by default refuses calls of every
/// thread that may disturb it (allocating, querying an event), and the capture
/// fails with them. Our threads work on streams of our own, which are in no
/// captured graph: nothing can go wrong.
class OutsideGraphs {
 public:
  OutsideGraphs();
  ~OutsideGraphs();
  OutsideGraphs(const OutsideGraphs&) = delete;
  OutsideGraphs& operator=(const OutsideGraphs&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace penstock::cuda
