#pragma once

#include <span>
#include <vector>

#include "penstock/loader/loader.h"

namespace penstock {

/// The tensors of a batch in host memory, one after the other, so that they can
/// be read.
class HostCopy {
 public:
  HostCopy(const Batch& batch, Stream& stream) {
    tensors_.assign(batch.tensors().begin(), batch.tensors().end());
    std::size_t bytes = 0;
    for (const NamedTensor& tensor : tensors_) bytes += tensor.view.bytes();
    memory_.resize(bytes);
    std::size_t at = 0;
    for (NamedTensor& tensor : tensors_) {
      std::size_t size = tensor.view.bytes();
      stream.copy(memory_.data() + at, tensor.view.data, size);
      tensor.view.data = memory_.data() + at;
      tensor.view.memory = MemoryKind::cpu;
      at += size;
    }
    stream.synchronize();
  }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes() const { return memory_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<std::byte> memory_;
};

}  // namespace penstock
