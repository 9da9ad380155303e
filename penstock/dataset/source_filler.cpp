#include "penstock/dataset/source_filler.h"

#include <cstring>

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
  copy(item);
  if (finisher_.idle()) return;
  finisher_.finish(item, stored_, [&](std::size_t field, std::size_t i) {
    return runs_[field].row(number_[i]);
  });
}

void SourceFiller::copy(const FillItem& item) const {
  for (const RowFinisher::Copied& copied : finisher_.copied()) {
    const TensorPlace& to = item.to[copied.output];
    for (std::size_t i = 0; i < stored_.size(); ++i)
      if (stored_[i] != nullptr)
        std::memcpy(to.row(i), stored_[i] + copied.offset, copied.bytes);
      else
        std::memset(to.row(i), 0, copied.bytes);
  }
}

namespace {

class TableFiller final : public SlotFiller {
 public:
  TableFiller(const TableDataset& dataset, FillMeters& meters,
              const FillerOptions& options)
      : dataset_(dataset),
        meter_(meters.gather),
        finisher_(dataset.fields(), dataset.layout(), options) {
    const Table* table = dataset.table();
    for (const RowFinisher::Copied& copied : finisher_.copied()) {
      fields_.push_back({.table = table->data() + copied.offset,
                         .row_stride = dataset.layout().row_bytes,
                         .bytes = copied.bytes});
      copied_bytes_ += copied.bytes;
    }
  }

  void fill(const FillItem& item, Stream& stream, Faults&) override {
    BusyScope busy(meter_);
    for (std::size_t c = 0; c < fields_.size(); ++c)
      fields_[c].out = item.to[finisher_.copied()[c].output].data;
    Gather gather{.fields = fields_, .rows = item.ids};
    if (dataset_.plan().tier == Tier::device)
      stream.gather(gather);
    else
      gather_on_host(gather);
    std::size_t bytes = item.ids.size() * copied_bytes_;
    if (!finisher_.idle()) bytes += finish(item);
    meter_.add_items(std::ssize(item.ids), static_cast<std::int64_t>(bytes));
  }

 private:
  std::size_t finish(const FillItem& item) {
    stored_.clear();
    if (const Table* table = dataset_.table())
      for (SampleId id : item.ids)
        stored_.push_back(id < 0 ? nullptr
                                 : table->data() +
                                       static_cast<std::size_t>(id) *
                                           dataset_.layout().row_bytes);
    std::size_t bytes = 0;
    finisher_.finish(item, stored_, [&](std::size_t field, std::size_t i) {
      std::span<const std::byte> run = dataset_.runs(field)->row(item.ids[i]);
      bytes += run.size();
      return run;
    });
    return bytes;
  }

  const TableDataset& dataset_;
  StageMeter& meter_;
  RowFinisher finisher_;
  std::vector<GatherField> fields_;
  std::size_t copied_bytes_ = 0;
  std::vector<const std::byte*> stored_;
};

}  // namespace

std::unique_ptr<SlotFiller> make_table_filler(const TableDataset& dataset,
                                              FillMeters& meters,
                                              const FillerOptions& options) {
  return std::make_unique<TableFiller>(dataset, meters, options);
}

}  // namespace penstock
