#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock {

/// Keeps a process alive when a mapped file loses pages: another program has
/// cut it off, or the drive cannot read them. The system then sends SIGBUS to
/// the thread that touches such a page. While a guard for the mapping exists,
/// the page is replaced by one of zeros instead, and counted.
///
/// A reader compares count() before and after it has used the bytes: where it
/// differs, what was read is not what the file held. Installs a handler for
/// SIGBUS once per process, which hands on signals about other addresses.
/// Thread-safe.
class LostPages {
 public:
  /// Nothing is guarded where `bytes` is 0.
  LostPages(const void* begin, std::size_t bytes);
  ~LostPages();
  LostPages(const LostPages&) = delete;
  LostPages& operator=(const LostPages&) = delete;

  /// Pages of this mapping that were lost so far.
  std::int64_t count() const;

 private:
  struct Range;
  friend void handle_bus_error(int, void*, void*);
  Range* range_ = nullptr;
};

}  // namespace penstock
