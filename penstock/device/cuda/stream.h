#pragma once

#include <memory>

#include "penstock/device/cuda/device.h"
#include "penstock/device/cuda/row_ring.h"

namespace penstock::cuda {

/// A stream of a CudaDevice: its own, or a borrowed one.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, cudaStream_t stream, bool owned);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void gather(const Gather& gather) override;
  Event record() override;
  Event record_untimed() override;
  void wait(const Event& event) override;
  void step(std::uint64_t) override {}
  void synchronize() override;
  bool capturing() const override;

 private:
  void launch(const Gather& gather, std::size_t first, std::size_t count);

  CudaDevice& device_;
  const cudaStream_t stream_;
  const bool owned_;
  // Made by the first gather; most streams never see one.
  Buffer row_memory_;
  std::unique_ptr<RowRing> rows_;
};

}  // namespace penstock::cuda
