#include "penstock/dataset/table/larger_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/base/host_limits.h"
#include "penstock/base/log.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

constexpr std::size_t kPiece = std::size_t{16} << 20;

class ReadingOthers final : public ReadAhead {
 public:
  ReadingOthers(std::unique_ptr<ReadAhead> all, const LargerRows& kept)
      : all_(std::move(all)), kept_(kept) {}

  std::shared_ptr<ItemRead> begin(std::span<const SampleId> ids) override {
    std::vector<std::size_t> order;
    reading_order(ids, order);
    std::vector<SampleId> others;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const SampleId id = ids[order[i]];
      // One that comes twice is read twice or not at all.
      const bool again = i > 0 && ids[order[i - 1]] == id;
      if (again ? !others.empty() && others.back() == id : !kept_.has(id))
        others.push_back(id);
    }
    return all_->begin(others);
  }
  void set_threads(int threads) override { all_->set_threads(threads); }

 private:
  const std::unique_ptr<ReadAhead> all_;
  const LargerRows& kept_;
};

}  // namespace

LargerRows::LargerRows(std::int64_t rows, Making making, const Keeping& keeping)
    : making_(std::move(making)),
      layout_(layout_of(making_.fields)),
      keeping_(keeping),
      rows_(static_cast<std::size_t>(rows)) {}

bool LargerRows::keeps_at(Position at) {
  if (full_.load(std::memory_order_relaxed)) return false;
  if (keeping_.epochs) return pays(*keeping_.epochs, keeping_.ranks, at.epoch);
  if (again_.load(std::memory_order_relaxed)) return true;
  std::int64_t first = -1;
  if (first_epoch_.compare_exchange_strong(first, at.epoch)) return false;
  // The other ranks had the rows in between.
  if (at.epoch < first + keeping_.ranks) return false;
  again_ = true;
  return true;
}

void LargerRows::find(SampleId id, Parts& parts) const {
  const std::byte* sizes = place_of(id);
  const std::size_t count = 1 + making_.fields.size();
  const std::byte* at = sizes + count * sizeof(std::size_t);
  parts.clear();
  for (std::size_t part = 0; part < count; ++part) {
    std::size_t size = 0;
    std::memcpy(&size, sizes + part * sizeof(size), sizeof(size));
    parts.emplace_back(at, size);
    at += size;
  }
}

std::byte* LargerRows::take(std::size_t bytes) {
  Lock lock(mutex_);
  if (full_) return nullptr;
  if (charge_.bytes() + bytes > keeping_.most) {
    full_ = true;  // as the plan said
    return nullptr;
  }
  if (room_.size() < bytes) {
    const std::optional<std::size_t> free = read_host_limits().memory_free;
    if (free && *free < keeping_.left) {
      full_ = true;
      log(LogLevel::warning, "memory is low: only " +
                                 shown_bytes(charge_.bytes()) +
                                 " of prepared rows are kept, and the others "
                                 "are prepared again in every epoch");
      return nullptr;
    }
    const std::size_t piece = std::max(bytes, kPiece);
    pieces_.push_back(std::make_unique_for_overwrite<std::byte[]>(piece));
    room_ = {pieces_.back().get(), piece};
  }
  std::byte* taken = room_.data();
  room_ = room_.subspan(bytes);
  charge_.change_to(charge_.bytes() + bytes);
  return taken;
}

void LargerRows::keep(SampleId id, const Parts& parts) {
  if (has(id)) return;
  std::size_t bytes = parts.size() * sizeof(std::size_t);
  for (std::span<const std::byte> part : parts) bytes += part.size();
  constexpr std::size_t kAligned = 8;
  std::byte* const row = take((bytes + kAligned - 1) / kAligned * kAligned);
  if (row == nullptr) return;
  std::byte* at = row;
  for (std::span<const std::byte> part : parts) {
    const std::size_t size = part.size();
    std::memcpy(at, &size, sizeof(size));
    at += sizeof(size);
  }
  for (std::span<const std::byte> part : parts)
    at = std::ranges::copy(part, at).out;
  // Where another thread was first, both are the same.
  rows_[static_cast<std::size_t>(id)].store(row, std::memory_order_release);
}

std::unique_ptr<ReadAhead> reading_others(std::unique_ptr<ReadAhead> all,
                                          const LargerRows& kept) {
  return std::make_unique<ReadingOthers>(std::move(all), kept);
}

}  // namespace penstock
