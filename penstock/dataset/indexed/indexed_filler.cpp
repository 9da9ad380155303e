#include "penstock/dataset/indexed/indexed_filler.h"

#include <algorithm>
#include <utility>

namespace penstock {

IndexedFiller::IndexedFiller(const IndexedDataset& dataset, FillMeters& meters,
                             const FillerOptions& options)
    : dataset_(dataset),
      meters_(meters),
      options_(options),
      kept_(meters, options),
      rows_(
          std::in_place,
          IndexedRows::Origin{.source = *dataset.source_,
                              .bound = dataset.bound_,
                              .fields = dataset.options_.fields,
                              .layout = dataset.layout_,
                              .statistics = dataset.facts_.fitted->statistics},
          meters, options.per_sample),
      finisher_(dataset.options_.fields, dataset.layout_, dataset.facts_,
                options) {}

void IndexedFiller::fill(const FillItem& item, Stream& stream, Faults& faults) {
  if (SlotFiller* kept = kept_.of([this] { return dataset_.kept(); })) {
    rows_.reset();
    return kept->fill(item, stream, faults);
  }
  if (dataset_.larger_ != nullptr) {
    if (!larger_) larger_.emplace(dataset_, meters_, options_);
    return larger_->fill(item, *rows_, finisher_, faults);
  }
  rows_->prepare(item.ids, item.read, faults);
  check_lengths(item);
  BusyScope busy(meters_.pack);
  finish(item, faults);
  rows_->name(item.ids, faults);
  if (dataset_.scan_ != nullptr && !std::exchange(told_, true))
    dataset_.scan_->begin();
}

// A batch has its shape before it is read.
void IndexedFiller::check_lengths(const FillItem& item) const {
  const std::vector<SampleId>& ids = rows_->ids();
  for (std::size_t v = 0; v < dataset_.varying_.size(); ++v) {
    std::size_t field = dataset_.varying_[v];
    std::size_t element =
        dataset_.options_.fields[field].kind->facts().stored.element_bytes;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      auto found =
          static_cast<std::int64_t>(rows_->run(field, i).size() / element);
      std::int32_t expected =
          dataset_.lengths_[v][static_cast<std::size_t>(item.ids[i])];
      if (found == expected) continue;
      throw Error(
          ErrorKind::source,
          {.code = "source.length_changed",
           .what = "a sample has another length than its source declared",
           .where = dataset_.source_->shown() + ", position " +
                    std::to_string(item.ids[i]) + ", field '" +
                    dataset_.options_.fields[field].name + "'",
           .why = "found " + std::to_string(found) + " elements, expected " +
                  std::to_string(expected),
           .next = "start again if another program has written to the source"});
    }
  }
}

void IndexedFiller::finish(const FillItem& item, Faults& faults) {
  stored_.clear();
  for (std::size_t i = 0; i < item.ids.size(); ++i)
    stored_.push_back(rows_->row(i));
  finisher_.copy(item, stored_);
  if (finisher_.idle()) return;
  FillItem good = item;
  good.ids = rows_->ids();
  finisher_.finish(
      good, stored_,
      [&](std::size_t field, std::size_t i) { return rows_->run(field, i); },
      faults);
}

void IndexedFiller::queue(const FillItem& batch, std::byte* scratch,
                          Stream& stream) {
  finisher_.queue(batch, scratch, stream);
}

std::unique_ptr<SlotFiller> IndexedDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  return std::make_unique<IndexedFiller>(*this, meters, options);
}

}  // namespace penstock
