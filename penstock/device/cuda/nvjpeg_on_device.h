#pragma once

#include "penstock/device/cuda/nvjpeg.h"

namespace penstock::cuda {

class CudaDevice;

/// Throws for any status but success: Error(out_of_memory), or Error(device),
/// device.nvjpeg.
void check_nvjpeg(NvjpegStatus status, const char* call,
                  const CudaDevice& device);

/// nvJPEG on a device, with its engines where they are there, and its memory
/// from where that of the device comes. Thread-safe.
class NvjpegOnDevice {
 public:
  /// Throws Error(device).
  explicit NvjpegOnDevice(CudaDevice& device);
  ~NvjpegOnDevice();
  NvjpegOnDevice(const NvjpegOnDevice&) = delete;
  NvjpegOnDevice& operator=(const NvjpegOnDevice&) = delete;

  const NvjpegApi& api() const { return api_; }
  NvjpegHandle get() const { return handle_; }

 private:
  const CudaDevice& device_;
  const NvjpegApi& api_;
  NvjpegAllocator memory_, pinned_;
  NvjpegHandle handle_ = nullptr;
};

}  // namespace penstock::cuda
