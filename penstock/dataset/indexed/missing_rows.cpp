#include "penstock/dataset/indexed/missing_rows.h"

namespace penstock {

MissingRows::MissingRows(const TableDataset& dataset, FillMeters& meters,
                         bool per_sample)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(per_sample),
      first_(dataset.plan().first_in(Tier::none)),
      reader_(dataset, &meters),
      encoder_(dataset.encoder()),
      runs_(dataset.fields().size()) {}

void MissingRows::read(std::span<const SampleId> ids, ItemRead* ahead) {
  present_.clear();
  number_.assign(ids.size(), -1);
  reading_order(ids, order_, first_);
  for (std::size_t range : order_) {
    number_[range] = std::ssize(present_);
    present_.push_back(ids[range]);
  }
  const std::size_t row_bytes = dataset_.layout().row_bytes;
  rows_.resize(present_.size() * row_bytes);
  for (Values& runs : runs_) runs.clear();
  damaged_.rows.clear();
  std::size_t per_call = per_sample_ ? 1 : present_.size();
  for (std::size_t at = 0; at < present_.size(); at += per_call) {
    std::span<const SampleId> some = std::span(present_).subspan(at, per_call);
    reader_.read(some, parsed_, ahead);
    BusyScope busy(meters_.pack);
    found_.rows.clear();
    encoder_.encode(parsed_, rows_.data() + at * row_bytes, runs_, &found_);
    for (RowFault& fault : found_.rows) {
      const std::size_t read = at + static_cast<std::size_t>(fault.row);
      fault.row = static_cast<std::int64_t>(order_[read]);
      damaged_.reject(std::move(fault));
    }
    meters_.pack.add_items(
        std::ssize(some),
        std::ssize(some) * static_cast<std::int64_t>(row_bytes));
  }
}

}  // namespace penstock
