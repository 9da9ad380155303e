#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

// The operator new of a program of tests, of which one file includes this: it
// counts, and fails where it is told to. The thread sanitizer has one of its
// own, so that tests of this are left out there.

namespace penstock {

/// How often memory was taken, by all threads.
inline std::atomic<std::int64_t> allocations{0};  // relaxed: only counted

/// How often this thread may still take some until it fails, once.
inline constinit thread_local std::int64_t allocations_left = -1;

inline bool allocation_fails() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return allocations_left >= 0 && allocations_left-- == 0;
}

/// Calls `work` again and again, and each time one more of the allocations
/// which its thread makes succeeds, and the next one fails, until it needs no
/// more. Gives how often std::bad_alloc, or an Error, came out of it.
template <class Work>
int failures_of(Work work) {
  int failures = 0;
  for (std::int64_t good = 0;; ++good) {
    allocations_left = good;
    try {
      work();
    } catch (const std::exception&) {
      ++failures;
    }
    const bool enough = allocations_left >= 0;
    allocations_left = -1;
    if (enough) return failures;
  }
}

}  // namespace penstock

#ifndef PENSTOCK_SANITIZED_THREAD

// Not inlined, or g++ takes free() for the wrong partner of new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = penstock::allocation_fails()
                     ? nullptr
                     : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t size,
                                     const std::nothrow_t&) noexcept {
  return penstock::allocation_fails() ? nullptr
                                      : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif
