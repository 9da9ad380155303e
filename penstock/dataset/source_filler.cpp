#include "penstock/dataset/source_filler.h"

#include <cstring>

namespace penstock {

SourceFiller::SourceFiller(const TableDataset& dataset, FillMeters& meters,
                           bool per_sample)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(per_sample),
      reader_(dataset),
      encoder_(dataset.encoder()) {
  reader_.read_meter = &meters.read;
  reader_.prepare_meter = &meters.prepare;
}

void SourceFiller::fill(const RowTarget& target, Stream&) {
  present_.clear();
  for (SampleId id : target.ids)
    if (id >= 0) present_.push_back(id);
  std::size_t per_call = per_sample_ ? 1 : present_.size();
  std::size_t row = 0;
  for (std::size_t at = 0; at < present_.size(); at += per_call) {
    std::span<const SampleId> ids = std::span(present_).subspan(at, per_call);
    reader_.read(ids, parsed_);
    BusyScope busy(meters_.pack);
    std::size_t row_bytes = dataset_.layout().row_bytes;
    rows_.resize(ids.size() * row_bytes);
    encoder_.encode(parsed_, rows_.data());
    for (std::size_t i = 0; i < ids.size(); ++i)
      write(target, row++, rows_.data() + i * row_bytes);
    meters_.pack.add_items(std::ssize(ids), std::ssize(rows_));
  }
  while (row < target.ids.size())  // padding stands at the end
    write(target, row++, nullptr);
}

void SourceFiller::write(const RowTarget& target, std::size_t row,
                         const std::byte* packed) {
  const std::vector<TensorSpec>& tensors = dataset_.layout().tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::byte* out = target.tensors[t] + row * tensors[t].bytes;
    if (packed != nullptr)
      std::memcpy(out, packed + tensors[t].offset, tensors[t].bytes);
    else
      std::memset(out, 0, tensors[t].bytes);
  }
}

}  // namespace penstock
