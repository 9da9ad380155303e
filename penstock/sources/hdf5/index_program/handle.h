#pragma once

#include <hdf5.h>

#include <utility>

namespace penstock::hdf5 {

/// An open object of libhdf5 of any kind, closed with its owner.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = -1;
};

}  // namespace penstock::hdf5
