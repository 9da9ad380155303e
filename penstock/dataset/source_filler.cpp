#include "penstock/dataset/source_filler.h"

namespace penstock {

SourceFiller::SourceFiller(const TableDataset& dataset, FillMeters& meters,
                           const FillerOptions& options)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(options.per_sample),
      reader_(dataset),
      encoder_(dataset.encoder()),
      finisher_(dataset.fields(), dataset.layout(), options),
      runs_(dataset.fields().size()) {
  reader_.read_meter = &meters.read;
  reader_.prepare_meter = &meters.prepare;
}

void SourceFiller::read() {
  const std::size_t row_bytes = dataset_.layout().row_bytes;
  rows_.resize(present_.size() * row_bytes);
  for (Values& runs : runs_) runs.clear();
  std::size_t per_call = per_sample_ ? 1 : present_.size();
  for (std::size_t at = 0; at < present_.size(); at += per_call) {
    std::span<const SampleId> ids = std::span(present_).subspan(at, per_call);
    reader_.read(ids, parsed_);
    BusyScope busy(meters_.pack);
    encoder_.encode(parsed_, rows_.data() + at * row_bytes, runs_);
    meters_.pack.add_items(
        std::ssize(ids),
        std::ssize(ids) * static_cast<std::int64_t>(row_bytes));
  }
}

void SourceFiller::fill(const FillItem& item, Stream&, Faults&) {
  present_.clear();
  number_.clear();
  for (SampleId id : item.ids) {
    number_.push_back(std::ssize(present_));
    if (id >= 0) present_.push_back(id);
  }
  read();
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

}  // namespace penstock
