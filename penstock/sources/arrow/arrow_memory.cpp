#include "penstock/sources/arrow/arrow_memory.h"

#include "penstock/base/host_limits.h"

namespace penstock::arrow_files {

arrow::MemoryPool* memory() {
  // Never destroyed: blocks that borrow from it may live until the end.
  static auto* const pool = [] {
    constexpr std::int64_t kUnknown = std::int64_t{1} << 36;
    constexpr std::int64_t kLittle = std::int64_t{2} << 30;
    std::optional<std::size_t> limit = read_host_limits().memory_free;
    const std::int64_t free =
        limit ? static_cast<std::int64_t>(*limit) : kUnknown;
    return new arrow::CappedMemoryPool(free < kLittle
                                           ? arrow::system_memory_pool()
                                           : arrow::default_memory_pool(),
                                       free);
  }();
  return pool;
}

}  // namespace penstock::arrow_files
