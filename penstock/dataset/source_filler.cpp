#include "penstock/dataset/source_filler.h"

namespace penstock {

SourceFiller::SourceFiller(const TableDataset& dataset, FillMeters& meters,
                           const FillerOptions& options)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(options.per_sample),
      reader_(dataset, &meters),
      encoder_(dataset.encoder()),
      finisher_(dataset.fields(), dataset.layout(), dataset.info(), options),
      runs_(dataset.fields().size()) {}

void SourceFiller::read(ItemRead* ahead) {
  const std::size_t row_bytes = dataset_.layout().row_bytes;
  rows_.resize(present_.size() * row_bytes);
  for (Values& runs : runs_) runs.clear();
  std::size_t per_call = per_sample_ ? 1 : present_.size();
  for (std::size_t at = 0; at < present_.size(); at += per_call) {
    std::span<const SampleId> ids = std::span(present_).subspan(at, per_call);
    reader_.read(ids, parsed_, ahead);
    BusyScope busy(meters_.pack);
    encoder_.encode(parsed_, rows_.data() + at * row_bytes, runs_);
    meters_.pack.add_items(
        std::ssize(ids),
        std::ssize(ids) * static_cast<std::int64_t>(row_bytes));
  }
}

void SourceFiller::fill(const FillItem& item, Stream&, Faults&) {
  present_.clear();
  number_.assign(item.ids.size(), -1);
  reading_order(item.ids, order_);
  for (std::size_t range : order_) {
    number_[range] = std::ssize(present_);
    present_.push_back(item.ids[range]);
  }
  read(item.read);
  BusyScope busy(meters_.pack);
  const std::size_t row_bytes = dataset_.layout().row_bytes;
  stored_.clear();
  for (std::size_t i = 0; i < item.ids.size(); ++i)
    stored_.push_back(
        item.ids[i] < 0
            ? nullptr
            : rows_.data() + static_cast<std::size_t>(number_[i]) * row_bytes);
  finisher_.copy(item, stored_);
  if (finisher_.idle()) return;
  finisher_.finish(item, stored_, [&](std::size_t field, std::size_t i) {
    return runs_[field].row(number_[i]);
  });
}

void SourceFiller::queue(const FillItem& batch, std::byte* scratch,
                         Stream& stream) {
  finisher_.queue(batch, scratch, stream);
}

}  // namespace penstock
