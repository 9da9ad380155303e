#include "penstock/dataset/table/value_memory.h"

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
    const std::size_t next =
        std::max(std::clamp(2 * size_, kFirst, kHugeFrom), values.size());
    auto piece = std::make_shared<Piece>();
    piece->bytes = allocate_aligned(next);
    if (piece->bytes == nullptr) throw std::bad_alloc();
    piece->charge = MemoryCharge(HeldFor::values, HeldIn::host, next);
    piece_ = std::move(piece);
    size_ = next;
    used_ = 0;
  }
  std::byte* at = piece_->bytes.get() + used_;
  std::memcpy(at, values.data(), values.size());
  used_ = (used_ + values.size() + kAlign - 1) / kAlign * kAlign;
  return Bytes::borrow({at, values.size()}, piece_);
}

}  // namespace penstock
