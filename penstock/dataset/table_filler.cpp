#include <utility>
#include <vector>

#include "penstock/dataset/gather_filler.h"
#include "penstock/dataset/row_finisher.h"
#include "penstock/dataset/source_filler.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {
namespace {

/// Fills rows that a table keeps: those that are stored as a batch holds them
/// are gathered, the others finished.
class TableFiller final : public SlotFiller {
 public:
  TableFiller(const TableDataset& dataset, std::unique_ptr<SlotFiller> gather,
              RowFinisher finisher, StageMeter& meter)
      : dataset_(dataset),
        gather_(std::move(gather)),
        finisher_(std::move(finisher)),
        meter_(meter) {}

  void fill(const FillItem& item, Stream& stream, Faults& faults) override {
    if (const Table* table = dataset_.table()) table->check(item.ids);
    gather_->fill(item, stream, faults);
    if (finisher_.idle()) return;
    BusyScope busy(meter_);
    find_stored(item);
    std::size_t bytes = 0;
    finisher_.finish(item, stored_, [&](std::size_t field, std::size_t i) {
      std::span<const std::byte> run = dataset_.runs(field)->row(item.ids[i]);
      bytes += run.size();
      return run;
    });
    meter_.add_items(0, static_cast<std::int64_t>(bytes));
  }

  void queue(const FillItem& batch, std::byte* scratch,
             Stream& stream) override {
    if (dataset_.plan().tier != Tier::device)
      return finisher_.queue(batch, scratch, stream);
    find_stored(batch);
    finisher_.queue(
        batch, stored_,
        [&](std::size_t field, std::size_t i) {
          return dataset_.runs(field)->row(batch.ids[i]);
        },
        scratch, stream);
  }

 private:
  void find_stored(const FillItem& item) {
    stored_.clear();
    if (const Table* table = dataset_.table())
      for (SampleId id : item.ids)
        stored_.push_back(id < 0 ? nullptr
                                 : table->data() +
                                       static_cast<std::size_t>(id) *
                                           dataset_.layout().row_bytes);
  }

  const TableDataset& dataset_;
  const std::unique_ptr<SlotFiller> gather_;
  RowFinisher finisher_;
  StageMeter& meter_;
  std::vector<const std::byte*> stored_;
};

std::unique_ptr<SlotFiller> make_table_filler(const TableDataset& dataset,
                                              FillMeters& meters,
                                              const FillerOptions& options) {
  RowFinisher finisher(dataset.fields(), dataset.layout(), dataset.info(),
                       options);
  std::vector<GatherField> fields;
  std::vector<std::size_t> outputs;
  for (const RowFinisher::Copied& copied : finisher.copied()) {
    fields.push_back({.table = dataset.table()->data() + copied.offset,
                      .row_stride = dataset.layout().row_bytes,
                      .bytes = copied.bytes});
    outputs.push_back(copied.output);
  }
  std::unique_ptr<SlotFiller> gather =
      make_gather_filler(std::move(fields), std::move(outputs),
                         dataset.plan().tier, meters.gather);
  if (finisher.idle() && finisher.queues_nothing() &&
      dataset.plan().tier != Tier::disk)
    return gather;
  return std::make_unique<TableFiller>(dataset, std::move(gather),
                                       std::move(finisher), meters.gather);
}

}  // namespace

std::unique_ptr<SlotFiller> TableDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  if (plan().tier == Tier::none)
    return std::make_unique<SourceFiller>(*this, meters, options);
  return make_table_filler(*this, meters, options);
}

}  // namespace penstock
