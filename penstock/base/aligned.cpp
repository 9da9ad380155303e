#include "penstock/base/aligned.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace penstock {

// aligned_alloc() of glibc 2.36 does not reuse a freed block: with a small
// allocation between any two, a program grows with each. So the block comes
// from malloc, and its address is stored before the bytes.
void FreeAligned::operator()(std::byte* bytes) const {
  std::free(reinterpret_cast<void**>(bytes)[-1]);
}

// The layout is [skipped][address of the block][bytes]: `unit` more than asked
// for are enough, because 1 to `unit` bytes are skipped, at least as many as an
// address takes.
AlignedBytes allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::size_t unit = bytes >= kHugeFrom ? kHugePage : kCacheLine;
  std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
  std::size_t all = rounded + unit;
  if (rounded < bytes || all < rounded) return nullptr;
  void* block = std::malloc(all);
  if (block == nullptr) return nullptr;
  // malloc's own alignment leaves room for an address before the next unit.
  static_assert(alignof(std::max_align_t) >= sizeof(void*));
  auto at = reinterpret_cast<std::uintptr_t>(block);
  std::size_t skipped = unit - at % unit;
  AlignedBytes data(static_cast<std::byte*>(block) + skipped);
  reinterpret_cast<void**>(data.get())[-1] = block;
  // A hint: where it is refused, the pages are small and nothing else changes.
  if (unit == kHugePage) ::madvise(data.get(), rounded, MADV_HUGEPAGE);
  return data;
}

}  // namespace penstock
