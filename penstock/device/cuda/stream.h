#pragma once

#include "penstock/device/cuda/device.h"
#include "penstock/device/cuda/kernel_queue.h"

namespace penstock::cuda {

/// A stream of a CudaDevice: its own, or a borrowed one.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, cudaStream_t stream, bool owned);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void run(DeviceOperation operation) override;
  void wait(const Event& event) override;
  void step(std::uint64_t) override {}
  void synchronize() override;
  bool capturing() const override;

 private:
  /// A stream that is destroyed behind what uses it.
  struct Owned {
    ~Owned();
    const CudaDevice& device;
    const cudaStream_t stream;
    const bool owned;
  };
  Event recorded(bool timed) override;

  CudaDevice& device_;
  const cudaStream_t stream_;
  const Owned owned_;
  KernelQueue kernels_;
};

}  // namespace penstock::cuda
