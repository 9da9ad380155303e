#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace penstock::cuda {

/// Throws unless `result` is cudaSuccess: Error(device) with the call's name
/// and CUDA's word for what went wrong, Error(out_of_memory) where that is the
/// word. CUDA tells the errors of work that was queued earlier at any later
/// call; the message says so.
void check(cudaError_t result, std::string_view call,
           const std::string& device);

/// The same where nothing can be thrown: logs.
void check_quietly(cudaError_t result, std::string_view call,
                   const std::string& device) noexcept;

/// Makes a device the thread's current one while it lives. Most threads have
/// it already; a program may use several.
class OnDevice {
 public:
  explicit OnDevice(int number);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // -1: it was the current one
};

}  // namespace penstock::cuda
