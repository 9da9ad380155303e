#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace penstock {

/// A run of bytes that is either owned (and can grow) or borrowed together
/// with a handle that keeps its owner alive.
///
/// Owned memory is followed by kPadding readable bytes, so that vector code
/// may read past the end. Move-only; not thread-safe.
class Bytes {
 public:
  static constexpr std::size_t kPadding = 64;

  Bytes() = default;
  Bytes(Bytes&& other) noexcept { swap(other); }
  /// What is moved from is empty.
  Bytes& operator=(Bytes&& other) noexcept {
    Bytes taken(std::move(other));
    swap(taken);
    return *this;
  }
  static Bytes borrow(std::span<const std::byte> bytes,
                      std::shared_ptr<const void> owner);

  std::size_t size() const { return size_; }
  bool owned() const { return owner_ == nullptr; }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  /// The owned bytes, to write to.
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(own_.get());
  }

  /// Keeps the capacity. Borrowed bytes are released.
  void clear();
  /// New bytes are not initialised.
  void resize(std::size_t size);
  void append(const void* from, std::size_t size) {
    std::size_t at = size_;
    resize(at + size);
    if (size != 0) std::memcpy(own_.get() + at, from, size);
  }
  template <class T>
  void append_value(T value) {
    append(&value, sizeof(T));
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete(bytes); }
  };
  void swap(Bytes& other) noexcept {
    std::swap(own_, other.own_);
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  std::unique_ptr<std::byte, Free> own_;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace penstock
