#include "penstock/base/bytes.h"

#include <algorithm>
#include <new>

namespace penstock {

Bytes Bytes::borrow(std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Bytes borrowed;
  borrowed.data_ = bytes.data();
  borrowed.size_ = bytes.size();
  borrowed.owner_ = std::move(owner);
  return borrowed;
}

void Bytes::clear() {
  owner_.reset();
  data_ = own_.get();
  size_ = 0;
}

// After `capacity_` come kPadding zeros that readers of whole words may read;
// what is between `size_` and the capacity has no meaning. Growing by half
// keeps appending linear.
void Bytes::resize(std::size_t size) {
  if (owner_ != nullptr) clear();
  if (size > capacity_) {
    std::size_t capacity = std::max(size, capacity_ + capacity_ / 2);
    std::unique_ptr<std::byte, Free> grown(
        static_cast<std::byte*>(::operator new(capacity + kPadding)));
    if (size_ != 0) std::memcpy(grown.get(), own_.get(), size_);
    std::memset(grown.get() + capacity, 0, kPadding);
    own_ = std::move(grown);
    capacity_ = capacity;
    data_ = own_.get();
  }
  size_ = size;
}

}  // namespace penstock
