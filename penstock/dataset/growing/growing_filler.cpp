#include <algorithm>
#include <memory>
#include <vector>

#include "penstock/dataset/growing/growing_dataset.h"
#include "penstock/dataset/row_finisher.h"

namespace penstock {

/// Finishes samples that were prepared when their batch was planned; once the
/// store is complete, what is in that.
class GrowingFiller final : public SlotFiller {
 public:
  GrowingFiller(const GrowingDataset& dataset, FillMeters& meters,
                const FillerOptions& options)
      : dataset_(dataset),
        meters_(meters),
        kept_(meters, options),
        finisher_(dataset.options_.fields, dataset.layout_, dataset.facts_,
                  options) {}

  void fill(const FillItem& item, Stream& stream, Faults& faults) override {
    if (SlotFiller* kept = kept_.of([this] { return dataset_.stored(); }))
      return kept->fill(item, stream, faults);
    const GrowingDataset::Rows rows = dataset_.prepared(item.ids);
    BusyScope busy(meters_.pack);
    take_good(item, rows, faults);
    FillItem good = item;
    good.ids = ids_;
    good.ranges = ranges_;
    finisher_.copy(good, tensors_);
    if (!finisher_.idle())
      finisher_.finish(
          good, tensors_,
          [&](std::size_t field, std::size_t i) {
            return std::span<const std::byte>(rows[i]->runs[field]);
          },
          faults);
    std::ranges::sort(faults.rows, {}, &RowFault::row);
    meters_.pack.add_items(std::ssize(item.ids), 0);
  }

 private:
  /// Rejects what is bad, in whose place stands padding.
  void take_good(const FillItem& item, const GrowingDataset::Rows& rows,
                 Faults& faults) {
    ids_.assign(item.ids.begin(), item.ids.end());
    ranges_.assign(item.ranges.begin(), item.ranges.end());
    tensors_.assign(ids_.size(), nullptr);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] < 0) continue;
      if (!rows[i]->fault) {
        tensors_[i] = rows[i]->tensors.data();
        continue;
      }
      RowFault fault = *rows[i]->fault;
      fault.row = static_cast<std::int64_t>(i);
      faults.reject(std::move(fault));
      ids_[i] = -1;
      if (!ranges_.empty()) ranges_[i].sample = -1;
    }
  }

  const GrowingDataset& dataset_;
  FillMeters& meters_;
  KeptFiller kept_;
  RowFinisher finisher_;
  std::vector<SampleId> ids_;              // -1: padding, or rejected
  std::vector<SampleRange> ranges_;        // the same
  std::vector<const std::byte*> tensors_;  // by range; null: the same
};

std::unique_ptr<SlotFiller> GrowingDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  return std::make_unique<GrowingFiller>(*this, meters, options);
}

}  // namespace penstock
