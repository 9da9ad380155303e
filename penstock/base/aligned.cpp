#include "penstock/base/aligned.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace penstock {

void FreeAligned::operator()(std::byte* bytes) const { std::free(bytes); }

AlignedBytes allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::size_t unit = bytes >= kHugeFrom ? kHugePage : kLine;
  std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
  if (rounded < bytes) return nullptr;
  AlignedBytes data(static_cast<std::byte*>(std::aligned_alloc(unit, rounded)));
  // A wish: where it is refused, the pages are small and all else is the same.
  if (data != nullptr && unit == kHugePage)
    ::madvise(data.get(), rounded, MADV_HUGEPAGE);
  return data;
}

}  // namespace penstock
