#include "penstock/cache/run_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/cache/host_memory.h"

namespace penstock {

RunTable::RunTable(std::size_t element_bytes, bool keep)
    : element_bytes_(element_bytes), keep_(keep) {}

void RunTable::grow(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  std::size_t size = std::max({kLeast, bytes, 2 * memory_.size()});
  memory_ = lazy_host_memory(size, std::move(memory_));
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

void RunTable::move_to(Device& device) {
  constexpr std::size_t kStagingBytes = std::size_t{4} << 20;
  Buffer there = device.allocate(std::max<std::size_t>(size_, 1));
  Buffer staging = device.allocate_pinned(kStagingBytes);
  std::unique_ptr<Stream> stream = device.make_stream();
  for (std::size_t at = 0; at < size_; at += kStagingBytes) {
    std::size_t bytes = std::min(kStagingBytes, size_ - at);
    std::memcpy(staging.data(), memory_.data() + at, bytes);
    stream->copy(there.data() + at, staging.data(), bytes);
    stream->synchronize();
  }
  memory_ = std::move(there);
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
