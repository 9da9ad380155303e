#include "penstock/dataset/table/larger_finisher.h"

#include <algorithm>

#include "penstock/dataset/finish_rows.h"

namespace penstock {

LargerFinisher::LargerFinisher(LargerRows& rows, const DatasetFacts& facts,
                               const FillerOptions& options)
    : rows_(rows),
      finisher_(rows.making().fields, rows.layout(), facts, options) {
  const LargerRows::Making& making = rows.making();
  is_larger_.resize(making.fields.size());
  encoders_.resize(making.fields.size());
  made_.resize(making.fields.size());
  for (std::size_t f : making.larger) {
    is_larger_[f] = true;
    encoders_[f] =
        making.bound[f]->encoder(making.statistics[f], making.fields[f].name);
  }
}

void LargerFinisher::finish(const FillItem& item,
                            std::span<const std::byte* const> stored,
                            const RowFinisher::RunOf& run_of, RowFinisher& by,
                            Faults& faults) {
  const bool keeps = rows_.keeps_at(item.at);
  is_kept_.assign(item.ids.size(), false);
  kept_.resize(std::max(kept_.size(), item.ids.size()));
  for (std::size_t i = 0; i < item.ids.size(); ++i) {
    const SampleId id = item.ids[i];
    if (id < 0) continue;
    if (keeps && !rows_.has(id)) make(id, i, run_of);
    if (!rows_.has(id)) continue;
    rows_.find(id, kept_[i]);
    is_kept_[i] = true;
  }
  const auto larger = [&](std::size_t field, std::size_t i) {
    return is_larger_[field] ? kept_[i][1 + field] : run_of(field, i);
  };
  finish_both(item, is_kept_, stored, {by, run_of}, {finisher_, larger},
              faults);
}

/// A row that is rejected stays unchanged, for the caller that finishes it.
void LargerFinisher::make(SampleId id, std::size_t i,
                          const RowFinisher::RunOf& run_of) {
  parts_.assign(1 + is_larger_.size(), {});
  rejected_.rows.clear();
  for (std::size_t f : rows_.making().larger) {
    made_[f].clear();
    const ValueRow run = run_of(f, i);
    encoders_[f]->encode(std::span(&run, 1), {.runs = &made_[f]}, rejected_);
    if (!rejected_.rows.empty()) return;
    parts_[1 + f] = made_[f].row(0);
  }
  rows_.keep(id, parts_);
}

}  // namespace penstock
