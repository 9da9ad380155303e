#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/cache/store.h"
#include "penstock/device/device.h"

namespace penstock {

/// Runs of bytes that differ in length, one for each row of a data set in order
/// of id: the bytes, and 4.25 bytes a row of host memory on top.
///
/// Filled once by append(), by one thread; then thread-safe.
class RunTable {
 public:
  /// Of elements of so many bytes. Without `keep` the lengths alone are stored.
  RunTable(std::size_t element_bytes, bool keep);

  /// Filled already, from arrays of a store: the elements of each run, int32,
  /// and the runs one after the other.
  RunTable(std::size_t element_bytes, std::shared_ptr<const Store> store,
           std::string_view lengths, std::string_view runs);

  /// A whole number of elements, at most 2^31 - 1 of them.
  void append(std::span<const std::byte> run);
  /// Moves the bytes from host memory to a device's, once all are appended.
  void move_to(Device& device);
  /// A copy in host memory, of what was moved.
  RunTable on_host(Device& device) const;

  std::int64_t rows() const { return std::ssize(lengths_); }
  /// In elements.
  std::int32_t length(std::int64_t row) const {
    return lengths_[static_cast<std::size_t>(row)];
  }
  std::int32_t longest() const { return longest_; }
  std::size_t element_bytes() const { return element_bytes_; }
  /// Throws Error(source), code store.damaged, for bytes of a store that are
  /// not as they were written.
  std::span<const std::byte> row(std::int64_t row) const;
  std::span<const std::int32_t> lengths() const { return lengths_; }
  /// All runs, in host memory.
  std::span<const std::byte> all() const { return {memory_.data(), size_}; }
  /// Of the runs.
  std::size_t bytes() const { return size_; }

 private:
  static constexpr std::size_t kBlock = 32;  // rows from one start to the next

  void grow(std::size_t bytes);
  void add_length(std::int32_t length);

  std::size_t element_bytes_;
  bool keep_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::uint64_t> starts_;  // of each block, in bytes
  std::int32_t longest_ = 0;
  std::size_t size_ = 0;
  Buffer memory_;
  std::shared_ptr<const Store> store_;
  const Store::Array* stored_ = nullptr;  // instead of memory_
};

}  // namespace penstock
