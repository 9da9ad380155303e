#include "penstock/dataset/table/larger_filler.h"

#include <algorithm>

#include "penstock/dataset/finish_rows.h"

namespace penstock {

LargerFiller::LargerFiller(const IndexedDataset& dataset, FillMeters& meters,
                           const FillerOptions& options)
    : rows_(*dataset.larger_),
      meters_(meters),
      made_(IndexedRows::Origin{.source = *dataset.source_,
                                .bound = rows_.making().bound,
                                .fields = rows_.making().fields,
                                .layout = rows_.layout(),
                                .statistics = rows_.making().statistics},
            meters, options.per_sample),
      finisher_(rows_.making().fields, rows_.layout(), dataset.facts_,
                options) {}

void LargerFiller::fill(const FillItem& item, IndexedRows& rows,
                        RowFinisher& by, Faults& faults) {
  find(item);
  const bool keeps = rows_.keeps_at(item.at);
  IndexedRows& made = keeps ? made_ : rows;
  made.prepare(ids_, item.read, faults);
  BusyScope busy(meters_.pack);
  if (keeps) {
    keep(item);
    larger_.assign(ids_.size(), true);
  } else {
    larger_ = is_kept_;
  }
  finish(item, made, by, faults);
  made.name(item.ids, faults);
}

// What was read ahead is made, whether it is there by now or not; all else that
// is there was there when reading began.
void LargerFiller::find(const FillItem& item) {
  ids_.assign(item.ids.begin(), item.ids.end());
  kept_.resize(std::max(kept_.size(), ids_.size()));
  is_kept_.assign(ids_.size(), false);
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const SampleId id = ids_[i];
    if (id < 0 || (item.read != nullptr &&
                   std::ranges::binary_search(item.read->ids(), id)))
      continue;
    if (!rows_.has(id)) continue;
    rows_.find(id, kept_[i]);
    is_kept_[i] = true;
    ids_[i] = -1;
  }
}

void LargerFiller::keep(const FillItem& item) {
  const std::vector<Field>& fields = rows_.making().fields;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (made_.ids()[i] < 0 || rows_.has(item.ids[i])) continue;
    parts_.assign(1, {made_.row(i), rows_.layout().row_bytes});
    for (std::size_t f = 0; f < fields.size(); ++f)
      parts_.push_back(fields[f].kind->facts().stored.element_bytes == 0
                           ? std::span<const std::byte>()
                           : made_.run(f, i));
    rows_.keep(item.ids[i], parts_);
  }
}

void LargerFiller::finish(const FillItem& item, const IndexedRows& made,
                          RowFinisher& by, Faults& faults) {
  stored_.clear();
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    stored_.push_back(is_kept_[i] ? kept_[i][0].data() : made.row(i));
    ids_[i] = is_kept_[i] ? item.ids[i] : made.ids()[i];
  }
  finisher_.copy(item, stored_);  // the same parts in either form
  if (finisher_.idle()) return;
  FillItem good = item;
  good.ids = ids_;
  const auto run_of = [&](std::size_t field, std::size_t i) {
    return is_kept_[i] ? kept_[i][1 + field] : made.run(field, i);
  };
  finish_both(good, larger_, stored_, {by, run_of}, {finisher_, run_of},
              faults);
}

}  // namespace penstock
