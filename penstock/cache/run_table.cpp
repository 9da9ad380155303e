#include "penstock/cache/run_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

namespace penstock {

RunTable::RunTable(std::size_t element_bytes, bool keep)
    : element_bytes_(element_bytes), keep_(keep) {}

// The pages move to their new addresses, the bytes are not copied.
void RunTable::grow(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  std::size_t size = std::max({kLeast, bytes, 2 * memory_.size()});
  void* at =
      memory_.data() == nullptr
          ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
          : ::mremap(memory_.data(), memory_.size(), size, MREMAP_MAYMOVE);
  if (at == MAP_FAILED)
    throw Error(ErrorKind::out_of_memory,
                {.code = "memory.host",
                 .what = "cannot reserve " + shown_bytes(size) +
                         " of host memory for the data set",
                 .where = "this process",
                 .why = std::strerror(errno),
                 .next = "use \"loader.cache\": \"none\""});
  memory_.release();
  memory_ = Buffer(
      static_cast<std::byte*>(at), size, MemoryKind::cpu,
      [](std::byte* data, std::size_t length) { ::munmap(data, length); });
}

void RunTable::append(std::span<const std::byte> run) {
  auto length = static_cast<std::int32_t>(run.size() / element_bytes_);
  if (lengths_.size() % kBlock == 0) starts_.push_back(size_);
  lengths_.push_back(length);
  longest_ = std::max(longest_, length);
  if (keep_ && !run.empty()) {
    if (size_ + run.size() > memory_.size()) grow(size_ + run.size());
    std::memcpy(memory_.data() + size_, run.data(), run.size());
  }
  size_ += run.size();
}

std::span<const std::byte> RunTable::row(std::int64_t row) const {
  auto at = static_cast<std::size_t>(row);
  std::uint64_t start = starts_[at / kBlock];
  for (std::size_t i = at / kBlock * kBlock; i < at; ++i)
    start += static_cast<std::size_t>(lengths_[i]) * element_bytes_;
  return {memory_.data() + start,
          static_cast<std::size_t>(lengths_[at]) * element_bytes_};
}

}  // namespace penstock
