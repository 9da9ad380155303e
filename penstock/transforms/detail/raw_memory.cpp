#include "penstock/transforms/detail/raw_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "penstock/base/aligned.h"

namespace penstock {

Bytes RawMemory::keep(std::span<const double> values) {
  constexpr std::size_t kFirst = std::size_t{256} << 10;
  if (values.empty()) return {};
  if (values.size_bytes() > size_ - used_) {
    // Small at first, so that a small table takes little.
    std::size_t next = std::clamp(2 * size_, kFirst, kHugeFrom);
    size_ = std::max(next, values.size_bytes());
    used_ = 0;
    piece_ = allocate_aligned(size_);
    if (piece_ == nullptr) throw std::bad_alloc();
  }
  std::byte* at = piece_.get() + used_;
  std::memcpy(at, values.data(), values.size_bytes());
  used_ += values.size_bytes();
  return Bytes::borrow({at, values.size_bytes()}, piece_);
}

}  // namespace penstock
