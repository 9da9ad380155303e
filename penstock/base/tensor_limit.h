#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "penstock/base/tensor.h"

namespace penstock {

/// Bytes that libtorch's tensors and the batches of the device cpu may take
/// together: memory_gib of that device. One for the process, as libtorch's
/// allocator is; SIZE_MAX: no limit. Any thread may read it at any time.
std::atomic<std::size_t>& tensor_limit();
/// The same for what PyTorch's allocator takes of each GPU: memory_gib of that
/// device.
std::atomic<std::size_t>& gpu_tensor_limit();
/// That of a device whose memory is of this kind; null: it has none of these.
std::atomic<std::size_t>* tensor_limit_of(MemoryKind memory);

/// What counts against it. One for the process.
struct LimitedBytes {
  std::atomic<std::int64_t> tensors{0};  ///< counted by the trainer's allocator
  std::atomic<std::int64_t> batches{0};  ///< given by the device cpu
  std::atomic<std::int64_t> most_batches{0};  ///< at any time
};
LimitedBytes& limited_bytes();

/// Counts bytes of batches, until it is destroyed.
class LimitedBatch {
 public:
  explicit LimitedBatch(std::size_t bytes);
  ~LimitedBatch();
  LimitedBatch(const LimitedBatch&) = delete;
  LimitedBatch& operator=(const LimitedBatch&) = delete;

  /// With them the limit is exceeded.
  bool too_much() const { return too_much_; }

 private:
  const std::int64_t bytes_;
  bool too_much_ = false;
};

/// Sets a limit while it lives, then puts back the one before.
class TensorLimit {
 public:
  explicit TensorLimit(std::size_t bytes,
                       std::atomic<std::size_t>& limit = tensor_limit())
      : limit_(limit), before_(limit.exchange(bytes)) {}
  ~TensorLimit() { limit_ = before_; }
  TensorLimit(const TensorLimit&) = delete;
  TensorLimit& operator=(const TensorLimit&) = delete;

 private:
  std::atomic<std::size_t>& limit_;
  const std::size_t before_;
};

}  // namespace penstock
