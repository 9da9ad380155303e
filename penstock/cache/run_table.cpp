#include "penstock/cache/run_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/cache/host_memory.h"

namespace penstock {

RunTable::RunTable(std::size_t element_bytes, bool keep)
    : element_bytes_(element_bytes), keep_(keep) {}

RunTable::RunTable(std::size_t element_bytes,
                   std::shared_ptr<const Store> store, std::string_view lengths,
                   std::string_view runs)
    : RunTable(element_bytes, false) {
  const std::span<const std::byte> bytes = store->checked(lengths);
  lengths_.resize(bytes.size() / sizeof(std::int32_t));
  if (!lengths_.empty())
    std::memcpy(lengths_.data(), bytes.data(),
                lengths_.size() * sizeof(std::int32_t));
  starts_.reserve(lengths_.size() / kBlock + 1);
  for (std::size_t row = 0; row < lengths_.size(); row += kBlock) {
    starts_.push_back(size_);
    std::uint64_t elements = 0;
    const std::size_t end = std::min(row + kBlock, lengths_.size());
    for (std::size_t i = row; i < end; ++i) {
      elements += static_cast<std::uint64_t>(lengths_[i]);
      longest_ = std::max(longest_, lengths_[i]);
    }
    size_ += elements * element_bytes_;
  }
  stored_ = &store->find(runs);
  store_ = std::move(store);
}

void RunTable::grow(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  std::size_t size = std::max({kLeast, bytes, 2 * memory_.size()});
  memory_ = lazy_host_memory(size, std::move(memory_)).held_for(HeldFor::rows);
}

void RunTable::append(std::span<const std::byte> run) {
  if (keep_ && !run.empty()) {
    if (size_ + run.size() > memory_.size()) grow(size_ + run.size());
    std::memcpy(memory_.data() + size_, run.data(), run.size());
  }
  add_length(static_cast<std::int32_t>(run.size() / element_bytes_));
}

void RunTable::add_length(std::int32_t length) {
  if (lengths_.size() % kBlock == 0) starts_.push_back(size_);
  lengths_.push_back(length);
  longest_ = std::max(longest_, length);
  size_ += static_cast<std::size_t>(length) * element_bytes_;
}

void RunTable::move_to(Device& device) {
  constexpr std::size_t kPiece = Staging::kPieceBytes;
  Buffer there =
      device.allocate(std::max<std::size_t>(size_, 1)).held_for(HeldFor::rows);
  Staging staging(device, 2);
  std::unique_ptr<Stream> stream = device.make_stream();
  for (std::size_t at = 0; at < size_; at += kPiece) {
    std::size_t bytes = std::min(kPiece, size_ - at);
    std::memcpy(staging.room(kPiece), memory_.data() + at, bytes);
    staging.send(there.data() + at, bytes, *stream);
  }
  stream->synchronize();
  memory_ = std::move(there);
}

RunTable RunTable::on_host(Device& device) const {
  RunTable copy(element_bytes_, true);
  copy.lengths_ = lengths_;
  copy.starts_ = starts_;
  copy.longest_ = longest_;
  copy.size_ = size_;
  copy.grow(size_);
  Staging staging(device, 2);
  std::unique_ptr<Stream> stream = device.make_stream();
  staging.fetch(copy.memory_.data(), memory_.data(), size_, *stream);
  return copy;
}

// A start is stored for every kBlock rows and the lengths between are added up,
// at most kBlock - 1 of them: 4.25 bytes for a row instead of 12.
std::span<const std::byte> RunTable::row(std::int64_t row) const {
  auto at = static_cast<std::size_t>(row);
  std::uint64_t start = starts_[at / kBlock];
  for (std::size_t i = at / kBlock * kBlock; i < at; ++i)
    start += static_cast<std::size_t>(lengths_[i]) * element_bytes_;
  std::size_t bytes = static_cast<std::size_t>(lengths_[at]) * element_bytes_;
  if (stored_ == nullptr) return {memory_.data() + start, bytes};
  stored_->check(start, start + bytes);
  return stored_->bytes().subspan(start, bytes);
}

}  // namespace penstock
