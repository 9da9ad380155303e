#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace penstock::python {

/// Ids one behind the other, which become an array of numpy without a copy.
class IdArray {
 public:
  /// With room for so many before it moves; only what is written to takes
  /// memory.
  explicit IdArray(std::size_t room);
  std::size_t size() const { return size_; }
  void append(std::span<const std::uint32_t> ids);
  /// What was appended. With Python's lock held.
  nanobind::object to_numpy() &&;

 private:
  struct Free {
    void operator()(std::uint32_t* ids) const;
  };

  void set_room(std::size_t room);

  std::size_t room_ = 0, size_ = 0;
  std::unique_ptr<std::uint32_t[], Free> ids_;
};

}  // namespace penstock::python
