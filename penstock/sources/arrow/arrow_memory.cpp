#include "penstock/sources/arrow/arrow_memory.h"

#include "penstock/base/host_limits.h"

namespace penstock::arrow_files {

arrow::MemoryPool* memory() {
  // Never destroyed: blocks that borrow from it may live until the end.
  static auto* const pool = [] {
    constexpr std::int64_t kUnknown = std::int64_t{1} << 36;
    std::optional<std::size_t> free = read_host_limits().memory_free;
    return new arrow::CappedMemoryPool(
        arrow::default_memory_pool(),
        free ? static_cast<std::int64_t>(*free) : kUnknown);
  }();
  return pool;
}

}  // namespace penstock::arrow_files
