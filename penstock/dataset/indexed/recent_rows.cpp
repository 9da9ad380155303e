#include "penstock/dataset/indexed/recent_rows.h"

#include <utility>

namespace penstock {

std::size_t PreparedRow::bytes() const {
  std::size_t sum = sizeof(*this) + tensors.size();
  for (const std::vector<std::byte>& run : runs)
    sum += sizeof(run) + run.size();
  return sum;
}

std::shared_ptr<const PreparedRow> RecentRows::find(SampleId id) const {
  auto found = rows_.find(id);
  return found == rows_.end() ? nullptr : found->second;
}

void RecentRows::add(SampleId id, std::shared_ptr<const PreparedRow> row) {
  const std::size_t bytes = row->bytes();
  if (!rows_.try_emplace(id, std::move(row)).second) return;
  order_.push_back(id);
  bytes_ += bytes;
  while (bytes_ > most_bytes_ && order_.size() > 1) {
    auto oldest = rows_.find(order_.front());
    bytes_ -= oldest->second->bytes();
    rows_.erase(oldest);
    order_.pop_front();
  }
  charge_.change_to(bytes_);
}

void RecentRows::clear() {
  rows_.clear();
  order_.clear();
  bytes_ = 0;
  charge_.change_to(0);
}

}  // namespace penstock
