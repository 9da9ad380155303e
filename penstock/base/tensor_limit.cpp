#include "penstock/base/tensor_limit.h"

namespace penstock {

std::atomic<std::size_t>& tensor_limit() {
  static constinit std::atomic<std::size_t> limit{SIZE_MAX};
  return limit;
}

std::atomic<std::size_t>& gpu_tensor_limit() {
  static constinit std::atomic<std::size_t> limit{SIZE_MAX};
  return limit;
}

std::atomic<std::size_t>* tensor_limit_of(MemoryKind memory) {
  if (memory == MemoryKind::cpu) return &tensor_limit();
  return memory == MemoryKind::cuda ? &gpu_tensor_limit() : nullptr;
}

LimitedBytes& limited_bytes() {
  static constinit LimitedBytes bytes;
  return bytes;
}

LimitedBatch::LimitedBatch(std::size_t bytes)
    : bytes_(static_cast<std::int64_t>(bytes)) {
  LimitedBytes& all = limited_bytes();
  const std::int64_t now = all.batches += bytes_;
  too_much_ = static_cast<std::size_t>(now + all.tensors) > tensor_limit();
  std::int64_t most = all.most_batches;
  while (!too_much_ && now > most &&
         !all.most_batches.compare_exchange_weak(most, now)) {
  }
}

LimitedBatch::~LimitedBatch() { limited_bytes().batches -= bytes_; }

}  // namespace penstock
