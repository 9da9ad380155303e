#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock {

/// Bytes that libtorch's tensors may take on the host: memory_gib of the
/// device cpu. One for the process, as libtorch's allocator is;
/// SIZE_MAX: no limit. Any thread may read it at any time.
std::atomic<std::size_t>& tensor_limit();

/// Sets the limit while it lives, then puts back the one before.
class TensorLimit {
 public:
  explicit TensorLimit(std::size_t bytes)
      : before_(tensor_limit().exchange(bytes)) {}
  ~TensorLimit() { tensor_limit() = before_; }
  TensorLimit(const TensorLimit&) = delete;
  TensorLimit& operator=(const TensorLimit&) = delete;

 private:
  const std::size_t before_;
};

}  // namespace penstock
