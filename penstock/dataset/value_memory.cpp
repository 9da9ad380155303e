#include "penstock/dataset/value_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace penstock {

Bytes ValueMemory::keep(std::span<const std::byte> values) {
  constexpr std::size_t kAlign = sizeof(double);
  constexpr std::size_t kFirst = std::size_t{256} << 10;
  if (values.empty()) return {};
  if (values.size() > size_ - std::min(size_, used_)) {
    // Small at first, so that a small table takes little.
    std::size_t next = std::clamp(2 * size_, kFirst, kHugeFrom);
    size_ = std::max(next, values.size());
    used_ = 0;
    auto piece = std::make_shared<Piece>();
    piece->bytes = allocate_aligned(size_);
    if (piece->bytes == nullptr) throw std::bad_alloc();
    piece->charge = MemoryCharge(HeldFor::values, HeldIn::host, size_);
    piece_ = std::move(piece);
  }
  std::byte* at = piece_->bytes.get() + used_;
  std::memcpy(at, values.data(), values.size());
  used_ = (used_ + values.size() + kAlign - 1) / kAlign * kAlign;
  return Bytes::borrow({at, values.size()}, piece_);
}

}  // namespace penstock
